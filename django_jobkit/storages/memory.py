"""Jobs in memory, for tests and demonstrations: gone with the process, and seen by no other."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from io import BytesIO
from typing import Final, cast

from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage

from django_jobkit.jobs.files import ANY, IfVersion, StoredFile
from django_jobkit.storages.faults import unavailable
from django_jobkit.storages.names import tree_prefix
from django_jobkit.storages.owned_locks import storage_lock
from django_jobkit.storages.versions import content_version, require_version


class MemoryJobStorage:
    """Jobs in Django's `InMemoryStorage`.

    Its files share one buffer between all who have them open, and `save` renames instead of overwriting; so every
    method here holds one lock per Django storage, which all adapters around that storage share.
    """

    atomic_swap: Final = True
    """No other process can see these files, so there is none to be safe against."""

    def __init__(self, storage: InMemoryStorage | None = None) -> None:
        self.storage = InMemoryStorage() if storage is None else storage
        self._lock = storage_lock(self.storage)

    def read(self, name: str) -> StoredFile:
        with self._lock, unavailable("read", name):
            data = self._bytes(name)
        return StoredFile(data, content_version(data))

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        with self._lock, unavailable("write", name):
            current: str | None = None
            if self.storage.exists(name):
                current = content_version(self._bytes(name))
            require_version(name, if_version, current)
            if current is not None:
                # A new node, not new content: whoever has the old file open goes on reading the old bytes.
                self.storage.delete(name)
            self.storage.save(name, ContentFile(data))
        return content_version(data)

    def delete(self, name: str) -> None:
        with self._lock, unavailable("delete", name):
            if not self.storage.exists(name):
                return
            self._bytes(name)  # a directory is not a file to delete: InMemoryStorage would take all below it along
            self.storage.delete(name)
            parent = posixpath.dirname(name)
            if parent and self.storage.listdir(parent) == ([], []):
                self.storage.delete(parent)

    def delete_tree(self, prefix: str) -> int:
        prefix = tree_prefix(prefix)
        with self._lock, unavailable("delete", prefix):
            try:
                count = self._count(prefix)
            except FileNotFoundError:
                return 0
            self.storage.delete(prefix)
        return count

    def list_dirs(self, prefix: str) -> Iterator[str]:
        with self._lock, unavailable("list", prefix):
            try:
                directories, _ = self.storage.listdir(prefix)
            except FileNotFoundError:
                return
        yield from directories

    def _bytes(self, name: str) -> bytes:
        # Not by reading: all who have the file open share one position, which opening has set to the start.
        return cast(BytesIO, self.storage.open(name, "rb").file).getvalue()

    def _count(self, prefix: str) -> int:
        directories, files = self.storage.listdir(prefix)
        return len(files) + sum(self._count(f"{prefix}/{name}") for name in directories)
