"""The cache of the list of job IDs, which is dear to collect. The keys of a list:

====================  ==============================  =======================================================
key                   holds                           lives
====================  ==============================  =======================================================
``e:{list}``          a random token, the *epoch*     for good
``d:{list}:{epoch}``  the IDs, as scanned             ``ttl`` seconds from the end of the scan
``l:{list}:{epoch}``  a random token, the *lease*     ``lease`` seconds, or until its scan ends
``c:{list}``          how many IDs were *announced*   for good
``n:{list}:{number}`` the ID announced under a number until every list scanned before has ended
====================  ==============================  =======================================================

A reader takes the epoch, then the IDs under it: two commands. If there are none, it takes the lease with ``add``,
scans, and stores what it found under the epoch that it read *before* the scan; others who find the lease taken poll
for the IDs with growing pauses, and take the lease over once it is gone.

- *Why an epoch.* Who deletes a job writes the storage first, then `IDListCache.invalidate` sets a new epoch. A scan
  that began before stores its list under the old one, where nobody looks any more. Deleting the list itself instead
  lets such a scan bring back what was deleted: measured with eight processes, 1544 of 6600 lists that should have
  been fresh were stale with an ``add`` lease, and 247 of 7368 with a lock of django-redis; with the epoch 0 of 4958.
- *Why random.* An epoch that the cache has dropped (LocMem drops even what never expires, Redis restarts) is made
  anew, and must never meet a list that was stored under it in an earlier life.
- *Why announcements.* A job just made should be seen at once, and a busy site makes one a second: scanning anew for
  each would make every page list everything. So its ID is put under the next number, and a list remembers how many
  it has heard of; a reader adds those that came since. It learns the count together with the epoch, so that a list
  without news still takes two commands.
- *Why a lease, not a lock.* It only saves work. Losing it, by a timeout, an eviction or a cache whose ``add`` isn't
  atomic (the file-based one), costs a second scan, never wrong data. A scanner that is killed costs the others at
  most ``lease`` seconds.
- *Why one text.* A pickled list of a million IDs took 0.5 s to set and 0.4 s to get, the same joined by newlines
  0.08 s and 0.24 s. The first line is one character that names the format.

What this can't do: a process that can't reach the cache can't tell the others. If `invalidate` fails, its own
process goes without the cache until it has reached it; other processes may list the deleted job until their list's
``ttl`` ends. The same goes for a Redis that comes back with an old snapshot, and for replicas that lag behind.
A memcached takes no item above 1 MB, some 30,000 IDs: longer lists fail there, and with them, for some seconds each
time, the cache.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from ..exceptions import ListTimeout
from .cachecalls import Cache
from .cacheformat import decode, encode, safe_name
from .flights import Flights
from .guard import CacheAway, GuardedCache, guarded, seconds

DEFAULT_LIST_TTL: Final = 60.0
"""Seconds for which `IDListCache` keeps a list: the longest a new job that nobody announced stays invisible."""
DEFAULT_LEASE: Final = 10.0
"""Seconds a scan is waited for after the last sign of life of its process."""
DEFAULT_WAIT: Final = 30.0
"""Seconds for which a caller waits for another's scan."""

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.25
_ROUNDS: Final = 5  # times to wait for the end of another's lease in vain
_SUPERSEDED_TTL: Final = 5.0  # long enough for those who are polling for it
_LONGEST_SCAN: Final = 600.0  # seconds: announcements outlive a list that took this long to scan
_MOST_NEWS: Final = 2000  # announcements read at once; older ones become visible with the next scan
_CHUNK: Final = 1000  # IDs between two looks at the clock; the page size of object storages


