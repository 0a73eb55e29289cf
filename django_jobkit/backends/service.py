"""The queue of one backend in one process, and what makes it durable."""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime
from typing import Any, Final

from django.db import connections

from django_jobkit.exceptions import (
    QueueFull,
    QueueStopped,
    StorageUnavailable,
)
from django_jobkit.inprocess import JobQueue, QueueState, QueueStats, StopReport
from django_jobkit.jobs import errortext
from django_jobkit.kit import JobKit, jobkits
from django_jobkit.submission import record_failed, record_queued

from .compat import TaskResult, task_enqueued
from .entries import Entry
from .leftovers import LeftOver, clear_if_deleted
from .markers import Key, Marker, Markers
from .options import DEFAULT_LEASE, Options
from .recovery import Recovery, retry_delay
from .runs import Outcome, TaskRun
from .stats import BackendStats
from .write_behind import WriteBehind

_SOONER: Final = 5.0  # seconds until a look that failed is made again
LAST_WORDS: Final = 5.0
"""Seconds in which a process that ends may record which jobs it has lost."""
_SETTLING: Final = 1.0
"""Seconds that it gives a call which is just being accepted."""

logger = logging.getLogger("django_jobkit.backends")


class Service:
    """Accepts calls, runs them on its workers, and looks after those that were left. Thread-safe.

    Made with the first use of a backend in a process. Nothing runs before something is accepted or looked for.
    """

    def __init__(self, alias: str, options: Options, sender: object, worker_id: str) -> None:
        self.alias = alias
        self.options = options
        self.sender = sender
        self.worker_id = worker_id
        self.queue = JobQueue(
            options.workers,
            # Those that are recovered have been accepted before, and have places of their own; and a worker is free
            # again here a moment before it is in the queue.
            options.buffer + 2 * options.workers,
            after_each=self.release_connections,
            exit_timeout=options.stop_timeout,
            name=f"jobkit-{alias}",
            logger=logger,
        )
        self.recovery = Recovery(self)
        self.behind = WriteBehind(self)
        self._custody: dict[Key, Entry] = {}
        self._lock = threading.RLock()  # reentrant, since a signal handler may stop the queue in the middle of a call
        self._closing = False
        self._look_due = 0.0
        self._waiting = self._running = 0  # of those that this process has accepted, and of all
        self._done = self._failed = self._refused = 0

    @property
    def kit(self) -> JobKit:
        return jobkits[self.options.kit]

    @property
    def markers(self) -> Markers:
        return Markers(self.kit)

    @property
    def lease(self) -> float:
        return self.options.lease or self.kit.settings.lease or DEFAULT_LEASE

    def now(self) -> datetime:
        return self.kit.recorder.now()

    # --- accepting -----------------------------------------------------------------------------------------------

    def accept(self, entry: Entry, result: TaskResult[Any, Any], *, behind: bool = False) -> None:
        """Take a fresh entry, and have it run: now, or at its ``run_after``.

        Once there is a place for it, it is recorded, unless that is done or may come ``behind``, and marked if it is
        durable; then ``result`` is announced, and it may be begun. Raises `QueueFull` and `QueueStopped`, before
        anything is written, and what `record_queued` raises, and `StorageUnavailable`.
        """
        self._enqueue(entry)
        recorded = False
        try:
            try:
                if behind and not self.behind.failing:
                    self.behind.add(entry)
                elif entry.saved is None:
                    status = entry.queued(self.kit.status_class)
                    entry.saved = record_queued(self.kit, entry.key.job_id, status)
                    recorded = True
                    self.behind.failing = False
                if entry.durable:
                    self.markers.put(entry.key, Marker(entry.call, entry.accepted_at))
                    with self._lock:
                        self._custody[entry.key] = entry
                task_enqueued.send_robust(sender=self.sender, task_result=result)
            except BaseException:
                entry.settle(accepted=False)
                raise
            if not entry.settle(accepted=True):  # it took so long that the queue has stopped meanwhile
                self._refuse_stopped()
        except BaseException as error:
            if self.queue.withdraw(entry):
                with self._lock:
                    self._waiting -= 1
            self.forget(entry, ended=entry.key in self._custody)
            if recorded:
                record_failed(self.kit, entry.key.job_id, f"It could not be queued. {errortext.describe(error)}")
            raise
        if entry.unwritten:
            self.behind.schedule(entry)
        self.look_if_due()

    def require_room(self, run_after: datetime | None = None) -> float:
        """The seconds until a call with this ``run_after`` comes into the line. Raises if there is no place for it."""
        with self._lock:
            return self._require_room(run_after)

    def _require_room(self, run_after: datetime | None) -> float:
        delay = 0.0 if run_after is None else (run_after - self.now()).total_seconds()
        if self._closing:
            self._refuse_stopped()
        options = self.options
        # Counted here, and not asked of the queue, whose places are also taken by what is recovered.
        free = max(options.workers - self._running, 0) if delay <= 0 else 0
        if self._waiting >= options.buffer + free:
            self._refused += 1
            raise QueueFull(
                f"{options.buffer} jobs are waiting in the backend {self.alias!r}, as many as its BUFFER allows."
            )
        return delay

    def _refuse_stopped(self) -> None:
        self._refused += 1
        raise QueueStopped(f"The queue of the backend {self.alias!r} is stopping. Submit the job again later.")

    def _enqueue(self, entry: Entry) -> None:
        with self._lock:
            delay = self._require_room(entry.call.run_after)
            self._waiting += 1
            accepted = False
            try:
                accepted = self._put(entry, delay)
            finally:
                if not accepted:  # stopped in between by a signal handler, or there is no thread to be had
                    self._waiting -= 1
            if not accepted:
                self._refuse_stopped()

    def _put(self, entry: Entry, delay: float) -> bool:
        return self.queue.enqueue(entry, priority=entry.call.priority, delay=delay)

    # --- running -------------------------------------------------------------------------------------------------

    def run(self, entry: Entry) -> None:
        """Called by the queue."""
        with self._lock:
            self._running += 1
            self._waiting -= not entry.recovered
        try:
            if entry.recovered:
                self.recovery.has_begun()
            elif not entry.is_accepted():
                return
            run = TaskRun(self.kit, entry, lease=self.lease, worker_id=self.worker_id, sender=self.sender)
            self._follow_up(entry, run())
        finally:
            with self._lock:
                self._running -= 1

    def _follow_up(self, entry: Entry, outcome: Outcome) -> None:
        with self._lock:
            self._done += outcome in (Outcome.SUCCEEDED, Outcome.UNRECORDED)
            self._failed += outcome is Outcome.FAILED
        if outcome is Outcome.BUSY:
            self.behind.forget(entry)  # there is a record
            self.recovery.look_again(entry, 0)  # to see how long
        elif outcome is Outcome.UNAVAILABLE:
            entry.tries += 1
            self.recovery.look_again(entry, retry_delay(entry.tries))
        elif outcome in (Outcome.PUT_BACK, Outcome.UNCLEAR):
            self.forget(entry, ended=False)
        elif outcome is Outcome.LOST:
            self.forget(entry, ended=clear_if_deleted(self.kit, entry.key.job_id))
        else:
            self.forget(entry, ended=True)

    def run_recovered(self, entry: Entry) -> bool:
        """Have a worker begin it in its turn. False if the queue is stopping."""
        with self._lock:
            return not self._closing and self._put(entry, 0.0)

    # --- looking after what was left -----------------------------------------------------------------------------

    def look_if_due(self) -> None:
        """Look for jobs that were left, unless that was done a short while ago. Returns at once."""
        if not self.options.durable or time.monotonic() < self._look_due or self._closing:
            return
        every = self.options.recover_every
        self._look_due = float("inf") if every is None else time.monotonic() + every
        self.recovery.scan()

    def look_sooner(self) -> None:
        """The look that was made failed."""
        self._look_due = time.monotonic() + _SOONER

    def has(self, key: Key) -> bool:
        """Whether the call is in this process's custody already."""
        with self._lock:
            return key in self._custody

    def take(self, entry: Entry) -> bool:
        """Take it into custody; False if it is there already."""
        with self._lock:
            return self._custody.setdefault(entry.key, entry) is entry

    def forget(self, entry: Entry, *, ended: bool) -> None:
        """Have no more to do with it. If it has ``ended``, nobody is to find it any more."""
        if ended and entry.durable:
            try:
                self.markers.remove(entry.key)
            except StorageUnavailable as error:
                extra = {"job_id": entry.key.job_id}
                logger.warning("the marker of job %s can't be removed yet: %s", entry.key.job_id, error, extra=extra)
                entry.done = True
                entry.tries += 1
                self.recovery.look_again(entry, retry_delay(entry.tries))
                return
        self.behind.forget(entry)
        with self._lock:
            self._custody.pop(entry.key, None)

    # --- the end -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Accept no more, and recover no more. What was accepted goes on. Returns at once."""
        with self._lock:
            self._closing = True
        self.recovery.stop()

    def stop(self, timeout: float | None = None, *, grace: float = 1.0) -> StopReport:
        """As `JobQueue.stop`; what is left and durable stays so, and of other jobs it is recorded that they failed.

        That takes `LAST_WORDS` seconds more at most.
        """
        self.close()
        report = self.queue.stop(timeout, grace=grace)
        self.behind.stop()
        left = [*(job for job in report.waiting if isinstance(job, Entry)), *self.recovery.take_left()]
        lost = [entry for entry in left if not (entry.durable or entry.done) and entry.drop(_SETTLING)]
        for entry in lost:
            entry.done = True
        LeftOver(self.kit, lost, self.release_connections).record(LAST_WORDS)
        for entry in lost:
            self.behind.forget(entry)
        return report

    def stats(self) -> BackendStats:
        stats: QueueStats = self.queue.stats()
        return BackendStats(
            backend=self.alias,
            kit=self.options.kit,
            state=QueueState.STOPPING if self._closing and stats.state is not QueueState.STOPPED else stats.state,
            workers=self.options.workers,
            capacity=self.options.buffer,
            depth=stats.depth,
            delayed=stats.delayed,
            running=stats.running,
            recovering=self.recovery.waiting,
            done=self._done,
            failed=self._failed,
            refused=self._refused,
            oldest_wait=stats.oldest_wait,
        )

    def release_connections(self) -> None:
        """Give back this thread's database connections. Raises nothing: threads that call this go on."""
        try:
            connections.close_all()
        except Exception:
            logger.exception("backend %r: a database connection can't be closed", self.alias)
