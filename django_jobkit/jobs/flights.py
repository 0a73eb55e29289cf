"""One listing at a time in this process, shared by those who waited for it to start: what is left without a cache."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from ..exceptions import ListTimeout


class _Flight:
    """One call of ``collect``, or the one to come."""

    __slots__ = ("ids", "landed", "started")

    def __init__(self) -> None:
        self.started: float | None = None
        self.landed = False
        self.ids: list[str] | None = None  # None once landed: it failed


class Flights:
    """Lets callers that want the same list at the same time share a scan that began after each of them asked.

    Nobody joins a scan that is under way: it may have passed by a job that was deleted or added since. So of many
    callers at once the first scans, and the others share the next scan when that one has ended, two in all. Any of
    them sees everything that was written before it asked, whichever process wrote it.

    A scan that has not ended after ``patience`` seconds is no longer waited for. Thread-safe.
    """

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._changed = threading.Condition()
        self._running: dict[str, _Flight] = {}
        self._boarding: dict[str, _Flight] = {}

    def run(self, key: str, collect: Callable[[], Iterable[str]], deadline: float) -> list[str]:
        """The list, a fresh one for every caller.

        ``deadline`` (on the clock) ends the waiting for others, not one's own scan: `ListTimeout`. An error from
        ``collect`` reaches the caller whose ``collect`` it was; the others try with theirs.
        """
        while True:
            flight = self._board(key, deadline)
            if not flight.landed:
                return self._fly(key, flight, collect)
            if flight.ids is not None:
                return list(flight.ids)

    def _board(self, key: str, deadline: float) -> _Flight:
        """A flight that has landed, or one that the caller has to fly."""
        with self._changed:
            flight = self._boarding.setdefault(key, _Flight())
            while not flight.landed:
                now = self._clock()
                ahead = self._running.get(key) if flight.started is None else flight
                rest = 0.0 if ahead is None or ahead.started is None else ahead.started + self._patience - now
                if rest <= 0 and flight.started is None:
                    del self._boarding[key]
                    flight.started = now
                    self._running[key] = flight
                    break
                if rest <= 0:
                    flight = self._boarding.setdefault(key, _Flight())
                    continue
                if now >= deadline:
                    raise ListTimeout(f"Another thread's listing of {key!r} did not end in time.")
                self._changed.wait(min(deadline - now, rest))
            return flight

    def _fly(self, key: str, flight: _Flight, collect: Callable[[], Iterable[str]]) -> list[str]:
        try:
            flight.ids = list(collect())
        finally:
            with self._changed:
                flight.landed = True
                if self._running.get(key) is flight:
                    del self._running[key]
                self._changed.notify_all()
        return list(flight.ids)
