"""Who is next. Knows neither threads nor a clock: its owner holds the lock and says what time it is."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")
# When it comes into the line; a number that orders what comes at one time, so that things aren't compared; its
# priority; the thing.
Entry = tuple[float, int, int, T]
Added = tuple[list[Entry[T]], Entry[T]]

_first = itemgetter(0)


class WaitingLine(Generic[T]):
    """Things in the order in which they are to be taken: by priority, and first come, first served within one.

    A delayed thing comes into the line at its time, before what comes after that. Times are seconds on any clock
    that doesn't run backwards. The costs grow with the number of different priorities at hand, and hardly with that
    of things, but for `clear` and `withdraw`. Not thread-safe.

    Whoever adds may be interrupted, by a signal handler of its own thread, between any two steps, for others to take
    and to clear what is there. Therefore counts are taken from what holds the things, in calls into C, of
    copies; and what `add` returns finds the thing again even if its lane has been closed meanwhile.
    """

    def __init__(self) -> None:
        self._lanes: dict[int, list[Entry[T]]] = {}  # by priority; each a heap
        self._delayed: list[Entry[T]] = []  # a heap
        self._numbers = itertools.count()

    @property
    def ready(self) -> int:
        """How many are in the line."""
        return sum(map(len, list(self._lanes.values())))

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
        return len(self._delayed) + max(0, self.ready - free)

    def due_later(self, now: float) -> int:
        """How many are waiting for their time."""
        due = self.next_due
        if due is None or due > now:
            return len(self._delayed)
        return sum(entry[0] > now for entry in self._delayed.copy())  # nobody has been free to promote

    def longest_wait(self, now: float) -> float:
        """Seconds since the time of the one that has been waiting longest in the line, or should be; 0.0 if none."""
        oldest = min(map(_first, filter(None, list(self._lanes.values()))), default=None)
        due = self.next_due
        return now - min(now if oldest is None else oldest[0], now if due is None else due)

    def add(self, thing: T, *, priority: int, now: float) -> Added[T]:
        """Put it into the line. Returns what `withdraw` takes."""
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = []
        entry = (now, next(self._numbers), priority, thing)
        heapq.heappush(lane, entry)
        return lane, entry

    def add_delayed(self, thing: T, *, priority: int, due: float) -> Added[T]:
        """Keep it out of the line until ``due``. Returns what `withdraw` takes."""
        delayed, entry = self._delayed, (due, next(self._numbers), priority, thing)
        heapq.heappush(delayed, entry)
        return delayed, entry

    def find(self, is_it: Callable[[T], bool]) -> Added[T] | None:
        """What `withdraw` takes, for the first thing of which that is true; None if there is none."""
        for heap in (*list(self._lanes.values()), self._delayed):
            for entry in heap.copy():
                if is_it(entry[3]):
                    return heap, entry
        return None

    @staticmethod
    def withdraw(added: Added[T]) -> bool:
        """Take out what was added, if it is still where it was put."""
        heap, entry = added
        for position, other in enumerate(heap):
            if other is entry:
                del heap[position]
                heapq.heapify(heap)
                return True
        return False

    def promote(self, now: float) -> int:
        """Have what is due come into the line; the number of those that did. For takers, who aren't interrupted."""
        moved = 0
        while self._delayed and self._delayed[0][0] <= now:
            entry = heapq.heappop(self._delayed)
            heapq.heappush(self._lanes.setdefault(entry[2], []), entry)
            moved += 1
        return moved

    def take(self) -> T:
        """The next in the line, taken out. For takers, who aren't interrupted. ValueError when there is none."""
        while True:
            priority = max(self._lanes)
            lane = self._lanes[priority]
            taken = heapq.heappop(lane) if lane else None
            if not lane:
                del self._lanes[priority]
            if taken is not None:  # else somebody was interrupted between opening the lane and using it
                return taken[3]

    def clear(self) -> list[T]:
        """Take out everything: the line in its order, then the delayed in theirs."""
        lanes, self._lanes = self._lanes, {}
        delayed, self._delayed = self._delayed, []
        out: list[T] = []
        for heap in (*(lanes[priority] for priority in sorted(lanes, reverse=True)), delayed):
            out += [entry[3] for entry in sorted(heap, key=itemgetter(0, 1))]
            heap.clear()  # so that nobody who has put something there can withdraw it as well
        return out
