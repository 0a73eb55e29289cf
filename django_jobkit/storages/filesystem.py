"""Jobs in local files: whole to every reader, one writer at a time, and no files of its own left behind."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from django.core.files.storage import FileSystemStorage

from django_jobkit.exceptions import StorageUnavailable
from django_jobkit.jobs.files import ANY, IfVersion, StoredFile
from django_jobkit.storages.directories import make_directories, open_locked
from django_jobkit.storages.faults import unavailable
from django_jobkit.storages.names import tree_prefix
from django_jobkit.storages.versions import content_version, require_version

_ATTEMPTS: Final = 20
"""How often a write starts again because somebody removed its directory meanwhile."""
_BATCH: Final = 1000
"""How many directory entries are taken at once."""


class FileSystemJobStorage:
    """Jobs below the location of Django's `FileSystemStorage`, on a POSIX system.

    A write makes a hidden temporary file beside the target and renames it over the target, so readers need no lock
    and see the old bytes or the new ones, whatever happens to the writer. Writers hold the `flock` of the directory
    itself, which the system drops when a process dies; the temporary name is fixed, so that what a killed writer
    leaves is overwritten by the next. Modes of files and directories follow the storage's options.

    ``timeout`` is how many seconds to wait for another writer of the same directory, or to go on emptying one that
    others fill.
    """

    atomic_swap: Final = True

    def __init__(self, storage: FileSystemStorage, *, timeout: float = 10.0) -> None:
        self.storage = storage
        self.timeout = timeout

    def read(self, name: str) -> StoredFile:
        with unavailable("read", name):
            data = _bytes(self.storage.path(name))
        return StoredFile(data, content_version(data))

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        with unavailable("write", name):
            path = self.storage.path(name)
            directory = os.path.dirname(path)
            for _ in range(_ATTEMPTS):
                if not isinstance(if_version, str):
                    # The directory may be removed again before it is locked, or by those who don't ask for the lock.
                    with suppress(FileNotFoundError):
                        make_directories(directory, self.storage.directory_permissions_mode)
                try:
                    with open_locked(directory, self.timeout):
                        self._replace(name, path, data, if_version)
                        return content_version(data)
                except FileNotFoundError:
                    if isinstance(if_version, str) and not os.path.isdir(directory):
                        require_version(name, if_version, None)
            raise OSError(errno.EBUSY, "its directory is removed again and again")

    def _replace(self, name: str, path: str, data: bytes, if_version: IfVersion) -> None:
        if if_version is not ANY:
            try:
                current = content_version(_bytes(path))
            except FileNotFoundError:
                current = None
            require_version(name, if_version, current)
        temporary = _temporary(path)
        try:
            with open(self._create(temporary), "wb") as file:
                file.write(data)
                file.flush()
                # Without this a power failure may leave the new name with nothing in it (seen on XFS and others).
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _create(self, temporary: str) -> int:
        """A descriptor of a new, empty file. What is there belongs to a killed writer, maybe another user's."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        descriptor = os.open(temporary, flags, 0o666)
        mode = self.storage.file_permissions_mode
        if mode is not None:
            os.fchmod(descriptor, mode)
        # Django gives its files the group of the storage's location, for web servers that read by group.
        group = os.stat(self.storage.location).st_gid
        if os.fstat(descriptor).st_gid != group:
            with suppress(PermissionError):
                os.fchown(descriptor, -1, group)
        return descriptor

    def delete(self, name: str) -> None:
        """Remove the file, and its directory if that was the last one in it."""
        with unavailable("delete", name):
            path = self.storage.path(name)
            directory = os.path.dirname(path)
            with suppress(FileNotFoundError), open_locked(directory, self.timeout):
                with suppress(FileNotFoundError):
                    os.unlink(path)
                self._remove_if_empty(directory)

    def _remove_if_empty(self, directory: str) -> None:
        if directory == self.storage.location:
            return
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries]
        if all(_is_temporary(name) for name in names):
            for name in names:  # nobody writes them: we hold the lock
                os.unlink(os.path.join(directory, name))
            with suppress(OSError):  # filled meanwhile by somebody who doesn't ask for the lock
                os.rmdir(directory)

    def delete_tree(self, prefix: str) -> int:
        prefix = tree_prefix(prefix)
        with unavailable("delete", prefix):
            path = self.storage.path(prefix)
            if os.path.islink(path):
                os.unlink(path)  # what it points to isn't ours
                return 0
            return self._remove(path, time.monotonic() + self.timeout)

    def _remove(self, directory: str, deadline: float) -> int:
        """Remove a directory with all below it, and return how many files that were."""
        count = 0
        while True:
            try:
                with open_locked(directory, self.timeout):
                    count += self._empty(directory, deadline)
                    os.rmdir(directory)
                    return count
            except FileNotFoundError:
                return count
            except OSError as error:
                # Filled meanwhile, by somebody who saves an output straight through Django.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                if time.monotonic() >= deadline:
                    raise StorageUnavailable(f"{directory} is filled again as fast as it is emptied") from error

    def _empty(self, directory: str, deadline: float) -> int:
        count = 0
        with os.scandir(directory) as entries:
            # As a list: what a scan shows of a directory that shrinks meanwhile is undefined.
            found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for path, is_directory in found:
            if is_directory:
                count += self._remove(path, deadline)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                    count += not _is_temporary(os.path.basename(path))
        return count

    def list_dirs(self, prefix: str) -> Iterator[str]:
        """Directories as the system streams them; hidden ones, and names that aren't text, can't be jobs."""
        with unavailable("list", prefix):
            try:
                entries = os.scandir(self.storage.path(prefix))
            except FileNotFoundError:
                return
        with entries:
            while True:
                with unavailable("list", prefix):
                    batch = list(islice(entries, _BATCH))
                    names = [entry.name for entry in batch if _may_be_job(entry.name) and _is_dir(entry)]
                if not batch:
                    return
                yield from names


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _temporary(path: str) -> str:
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.tmp")


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")


def _may_be_job(name: str) -> bool:
    """Not hidden, and UTF-8: Python stands in lone surrogates for other bytes."""
    return not name.startswith(".") and (name.isascii() or not any("\udc80" <= c <= "\udcff" for c in name))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        if entry.is_symlink():
            return False  # it leads nowhere: one broken link must not take the whole history with it
        raise