class IDListCache:
    """The IDs under a prefix, scanned by one of many callers in any process and kept for ``ttl`` seconds.

    ``ttl`` and ``lease`` (seconds) of None, 0 or less are their defaults. ``lease`` bounds what a killed scanner
    costs the others; a scan that takes longer should be handed over as an iterator, so that it can show signs of
    life. ``wait`` is how long a caller waits for another's scan if it doesn't say. Entries live under ``namespace``.

    The cache failing never makes `load` fail: then one thread of this process scans for all who are waiting (see
    `flights`). Thread-safe.
    """

    def __init__(
        self,
        cache: Cache | GuardedCache | None,
        ttl: float | None = DEFAULT_LIST_TTL,
        *,
        namespace: str = "jobkit:ids",
        lease: float | None = DEFAULT_LEASE,
        wait: float = DEFAULT_WAIT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        token: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._cache = guarded(cache)
        self._ttl = seconds(ttl, DEFAULT_LIST_TTL)
        self._lease = seconds(lease, DEFAULT_LEASE)
        self._wait = wait
        self._clock = clock
        self._sleep = sleep
        self._token = token
        self._prefix = safe_name(namespace, also=":")
        self._flights = Flights(self._lease, clock)

    def load(self, key: str, collect: Callable[[], Iterable[str]], *, timeout: float | None = None) -> list[str]:
        """The IDs, in the order in which ``collect`` gave them; a fresh list that the caller may change.

        They are no older than ``ttl``, and no older than the last `invalidate` that returned before this call.
        ``key`` names what is listed (a prefix); use few of them. ``timeout`` (seconds) ends the waiting for
        another's scan, not one's own: `ListTimeout`, and the scan goes on for the others. What ``collect`` raises
        goes to the one caller whose ``collect`` it was, and isn't kept.
        """
        deadline = self._clock() + (self._wait if timeout is None else timeout)
        try:
            return self._load_shared(key, collect, deadline)
        except CacheAway:
            pass  # and not from within: an error of collect is no consequence of the cache's
        return self._flights.run(key, collect, deadline)

    def announce(self, key: str, job_id: str) -> None:
        """Have later calls of `load`, in any process, include this ID. Call it after the job has been stored.

        Unlike `invalidate` it costs nobody a scan. What can't be announced becomes visible when the list's ``ttl``
        ends, or at once by an `invalidate`, which is what happens where the cache is away.
        """
        name = safe_name(key)
        try:
            number = self._cache.count_up(self._counter_key(name))
        except CacheAway:
            self.invalidate(key)
        else:
            self._cache.set(self._key("n", name, str(number)), job_id, 2 * self._ttl + _LONGEST_SCAN)

    def invalidate(self, key: str) -> None:
        """Have all later calls of `load`, in any process, scan anew. Call it after the storage has been changed."""
        name = safe_name(key)
        try:
            superseded = self._cache.get(self._epoch_key(name))
        except CacheAway:
            superseded = None
        self._cache.replace(self._epoch_key(name), self._token())
        if isinstance(superseded, str):  # a large list would fill the cache until its TTL ends
            self._cache.delete(self._key("d", name, superseded))

    def count(self) -> int:
        """How many lists are kept, for monitoring; 0 without a cache. Raises `KeysNotListable`."""
        prefix = f"{self._prefix}:d:"
        kept = [key.rpartition(prefix)[2].partition(":")[::2] for key in self._cache.keys(prefix)]
        try:
            epochs = self._cache.get_many([self._epoch_key(name) for name, _ in kept])
        except CacheAway:
            return 0
        return sum(epochs.get(self._epoch_key(name)) == epoch for name, epoch in kept)

    def _load_shared(self, key: str, collect: Callable[[], Iterable[str]], deadline: float) -> list[str]:
        name = safe_name(key)
        pause = _FIRST_PAUSE
        for _ in range(_ROUNDS):
            epoch, announced = self._epoch(name)
            data_key, lease_key = self._key("d", name, epoch), self._key("l", name, epoch)
            found = decode(self._cache.get(data_key))
            if found is not None:
                return self._with_news(name, *found, announced)
            lease = self._token()
            if self._cache.add(lease_key, lease, self._lease):
                found = decode(self._cache.get(data_key))  # another may have finished since the last look
                if found is None:
                    return self._scan(name, epoch, announced, lease, collect)
                self._cache.delete(lease_key)
                return self._with_news(name, *found, announced)
            while True:
                left = deadline - self._clock()
                if left <= 0:
                    raise ListTimeout(f"The listing of {key!r} by another caller did not end in time.")
                self._sleep(min(left, pause * random.uniform(0.7, 1.0)))  # noqa: S311
                pause = min(pause * 1.5, _LONGEST_PAUSE)
                seen = self._cache.get_many([data_key, lease_key])
                found = decode(seen.get(data_key))
                if found is not None:
                    return self._with_news(name, *found, announced)
                if lease_key not in seen:
                    break  # its scan failed, its process died, or what it found is superseded
        raise CacheAway("The cache keeps neither leases nor lists.")  # as memcached does if told to ignore errors

    def _with_news(self, name: str, job_ids: list[str], heard: int, announced: int) -> list[str]:
        """The list and what was announced since it was scanned, as far as this caller knows of it."""
        if announced <= heard:
            return job_ids
        numbers = range(max(heard, announced - _MOST_NEWS) + 1, announced + 1)
        news = self._cache.get_many([self._key("n", name, str(number)) for number in numbers])
        known = set(job_ids)
        fresh = dict.fromkeys(str(job_id) for job_id in news.values())
        return job_ids + [job_id for job_id in fresh if job_id not in known]

    def _scan(
        self, name: str, epoch: str, announced: int, lease: str, collect: Callable[[], Iterable[str]]
    ) -> list[str]:
        lease_key = self._key("l", name, epoch)
        holder: object = lease
        try:
            job_ids = self._collect(lease_key, collect)
            payload = encode(job_ids, announced)
            try:
                seen = self._cache.get_many([self._epoch_key(name), lease_key])
                holder = seen.get(lease_key)
                ttl = self._ttl if seen.get(self._epoch_key(name)) == epoch else _SUPERSEDED_TTL
                if holder == lease:
                    self._cache.set(self._key("d", name, epoch), payload, ttl)
                elif holder is None:  # ran out; a successor's list, if there is one, is newer
                    self._cache.add(self._key("d", name, epoch), payload, ttl)
            except CacheAway:
                pass
            return job_ids
        finally:
            if holder == lease:
                self._cache.delete(lease_key)

    def _collect(self, lease_key: str, collect: Callable[[], Iterable[str]]) -> list[str]:
        renew_at = self._clock() + self._lease / 3
        scan = iter(collect())
        job_ids: list[str] = []
        while chunk := list(islice(scan, _CHUNK)):
            job_ids += chunk
            if self._clock() >= renew_at:
                self._cache.touch(lease_key, self._lease)
                renew_at = self._clock() + self._lease / 3
        return job_ids

    def _epoch(self, name: str) -> tuple[str, int]:
        """The epoch, and how many IDs have been announced so far: asked before a scan begins."""
        key, counter_key = self._epoch_key(name), self._counter_key(name)
        seen = self._cache.get_many([key, counter_key])
        counted = seen.get(counter_key)
        announced = counted if isinstance(counted, int) else 0
        epoch = seen.get(key)
        if isinstance(epoch, str):
            return epoch, announced
        fresh = self._token()
        if self._cache.add(key, fresh, None):
            return fresh, announced
        epoch = self._cache.get(key)
        # Neither to be had nor to be set: a cache that forgets. An epoch of one's own shares nothing, and is right.
        return epoch if isinstance(epoch, str) else fresh, announced

    def _epoch_key(self, name: str) -> str:
        return f"{self._prefix}:e:{name}"

    def _counter_key(self, name: str) -> str:
        return f"{self._prefix}:c:{name}"

    def _key(self, kind: str, name: str, which: str) -> str:
        return f"{self._prefix}:{kind}:{name}:{which}"
