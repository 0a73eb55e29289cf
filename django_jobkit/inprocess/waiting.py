"""Who is next. Knows neither threads nor a clock: its owner holds the lock and says what time it is."""

from __future__ import annotations

import heapq
import itertools
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U", int, float)
V = TypeVar("V", int, float)


class WaitingLine(Generic[T]):
    """Things in the order in which they are to be taken: by priority, and first come, first served within one.

    A delayed thing comes into the line at its time, before what comes after that. Times are seconds on any clock
    that doesn't run backwards. Not thread-safe.

    Whoever adds may be interrupted, by a signal handler of its own thread, at any moment, for others to take what is
    there. Therefore adding is one call into C, and all counts are taken from the two heaps.
    """

    def __init__(self) -> None:
        self._ready: list[tuple[int, float, int, T]] = []  # (-priority, when it came, place, thing)
        self._delayed: list[tuple[float, int, int, T]] = []  # (due, place, -priority, thing)
        self._places = itertools.count()  # orders what came at one time, so that things aren't compared

    @property
    def ready(self) -> int:
        """How many are in the line."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """How many have not come into the line: since their time hasn't come, or since the last `promote`."""
        return len(self._delayed)

    @property
    def next_due(self) -> float | None:
        """When the first delayed thing is due; None without one."""
        return self._delayed[0][0] if self._delayed else None

    def depth(self, free: int) -> int:
        """How many wait, the delayed ones too, when ``free`` takers are about to take one each."""
        return len(self._delayed) + max(0, len(self._ready) - free)

    def due_later(self, now: float) -> int:
        """How many are waiting for their time."""
        return sum(entry[0] > now for entry in self._delayed.copy())

    def longest_wait(self, now: float) -> float:
        """Seconds since the time of the one that has been waiting longest in the line, or should be; 0.0 if none."""
        oldest = min((entry[1] for entry in self._ready.copy()), default=now)
        due = self.next_due
        return now - min(oldest, now if due is None else due)

    def add(self, thing: T, *, priority: int, now: float) -> object:
        """Put it into the line. Returns what `withdraw` takes."""
        entry = (-priority, now, next(self._places), thing)
        heapq.heappush(self._ready, entry)
        return entry

    def add_delayed(self, thing: T, *, priority: int, due: float) -> object:
        """Keep it out of the line until ``due``. Returns what `withdraw` takes."""
        entry = (due, next(self._places), -priority, thing)
        heapq.heappush(self._delayed, entry)
        return entry

    def withdraw(self, added: object) -> bool:
        """Take out what was added, if it is still there."""
        return _remove(added, self._ready) or _remove(added, self._delayed)

    def promote(self, now: float) -> int:
        """Have what is due come into the line; the number of those that did. For takers, who aren't interrupted."""
        moved = 0
        while self._delayed and self._delayed[0][0] <= now:
            due, place, priority, thing = heapq.heappop(self._delayed)
            heapq.heappush(self._ready, (priority, due, place, thing))
            moved += 1
        return moved

    def take(self) -> T:
        """The next in the line, taken out. IndexError when there is none."""
        return heapq.heappop(self._ready)[3]

    def clear(self) -> list[T]:
        """Take out everything: the line in its order, then the delayed in theirs."""
        ready, self._ready = self._ready, []
        delayed, self._delayed = self._delayed, []
        return [entry[3] for entry in (*sorted(ready, key=_order), *sorted(delayed, key=_order))]


def _remove(added: object, heap: list[tuple[U, V, int, T]]) -> bool:
    for position, entry in enumerate(heap):
        if entry is added:
            del heap[position]
            heapq.heapify(heap)
            return True
    return False


def _order(entry: tuple[float, float, int, object]) -> tuple[float, float, int]:
    return entry[:3]
