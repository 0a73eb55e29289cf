"""A small working storage in a dict, with a switch for each fault and a count of what was asked of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from django_jobkit.exceptions import StorageUnavailable, VersionConflict
from django_jobkit.jobs.files import ABSENT, ANY, IfVersion, StoredFile


class DictStorage:
    atomic_swap = True

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files: dict[str, StoredFile] = {}
        self.calls: Counter[str] = Counter()
        self.read_fails = self.write_fails = self.list_fails = self.answer_lost = False
        self._lock = threading.RLock()
        self._count = 0
        for name, data in (files or {}).items():
            self._put(name, data)

    def _put(self, name: str, data: bytes) -> str:
        self._count += 1
        self.files[name] = StoredFile(data, str(self._count))
        return str(self._count)

    def read(self, name: str) -> StoredFile:
        self.calls["read"] += 1
        if self.read_fails:
            raise StorageUnavailable("no network")
        with self._lock:
            if name not in self.files:
                raise FileNotFoundError(name)
            return self.files[name]

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        self.calls["write"] += 1
        if self.write_fails:
            raise StorageUnavailable("no network")
        with self._lock:
            there = self.files.get(name)
            if (if_version is ABSENT and there) or (
                isinstance(if_version, str) and (there is None or there.version != if_version)
            ):
                raise VersionConflict(name, certain=True)
            version = self._put(name, data)
            if self.answer_lost:
                raise VersionConflict(name)
            return version

    def delete(self, name: str) -> None:
        self.calls["delete"] += 1
        if self.write_fails:
            raise StorageUnavailable("no network")
        self.files.pop(name, None)

    def delete_tree(self, prefix: str) -> int:
        self.calls["delete_tree"] += 1
        if self.write_fails:
            raise StorageUnavailable("no network")
        with self._lock:
            doomed = [name for name in self.files if name.startswith(prefix + "/")]
            for name in doomed:
                del self.files[name]
        return len(doomed)

    def list_dirs(self, prefix: str) -> Iterator[str]:
        self.calls["list_dirs"] += 1
        if self.list_fails:
            raise StorageUnavailable("no network")
        rests = [name.removeprefix(prefix + "/") for name in list(self.files) if name.startswith(prefix + "/")]
        yield from dict.fromkeys(rest.partition("/")[0] for rest in rests if "/" in rest)


class Clock:
    """Stands still until it is told otherwise."""

    def __init__(self, now: datetime | None = datetime(2026, 8, 31, 10, 20, 30, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime | None:
        return self.now
