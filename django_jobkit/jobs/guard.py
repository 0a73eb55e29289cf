"""A cache that may fail: asked like any other while it works, left alone for some seconds after it failed.

A cache makes pages faster; it must never be what breaks or hangs them. What Django's caches do when their server is
gone differs. `django-redis` raises at once when the connection is refused, and after `SOCKET_TIMEOUT` (5 seconds
*per call* unless set) when the server hangs. With `IGNORE_EXCEPTIONS` it raises nothing, answers reads as a miss,
and `add` with None, which is easily taken for "someone else has it". `GuardedCache` turns all of that into one
exception, `CacheAway`, has one caller pay for it once per `retry_after`, and logs it once per outage.

What could not be changed while the cache was away must not come back afterwards. Such keys are *owed*: the first
caller to reach the cache again deletes them before anything else is asked of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from ..exceptions import KeysNotListable
from . import cachecalls
from .cachecalls import Cache, NoAnswer

T = TypeVar("T")

RETRY_AFTER: Final = 5.0
"""Seconds for which a cache that failed is left alone."""

_SLOW_MISS: Final = 2.0  # a miss carries no data: one that takes longer (seconds) is a hidden timeout
_CHEAP: Final = 0.2  # a failure quicker than this (seconds) may be risked again for an invalidation
_MOST_OWED: Final = 100_000  # keys; some 20 MB


class CacheAway(Exception):
    """There is no cache, it has just failed, or it is being left alone. Do without it."""


class GuardedCache:
    """A Django cache that fails in one way only: `CacheAway`, at once, for ``retry_after`` seconds after a failure.

    Reading methods and `add` raise `CacheAway`. Writing methods never raise: what they could not do is owed, see
    above. After ``retry_after`` seconds one caller tries the cache while all others go on without it. ``cache`` may
    be None: then it is always away, silently. It is only touched when asked, so Django's lazy `cache` proxy will do.

    Safe to share between threads, if ``cache`` is (Django's proxy hands each thread a cache of its own).
    """

    def __init__(
        self,
        cache: Cache | None,
        retry_after: float = RETRY_AFTER,
        clock: Callable[[], float] = time.monotonic,
        logger: logging.Logger | None = None,
    ) -> None:
        self._cache = cache
        self._retry_after = retry_after
        self._clock = clock
        self._logger = logger or logging.getLogger("django_jobkit.cache")
        self._lock = threading.Lock()
        self._retry_at: float | None = None  # None: the cache is in use
        self._failing = False  # a failure was logged, its end wasn't
        self._cheap = False
        self._era = 0  # counts up whenever the cache is lost or found, to tell stragglers apart
        self._owed: dict[str, int] = {}
        self._owed_so_far = 0

    def get(self, key: str, default: object = None) -> object:
        """The value, or ``default`` if there is none."""

        def ask(cache: Cache) -> object:
            started = self._clock()
            answer = cache.get(key, default)
            if answer is default:
                self._check_speed(started)
            return answer

        return self._ask("get", ask)

    def get_many(self, keys: Collection[str]) -> dict[str, object]:
        """The values that are there, by key, in one command."""
        if not keys:
            return {}

        def ask(cache: Cache) -> dict[str, object]:
            started = self._clock()
            answer = cache.get_many(list(keys))
            if not answer:
                self._check_speed(started)
            return dict(answer or {})

        return self._ask("get_many", ask)

    def add(self, key: str, value: object, ttl: float | None) -> bool:
        """Store the value unless there is one; whether it was stored."""
        return self._ask("add", lambda cache: cachecalls.add(cache, key, value, ttl))

    def count_up(self, key: str) -> int:
        """Add 1 to a number that never expires and begins at 0; its new value."""
        return self._ask("incr", lambda cache: cachecalls.count_up(cache, key))

    def set(self, key: str, value: object, ttl: float) -> None:
        """Store the value for ``ttl`` seconds, or see to it that no older one is found later."""
        self._change("set", [key], lambda cache: cache.set(key, value, timeout=ttl))

    def set_many(self, values: Mapping[str, object], ttl: float) -> None:
        """`set` for several keys in one command."""
        if values:
            self._change("set_many", values, lambda cache: cache.set_many(dict(values), timeout=ttl))

    def delete(self, key: str) -> None:
        """Remove the value now, or before the cache is used again."""

        def ask(cache: Cache) -> None:
            # None is a hidden failure, or a cache with sloppy manners: only `add` can tell which.
            if cache.delete(key) is None:
                cachecalls.add(cache, cachecalls.PROBE, 1, 1)
                cache.delete(key)

        self._change("delete", [key], ask)

    def replace(self, key: str, value: str) -> None:
        """Store the text for good and make sure that it arrived; else the key is owed.

        Is tried even while the cache is left alone, provided that its last failure came quickly (a refused
        connection, not a hanging one).
        """

        def ask(cache: Cache) -> bool:
            started = self._clock()
            if cache.set(key, value, timeout=None) is True:
                return True
            # Only django-redis says True. Elsewhere None is the answer to success and to a swallowed failure.
            self._check_speed(started)
            return cache.get(key) == value

        try:
            if not self._ask("set", ask, urgent=True):
                self.owe([key])
        except CacheAway:
            self.owe([key])

    def touch(self, key: str, ttl: float) -> None:
        """Let the value live ``ttl`` seconds from now, if it is there."""
        self._change("touch", [], lambda cache: cache.touch(key, timeout=ttl))

    def keys(self, prefix: str) -> list[str]:
        """All keys that start with ``prefix`` (no glob characters), for monitoring: Redis walks its whole database.

        Raises `KeysNotListable` where the cache can't list keys, or can't be asked right now.
        """
        if self._cache is None:
            return []

        def ask(cache: Cache) -> list[str] | None:
            for name, options in (("iter_keys", {"itersize": 1000}), ("keys", {})):
                method = getattr(cache, name, None)
                if method is not None:
                    return list(method(f"{prefix}*", **options))
            return None

        try:
            found = self._ask("keys", ask)
        except CacheAway as error:
            raise KeysNotListable("The cache can't be asked for its keys just now; try again later.") from error
        if found is None:
            raise KeysNotListable(
                "This cache backend can't list its keys. Use django-redis (django_redis.cache.RedisCache) to count"
                " entries, or count them with the cache server's own tools."
            )
        return found

    def owe(self, keys: Collection[str]) -> None:
        """Have these keys deleted before the cache is used again."""
        if self._cache is None or not keys:
            return
        with self._lock:
            for key in keys:
                self._owed.pop(key, None)
                self._owed_so_far += 1
                self._owed[key] = self._owed_so_far
            while len(self._owed) > _MOST_OWED:
                del self._owed[next(iter(self._owed))]  # the oldest; it ends by its own TTL
            if self._retry_at is None:
                self._retry_at = self._clock()

    def _change(self, what: str, keys: Collection[str], change: Callable[[Cache], object]) -> None:
        try:
            self._ask(what, change)
        except CacheAway:
            self.owe(keys)

    def _ask(self, what: str, question: Callable[[Cache], T], *, urgent: bool = False) -> T:
        if self._cache is None:
            raise CacheAway("No cache is configured.")
        era = self._admit(self._cache, urgent)
        return self._attempt(era, what, self._cache, question)

    def _attempt(self, era: int, what: str, cache: Cache, question: Callable[[Cache], T]) -> T:
        started = self._clock()
        try:
            return question(cache)
        except Exception as error:  # a cache backend may raise anything
            self._lost(era, what, error, self._clock() - started)
            raise CacheAway(f"The cache failed at {what}.") from error

    def _admit(self, cache: Cache, urgent: bool) -> int:
        """The present era, once the cache may be asked; the one caller that finds out whether it may pays for it."""
        with self._lock:
            if self._retry_at is None:
                return self._era
            now = self._clock()
            if now < self._retry_at and not (urgent and self._cheap):
                raise CacheAway("The cache failed a moment ago.")
            self._retry_at = now + self._retry_after
            era = self._era
            owed = dict(self._owed)
        self._attempt(era, "add", cache, lambda cache: cachecalls.delete_all(cache, list(owed)))
        return self._found(era, owed)

    def _found(self, era: int, paid: Mapping[str, int]) -> int:
        with self._lock:
            for key, number in paid.items():
                if self._owed.get(key) == number:  # else it has come to be owed once more meanwhile
                    del self._owed[key]
            if self._owed:
                self._retry_at = self._clock()
                raise CacheAway("The cache is back, but not yet cleaned up.")
            if self._era != era:
                if self._retry_at is not None:
                    raise CacheAway("The cache came back and failed again.")
                return self._era
            self._era += 1
            self._retry_at = None
            era = self._era
            was_failing, self._failing = self._failing, False
        if was_failing:
            self._logger.info("The cache answers again.")
        return era

    def _lost(self, era: int, what: str, error: Exception, seconds: float) -> None:
        with self._lock:
            if era != self._era:
                return  # asked before the last turn of events: says nothing about the present
            self._era += 1
            self._retry_at = self._clock() + self._retry_after
            self._cheap = seconds < _CHEAP
            was_failing, self._failing = self._failing, True
        if not was_failing:
            self._logger.warning(
                "The cache failed at %s after %.1f s (%s: %s). Going on without it; trying again every %g s.",
                what,
                seconds,
                type(error).__name__,
                error,
                self._retry_after,
            )

    def _check_speed(self, started: float) -> None:
        if self._clock() - started >= _SLOW_MISS:
            raise NoAnswer("it answered with nothing, and too slowly for that")


def guarded(cache: Cache | GuardedCache | None) -> GuardedCache:
    """The guard of a cache, which may be one already."""
    return cache if isinstance(cache, GuardedCache) else GuardedCache(cache)


def seconds(given: float | None, default: float) -> float:
    """A time to live as it was asked for; None, 0 and less ask for the default."""
    return given if given is not None and given > 0 else default
