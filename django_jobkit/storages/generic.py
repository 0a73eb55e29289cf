"""Jobs in any other Django storage, through the four methods that all of them have."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import Storage

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable
from django_jobkit.jobs.files import ANY, IfVersion, StoredFile
from django_jobkit.storages.faults import is_missing, unavailable
from django_jobkit.storages.names import tree_prefix
from django_jobkit.storages.owned_locks import storage_lock
from django_jobkit.storages.versions import content_version, require_version

# What Django's and django-storages' classes call the option.
_OVERWRITE_OPTIONS: Final = ("file_overwrite", "allow_overwrite", "_allow_overwrite", "overwrite_files")
_ATTEMPTS: Final = 20
"""How often a directory is emptied again because others fill it meanwhile."""


class GenericJobStorage:
    """Jobs behind `open`, `save`, `delete` and `listdir` of a Django storage that the kit has no adapter for.

    What it can't promise: whether a reader may see half a file, and how long a call may hang, is up to the storage;
    a conditional write is a read and then a write, safe against other threads of this process only.
    """

    atomic_swap: Final = False

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._known_to_overwrite = False

    def read(self, name: str) -> StoredFile:
        with unavailable("read", name):
            data = self._bytes(name)
        return StoredFile(data, content_version(data))

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        """As the contract says; raises `StorageMisconfigured` for a storage that renames instead of overwriting."""
        for option in _OVERWRITE_OPTIONS:
            if getattr(self.storage, option, None) is False:
                raise self._renames()
        with storage_lock(self.storage, name), unavailable("write", name):
            if if_version is not ANY:
                try:
                    current = content_version(self._bytes(name))
                except FileNotFoundError:
                    current = None
                require_version(name, if_version, current)
            saved = self._save(name, data)
            if posixpath.normpath(saved) != posixpath.normpath(name):
                self.storage.delete(saved)
                raise self._renames()
            if not self._known_to_overwrite:
                # The first file of a name is never renamed. Asking now, while it is there, finds out before a
                # second write is lost; since it was not renamed it is new, and goes without a trace.
                if self.storage.get_available_name(name) != name:
                    self.storage.delete(name)
                    raise self._renames()
                self._known_to_overwrite = True
        return content_version(data)

    def delete(self, name: str) -> None:
        with storage_lock(self.storage, name), unavailable("delete", name):
            try:
                self.storage.delete(name)
            except FileNotFoundError:
                return
            parent = posixpath.dirname(name)
            if parent and self._listdir(parent) == ([], []):
                self._remove_directory(parent)

    def delete_tree(self, prefix: str) -> int:
        prefix = tree_prefix(prefix)
        with unavailable("delete", prefix):
            return self._remove(prefix)

    def list_dirs(self, prefix: str) -> Iterator[str]:
        with unavailable("list", prefix):
            directories, _ = self._listdir(prefix)
        yield from directories

    def _bytes(self, name: str) -> bytes:
        try:
            with self.storage.open(name, "rb") as file:
                return bytes(file.read())
        except Exception as error:
            if is_missing(error):
                raise FileNotFoundError(name) from error
            raise

    def _save(self, name: str, data: bytes) -> str:
        for _ in range(_ATTEMPTS):
            # Its directory is removed by others between being made and being used; the next try makes it again.
            with suppress(FileNotFoundError):
                return self.storage.save(name, ContentFile(data))
        raise StorageUnavailable(f"The directory of {name} is removed as fast as it is made")

    def _listdir(self, prefix: str) -> tuple[list[str], list[str]]:
        """As Django's, but for a missing directory, which is empty, and names, which are one clean segment."""
        try:
            directories, files = self.storage.listdir(prefix)
        except FileNotFoundError:
            return [], []
        except NotImplementedError as error:
            raise StorageMisconfigured(
                f"{self._kind} can't list its directories, so it can't hold a history of jobs."
            ) from error
        names = (name.rstrip("/") for name in directories)
        return [name for name in dict.fromkeys(names) if name not in ("", ".", "..")], [name for name in files if name]

    def _remove(self, prefix: str) -> int:
        count = 0
        for _ in range(_ATTEMPTS):
            directories, files = self._listdir(prefix)
            for name in files:
                self.storage.delete(f"{prefix}/{name}")
            count += len(files) + sum(self._remove(f"{prefix}/{name}") for name in directories)
            if self._remove_directory(prefix):
                return count
        raise StorageUnavailable(f"{prefix} is filled again as fast as it is emptied")

    def _remove_directory(self, prefix: str) -> bool:
        """Whether an empty directory is gone; where directories aren't real there is nothing of that name."""
        try:
            if self.storage.exists(prefix):
                self.storage.delete(prefix)
        except FileNotFoundError:
            return True
        except OSError as error:
            # The last is Django's storage, which found no directory there and then one that had just been made.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR):
                return False
            raise
        return True

    @property
    def _kind(self) -> str:
        return f"{type(self.storage).__module__}.{type(self.storage).__qualname__}"

    def _renames(self) -> StorageMisconfigured:
        return StorageMisconfigured(
            f"{self._kind} saves under another name when the file is there, so a job's status would never change. "
            "In STORAGES, set the option that makes it overwrite: file_overwrite=True, allow_overwrite=True or "
            "overwrite_files=True, whichever this storage has."
        )
