"""Who is next. Knows neither threads nor a clock: its owner holds the lock and says what time it is."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class WaitingLine(Generic[T]):
    """Things in the order in which they are to be taken: by priority, and first come, first served within one.

    A delayed thing comes into the line at its time, behind what had come before then. Times are seconds on any
    clock that doesn't run backwards. Adding and taking cost the same however long the line is; taking grows with the
    number of different priorities in it. Not thread-safe.
    """

    def __init__(self) -> None:
        self._lanes: dict[int, deque[tuple[float, T]]] = {}  # by priority: when it came, and the thing; never empty
        self._ready = 0
        self._delayed: list[tuple[float, int, int, T]] = []  # a heap of due, place, priority, thing
        self._places = itertools.count()  # so that what is due at one time keeps its order, and isn't compared

    @property
    def ready(self) -> int:
        """How many may be taken now."""
        return self._ready

    @property
    def delayed(self) -> int:
        """How many are waiting for their time."""
        return len(self._delayed)

    @property
    def next_due(self) -> float | None:
        """When the first delayed thing comes into the line; None without one."""
        return self._delayed[0][0] if self._delayed else None

    @property
    def oldest(self) -> float | None:
        """When the one that has been in the line for longest came into it; None if the line is empty."""
        return min((lane[0][0] for lane in self._lanes.values()), default=None)

    def depth(self, free: int) -> int:
        """How many wait, the delayed ones too, when ``free`` takers are about to take one each."""
        return len(self._delayed) + max(0, self._ready - free)

    def add(self, thing: T, *, priority: int, now: float) -> None:
        """Put it into the line. Call `promote` first: those due before ``now`` go before it."""
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = deque()
        lane.append((now, thing))
        self._ready += 1

    def add_delayed(self, thing: T, *, priority: int, due: float) -> None:
        """Keep it out of the line until ``due``."""
        heapq.heappush(self._delayed, (due, next(self._places), priority, thing))

    def promote(self, now: float) -> int:
        """Move into the line what is due; the number of those moved."""
        moved = 0
        while self._delayed and self._delayed[0][0] <= now:
            due, _, priority, thing = heapq.heappop(self._delayed)
            self.add(thing, priority=priority, now=due)
            moved += 1
        return moved

    def take(self) -> T:
        """The next one, taken out. ValueError when nothing is ready."""
        priority = max(self._lanes)
        lane = self._lanes[priority]
        _, thing = lane.popleft()
        self._ready -= 1
        if not lane:
            del self._lanes[priority]
        return thing

    def clear(self) -> list[T]:
        """Take out everything: the ready in their order, then the delayed in theirs."""
        out = [thing for priority in sorted(self._lanes, reverse=True) for _, thing in self._lanes[priority]]
        self._lanes.clear()
        self._ready = 0
        return out + self.clear_delayed()

    def clear_delayed(self) -> list[T]:
        """Take out what isn't due yet, the first due first."""
        out = [entry[3] for entry in sorted(self._delayed, key=lambda entry: entry[:2])]
        self._delayed.clear()
        return out
