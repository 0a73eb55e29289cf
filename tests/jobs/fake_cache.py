"""A small working cache in a dict with a clock of its own, and a switch for each way in which a real one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping


class FakeTime:
    """A clock that stands still, except when somebody sleeps. ``during_sleep`` is called once, at the next sleep."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.during_sleep: Callable[[], object] | None = None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        action, self.during_sleep = self.during_sleep, None
        if action:
            action()


class DictCache:
    """Django's cache methods. ``calls`` lists what was asked: the method and its key or keys."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.calls: list[tuple[str, object]] = []
        self.refuses = False
        self.hangs = 0.0
        """Seconds after which each call fails."""
        self.hides_failures = False
        """As with django-redis's IGNORE_EXCEPTIONS."""
        self._entries: dict[str, tuple[object, float | None]] = {}
        self._lock = threading.RLock()

    @property
    def fails(self) -> bool:
        return self.refuses or bool(self.hangs)

    def _called(self, method: str, about: object) -> bool:
        """Whether to answer as if nothing had happened."""
        self.calls.append((method, about))
        self.time.now += self.hangs
        if self.fails and not self.hides_failures:
            raise ConnectionError("no connection") if self.refuses else TimeoutError("no answer")
        return not self.fails

    def _live(self, key: str) -> bool:
        entry = self._entries.get(key)
        return entry is not None and (entry[1] is None or entry[1] > self.time.now)

    def _put(self, key: str, value: object, timeout: float | None) -> None:
        self._entries[key] = (value, None if timeout is None else self.time.now + timeout)

    def get(self, key: str, default: object = None) -> object:
        with self._lock:
            return self._entries[key][0] if self._called("get", key) and self._live(key) else default

    def get_many(self, keys: list[str]) -> dict[str, object]:
        with self._lock:
            return {k: self._entries[k][0] for k in keys if self._live(k)} if self._called("get_many", keys) else {}

    def set(self, key: str, value: object, timeout: float | None = None) -> None:
        with self._lock:
            if self._called("set", key):
                self._put(key, value, timeout)

    def set_many(self, data: Mapping[str, object], timeout: float | None = None) -> list[str]:
        with self._lock:
            if self._called("set_many", list(data)):
                for key, value in data.items():
                    self._put(key, value, timeout)
            return []

    def incr(self, key: str) -> int | None:
        with self._lock:
            if not self._called("incr", key):
                return None
            if not self._live(key):
                raise ValueError(f"no key {key}")
            number, expires = self._entries[key]
            assert isinstance(number, int)
            self._entries[key] = (number + 1, expires)
            return number + 1

    def add(self, key: str, value: object, timeout: float | None = None) -> bool | None:
        with self._lock:
            if not self._called("add", key):
                return None
            if self._live(key):
                return False
            self._put(key, value, timeout)
            return True

    def touch(self, key: str, timeout: float | None = None) -> bool:
        with self._lock:
            if not self._called("touch", key) or not self._live(key):
                return False
            self._put(key, self._entries[key][0], timeout)
            return True

    def delete(self, key: str) -> bool | None:
        with self._lock:
            return self._entries.pop(key, None) is not None if self._called("delete", key) else None

    def delete_many(self, keys: list[str]) -> None:
        with self._lock:
            if self._called("delete_many", keys):
                for key in keys:
                    self._entries.pop(key, None)

    def held(self) -> list[str]:
        """The keys of all entries that are alive."""
        return [key for key in self._entries if self._live(key)]

    def spoil(self, value: object) -> None:
        """Put ``value`` in the place of every entry."""
        self._entries = {key: (value, until) for key, (_, until) in self._entries.items()}


class ListableCache(DictCache):
    """One that can list its keys, as django-redis does."""

    def iter_keys(self, search: str, itersize: int = 10) -> list[str]:
        self._called("iter_keys", search)
        assert search.endswith("*")
        return [key for key in self.held() if key.startswith(search[:-1])]
