"""Finding what was accepted and isn't being run: by a process that has died, or stopped before its turn came.

A thread of its own reads markers and hands over what they tell of; it lives only while there is something to look at.
It hands over no more at a time than there are workers, in the order of priorities and of acceptance: the run that
claims a job reads the record, and so sees what other processes have done meanwhile.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django_jobkit.exceptions import StatusCorrupt, StatusNotFound, StatusUnavailable, StorageUnavailable
from django_jobkit.jobs import State
from django_jobkit.jobs.recorder import is_alive

from .compat import task_backends
from .entries import Entry
from .markers import Key, Marker
from .results import call_in

if TYPE_CHECKING:
    from .service import Service

_SHORTEST_DELAY: Final = 0.05
_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 60.0
_LAST_LOOK: Final = 1.0
"""Seconds that a queue which stops waits for a look that is under way."""
_BATCH: Final = 100
"""How many markers are read before the first of those that they tell of is handed over."""

logger = logging.getLogger("django_jobkit.backends")


def retry_delay(tries: int) -> float:
    """Seconds until a storage that has failed ``tries`` times in a row is asked again: 1, 2, 4 … 60."""
    return min(_FIRST_RETRY * 2.0 ** max(tries - 1, 0), _LONGEST_RETRY)


class Recovery:
    """Looks after the entries of ``service`` that no worker has. Thread-safe."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._changed = threading.Condition()
        self._scan_wanted = False
        self._scanned = False
        self._unknown: set[str] = set()  # backends that the site doesn't have (any more), and has been told of
        self._unread: Iterator[Key] | None = None  # what is left of the markers that a scan goes through
        self._to_look_at: deque[Entry] = deque()
        self._later: list[tuple[float, int, Entry]] = []  # a heap, by when it is to be looked at
        self._ready: list[tuple[int, datetime, int, Entry]] = []  # a heap, by when it is to be run
        self._order = itertools.count()
        self._handed_over = 0  # and not begun
        self._thread: threading.Thread | None = None
        self._stopped = False

    @property
    def waiting(self) -> int:
        """How many there are that no worker has been given."""
        with self._changed:
            return len(self._to_look_at) + len(self._later) + len(self._ready)

    def scan(self) -> None:
        """Look at all markers; after the first time, at those of what was accepted some time ago."""
        with self._changed:
            self._scan_wanted = True
            self._wake()

    def look_again(self, entry: Entry, delay: float) -> None:
        """Look at this one in ``delay`` seconds."""
        with self._changed:
            due = time.monotonic() + max(delay, _SHORTEST_DELAY)
            heapq.heappush(self._later, (due, next(self._order), entry))
            self._wake()

    def has_begun(self) -> None:
        """A worker has taken an entry that was handed over."""
        with self._changed:
            self._handed_over -= 1
            self._changed.notify()

    def stop(self) -> None:
        """Hand over no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def take_left(self) -> list[Entry]:
        """The entries that no worker has been given, after `stop`."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LAST_LOOK)  # it may have one in hand
        with self._changed:
            left = [*self._to_look_at, *(item[-1] for item in self._later), *(item[-1] for item in self._ready)]
            self._to_look_at.clear()
            self._later.clear()
            self._ready.clear()
            return left

    # --- the thread ----------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._stopped:
            return
        if self._thread is not None and self._thread.is_alive():
            self._changed.notify()
            return
        thread = threading.Thread(target=self._work, name=f"jobkit-{self._service.alias}-recovery", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # too many threads, or the process is ending
            logger.warning("backend %r can't look for jobs that were left: %s", self._service.alias, error)
        else:
            self._thread = thread

    def _work(self) -> None:
        while (step := self._next_step()) is not None:
            try:
                step()
            except Exception:
                if not self._stopped:  # else the process is ending, and takes away what a look needs
                    logger.exception("backend %r: looking for jobs that were left", self._service.alias)
            finally:
                self._service.release_connections()

    def _next_step(self) -> Callable[[], object] | None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                while self._later and self._later[0][0] <= now:
                    self._to_look_at.append(heapq.heappop(self._later)[-1])
                if self._to_look_at:
                    entry = self._to_look_at.popleft()
                    return lambda: self._look(entry)
                if self._ready and self._handed_over < self._service.options.workers:
                    self._handed_over += 1
                    first = heapq.heappop(self._ready)[-1]
                    return lambda: self._hand_over(first)
                if self._scan_wanted or self._unread is not None:
                    self._scan_wanted = False
                    return self._scan
                if not (self._later or self._ready):
                    break
                self._changed.wait(min(self._later[0][0] - now, threading.TIMEOUT_MAX) if self._later else None)
            self._thread = None
            return None

    def _scan(self) -> None:
        """Read the next batch of markers."""
        service = self._service
        try:
            self._unread = self._unread or iter(service.markers)
            batch = list(islice(self._unread, _BATCH))
            found = self._read([key for key in batch if not service.has(key)])
        except StorageUnavailable as error:
            logger.warning("backend %r can't look for jobs that were left yet: %s", service.alias, error)
            self._unread = None
            service.look_sooner()
            return
        since = None
        if self._scanned and service.options.recover_every is not None:
            # What is younger may well be another process's, that is about to run it.
            since = service.now() - timedelta(seconds=service.options.recover_every)
        for key, marker in found:
            if marker.call.backend != service.alias:
                self._report_nobodys(key, marker)
            elif since is None or marker.accepted_at <= since:
                self._take(Entry(key, marker.call, marker.accepted_at, service.run, durable=True, recovered=True))
        if len(batch) < _BATCH:
            self._unread = None
            self._scanned = True

    def _report_nobodys(self, key: Key, marker: Marker) -> None:
        alias = marker.call.backend
        if alias not in task_backends.settings and alias not in self._unknown:
            self._unknown.add(alias)
            logger.warning("job %s, and maybe others, waits for TASKS[%r], which there isn't", key.job_id, alias)

    def _read(self, keys: list[Key]) -> list[tuple[Key, Marker]]:
        """These markers, but for those that are gone meanwhile. One that is damaged is left out, and reported."""
        if not keys:
            return []
        read = self._service.markers.read
        with ThreadPoolExecutor(min(self._service.kit.settings.concurrency, len(keys)), "jobkit-markers") as pool:
            reading = [(key, pool.submit(read, key)) for key in keys]
        found = []
        for key, future in reading:
            try:
                marker = future.result()
            except ValueError as error:
                logger.error("the marker of job %s is damaged: %s", key.job_id, error, extra={"job_id": key.job_id})
                continue
            if marker is not None:
                found.append((key, marker))
        return found

    def _take(self, entry: Entry) -> None:
        run_after = entry.call.run_after
        wait = 0.0 if run_after is None else (run_after - self._service.now()).total_seconds()
        with self._changed:
            if self._stopped or not self._service.take(entry):
                return
            if wait > 0:
                heapq.heappush(self._later, (time.monotonic() + wait, next(self._order), entry))
            else:
                self._make_ready(entry)

    def _make_ready(self, entry: Entry) -> None:
        with self._changed:
            heapq.heappush(self._ready, (-entry.call.priority, entry.accepted_at, next(self._order), entry))

    def _look(self, entry: Entry) -> None:
        service = self._service
        if entry.done:
            service.forget(entry, ended=True)
            return
        if entry.unwritten:  # there is nothing to look at yet
            self._make_ready(entry)
            return
        try:
            status: Any = service.kit.store.get(entry.key.job_id)
        except StatusNotFound:
            service.forget(entry, ended=True)  # somebody has deleted the job
            return
        except StatusUnavailable as error:
            entry.tries += 1
            logger.warning("job %s: %s", entry.key.job_id, error, extra={"job_id": entry.key.job_id})
            self.look_again(entry, retry_delay(entry.tries))
            return
        except StatusCorrupt as error:
            logger.error("job %s: %s", entry.key.job_id, error, extra={"job_id": entry.key.job_id})
            service.forget(entry, ended=False)
            return
        entry.tries = 0
        now = service.now()
        recorded = call_in(status)
        run_after = entry.call.run_after
        if recorded is not None and recorded.token != entry.call.token:
            service.forget(entry, ended=True)  # it was submitted anew, under a marker of its own
        elif status.state == State.QUEUED and run_after is not None and run_after > now:
            self.look_again(entry, (run_after - now).total_seconds())
        elif status.state == State.RUNNING and is_alive(status, now):
            self.look_again(entry, (status.lease_expires_at - now).total_seconds())
        elif status.state == State.QUEUED or (
            status.state == State.RUNNING and getattr(status, "lease_expires_at", None) is not None
        ):
            self._make_ready(entry)
        else:
            # A run without a lease isn't ours, and whether it is alive can't be told; all else has ended.
            service.forget(entry, ended=status.state != State.RUNNING)

    def _hand_over(self, entry: Entry) -> None:
        entry.recovered = True  # `has_begun` is to be called for it
        handed_over = False
        try:
            handed_over = self._service.run_recovered(entry)
        finally:
            if not handed_over:  # the queue is full or stopping, or has no thread
                self.has_begun()
                self.look_again(entry, retry_delay(1))
