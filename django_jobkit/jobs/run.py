"""A worker's hold on one job, from the record of its begin to the record of its end.

In between, one thread per run writes what is new at most once an interval and renews the lease, so that the work
itself never waits for a storage. It sleeps until something is due, and isn't started before there is something.

Each write is conditional on the version of the run's own last one, so it costs one request; only when somebody else
has written since is the file read, to see whether the job is still this worker's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from ..exceptions import StatusNotEncodable
from .recorder import RENEW_AT, Claim, Recorder
from .status import State, Status
from .swap import NotSaved, Previous, Saved, swap

S = TypeVar("S", bound=Status)

END_TRIES: Final = 3  # each of them already retries within the storage's own time limit


class Run(Generic[S]):
    """The hold on ``job_id`` that ``claim`` gave.

    ``live(status)`` writes the job's present values into a status; it is called from the run's own thread, too.
    ``interval`` is the least time in seconds between two writes. `touch`, `lost` and `finish` may be called from any
    thread.
    """

    def __init__(
        self,
        recorder: Recorder[S],
        job_id: str,
        claim: Claim[S],
        begun: S,
        *,
        live: Callable[[S], object],
        interval: float = 1.0,
        logger: logging.Logger | None = None,
    ) -> None:
        self.recorder = recorder
        self.job_id = job_id
        self.saved = claim.saved
        self.lost = threading.Event()
        """Set once the job isn't this worker's any more: taken over, deleted, submitted anew, finished by another."""
        self._lease_id = claim.lease_id
        self._begun = begun
        self._live = live
        self._interval = interval
        self._renew_after = recorder.lease * RENEW_AT if claim.lease_id and recorder.lease else None
        self._logger = logger or logging.getLogger("django_jobkit.run")
        self._writing = threading.Lock()
        self._wake = threading.Condition()
        self.dirty = False
        self._stopped = False
        self._last_write = time.monotonic()
        self._keeper: threading.Thread | None = None
        if self._renew_after is not None:
            self._start_keeper()

    def touch(self) -> None:
        """Have the present values written within the interval. Costs next to nothing; never raises."""
        if self.dirty or self._stopped:
            return
        with self._wake:
            self.dirty = True
            if self._keeper is None:
                self._start_keeper()
            self._wake.notify()

    def finish(self, change: Callable[[S], object]) -> bool:
        """Write the end: the present values and what ``change`` makes of them. Whether it is recorded.

        It isn't if the job is `lost`. Raises `NotSaved` if the storage failed again and again.
        """
        with self._wake:
            self._stopped = True
            self._wake.notify()
        if self._keeper is not None:
            self._keeper.join()  # a write under way is bounded by the storage's timeout
        for tries_left in reversed(range(END_TRIES)):
            try:
                return self._write(change)
            except NotSaved as error:
                if not tries_left or isinstance(error.cause, StatusNotEncodable):
                    raise
                self._logger.warning("job %s: its end can't be recorded yet: %s", self.job_id, error.cause)
                self.lost.wait(self._interval)
        return False

    # --- the run's own thread -----------------------------------------------------------------------------------

    def _start_keeper(self) -> None:
        keeper = threading.Thread(target=self._keep, name=f"jobkit-run-{self.job_id}", daemon=True)
        try:
            keeper.start()
        except RuntimeError as error:  # too many threads, or the interpreter is ending; the work can still be done
            self._logger.warning("job %s runs without records of its progress: %s", self.job_id, error)
        else:
            self._keeper = keeper

    def _keep(self) -> None:
        while self._wait_until_due():
            try:
                self.dirty = False
                if not self._write(lambda status: None):
                    return
            except NotSaved as error:
                self.dirty = True
                self._logger.warning("job %s: its progress can't be recorded: %s", self.job_id, error.cause)
            except Exception:
                self._logger.exception("job %s: its progress can't be recorded", self.job_id)
            self._last_write = time.monotonic()

    def _wait_until_due(self) -> bool:
        with self._wake:
            while not self._stopped:
                since = time.monotonic() - self._last_write
                waits = [self._renew_after - since] if self._renew_after is not None else []
                if self.dirty:
                    waits.append(self._interval - since)
                if waits and min(waits) <= 0:
                    return True
                self._wake.wait(min(waits) if waits else None)
        return False

    # --- writing ------------------------------------------------------------------------------------------------

    def _write(self, change: Callable[[S], object]) -> bool:
        store = self.recorder.store
        if store is None or self.lost.is_set():
            return False

        def decide(previous: Previous[S]) -> S | None:
            if previous.error is not None:
                raise NotSaved(previous.error)
            next_ = self._next(previous.status)
            if next_ is None:
                return None
            self._live(next_)
            change(next_)
            if self._lease_id and next_.state == State.RUNNING:
                self.recorder.put_lease(next_, self._lease_id)
            elif self._lease_id:
                vars(next_).update(lease_id="", lease_expires_at=None)
            return next_

        with self._writing:
            saved: Saved[S] | None = swap(store, self.job_id, decide, known=self.saved)
            if saved is None:
                self.lost.set()
                return False
            self.saved = saved
            return True

    def _next(self, prev: S | None) -> S | None:
        """The status to go on from, or None if the job isn't ours any more."""
        if self.saved is None:  # not even the begin could be recorded
            if prev is not None and prev.is_terminal:
                return None
            next_ = self._begun.clone()
            if prev is not None:
                next_.carry_over(prev)
            next_.attempts += 1
            return next_
        if prev is None or prev.is_terminal or prev.state == State.QUEUED:
            return None
        if self._lease_id and getattr(prev, "lease_id", "") != self._lease_id:
            return None
        return prev.clone()
