"""Calls of a cache of Django's whose failure nothing can hide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

PROBE: Final = "jobkit:probe"
_DELETE_AT_ONCE: Final = 1000


class Cache(Protocol):
    """The methods used of a cache: those of Django's, with keys that every backend accepts."""

    def get(self, key: str, default: object = None) -> object: ...
    def get_many(self, keys: list[str]) -> Mapping[str, object] | None: ...
    def set(self, key: str, value: object, timeout: float | None = None) -> object: ...
    def set_many(self, data: dict[str, object], timeout: float | None = None) -> object: ...
    def add(self, key: str, value: object, timeout: float | None = None) -> bool | None: ...
    def incr(self, key: str) -> int: ...
    def touch(self, key: str, timeout: float | None = None) -> object: ...
    def delete(self, key: str) -> bool | None: ...
    def delete_many(self, keys: list[str]) -> object: ...


class NoAnswer(Exception):
    """The cache swallowed its own failure."""


def add(cache: Cache, key: str, value: object, ttl: float | None) -> bool:
    """Store the value unless there is one; whether it was stored."""
    added = cache.add(key, value, timeout=ttl)
    if added is None:
        raise NoAnswer("add answered None, as with IGNORE_EXCEPTIONS")
    return bool(added)


def count_up(cache: Cache, key: str) -> int:
    """Add 1 to a number that never expires and begins at 0; its new value."""
    try:
        number = cache.incr(key)
    except ValueError:  # Django's way to say that there is no such number yet
        add(cache, key, 0, None)
        number = cache.incr(key)
    if not isinstance(number, int):
        raise NoAnswer("incr answered with no number")
    return number


def delete_all(cache: Cache, keys: list[str]) -> None:
    """Delete these keys, and be sure of it."""
    add(cache, PROBE, 1, 1)  # the one call whose failure nothing can hide
    for start in range(0, len(keys), _DELETE_AT_ONCE):
        cache.delete_many(keys[start : start + _DELETE_AT_ONCE])
