"""Two caches over Django's cache framework: values by job ID here, and the list of job IDs in `idlist`.

Both take any object with the methods of a Django cache. It may be None, fail or hang: see `guard`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar, cast, overload

from ..exceptions import InvalidJobID
from . import ids
from .cachecalls import Cache
from .cacheformat import safe_name
from .guard import CacheAway, GuardedCache, guarded, seconds
from .idlist import DEFAULT_LIST_TTL, IDListCache

__all__ = ["DEFAULT_LIST_TTL", "DEFAULT_TTL", "IDListCache", "TTLCache"]

T = TypeVar("T")
D = TypeVar("D")

DEFAULT_TTL: Final = 600.0
"""Seconds for which `TTLCache` keeps a value."""
_MISSING: Final = object()


class TTLCache(Generic[T]):
    """Values by job ID, kept for ``ttl`` seconds from when they were set; reading doesn't prolong that.

    ``ttl`` None, 0 or less is the default. Entries live under ``namespace``; caches that share a server must
    differ in it. IDs that `ids.sanitize` makes equal (``abc``, ``dir/abc``) are one entry; a text that it refuses
    is an entry of its own, so that a cache never makes a call fail that would work without it.

    No method raises because of the cache: what it can't do is a miss. Without a cache every read is a miss.
    Thread-safe.
    """

    def __init__(
        self, cache: Cache | GuardedCache | None, ttl: float | None = DEFAULT_TTL, *, namespace: str = "jobkit:status"
    ) -> None:
        self._cache = guarded(cache)
        self._ttl = seconds(ttl, DEFAULT_TTL)
        self._prefix = f"{safe_name(namespace, also=':')}:"

    @overload
    def get(self, job_id: str) -> T | None: ...
    @overload
    def get(self, job_id: str, default: D) -> T | D: ...
    def get(self, job_id: str, default: object = None) -> object:
        """The value, or ``default`` if there is none."""
        try:
            value = self._cache.get(self._key(job_id), _MISSING)
        except CacheAway:
            return default
        return default if value is _MISSING else value

    def set(self, job_id: str, value: T, ttl: float | None = None) -> None:
        """Keep the value, for this cache's own ``ttl`` if none is given."""
        self._cache.set(self._key(job_id), value, seconds(ttl, self._ttl))

    def delete(self, job_id: str) -> None:
        """Forget the value; at the latest before this process next reads from a cache that was away."""
        self._cache.delete(self._key(job_id))

    def get_many(self, job_ids: Iterable[str]) -> dict[str, T]:
        """The values that are there, in one command, each under the ID as it was asked for."""
        keys = {job_id: self._key(job_id) for job_id in job_ids}
        try:
            found = self._cache.get_many(list(dict.fromkeys(keys.values())))
        except CacheAway:
            return {}
        return {job_id: cast(T, found[key]) for job_id, key in keys.items() if key in found}

    def set_many(self, values: Mapping[str, T], ttl: float | None = None) -> None:
        """`set` for several jobs, in one command."""
        named = {self._key(job_id): value for job_id, value in values.items()}
        self._cache.set_many(named, seconds(ttl, self._ttl))

    def count(self) -> int:
        """How many entries there are, for monitoring; 0 without a cache. Raises `KeysNotListable`."""
        return sum(":" not in key.rpartition(self._prefix)[2] for key in self._cache.keys(self._prefix))

    def close(self) -> None:
        """Nothing to do: no thread runs here, and connections are Django's to close. May be called repeatedly."""

    def _key(self, job_id: str) -> str:
        try:
            return self._prefix + ids.sanitize(job_id)
        except InvalidJobID:
            return f"{self._prefix}~{safe_name(str(job_id))}"  # no ID starts with "~"
