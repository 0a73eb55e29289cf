"""The threads behind a queue: who waits for what, and who wakes whom."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Final

from .calls import run
from .cancellation import Cancellation
from .report import QueueState, QueueStats, StopReport
from .waiting import WaitingLine

Job = Callable[[], object]

_TURNS: Final = 100


class Crew:
    """The waiting jobs and the workers of one queue in one process. Thread-safe.

    One lock guards everything. Idle workers wait for it to be said that a job has come; only while there are delayed
    jobs, one of them, the timekeeper, waits for the time of the first as well. Nobody wakes up to look around.

    A signal handler may call `stop` in the middle of another method of the same thread, and then waits for workers
    that go on meanwhile. So the lock is reentrant, what isn't for workers changes the line in single steps, and `add`
    looks again at the end.
    """

    def __init__(
        self,
        workers: int,
        buffer: int,
        *,
        state: QueueState,
        after_each: Callable[[], object] | None,
        name: str,
        clock: Callable[[], float],
        logger: logging.Logger,
    ) -> None:
        self.state = state
        self.disowned = False  # set in a child process: all this is the parent's, and its locks may be held for ever
        self._workers = workers
        self._buffer = buffer
        self._after_each = after_each
        self._name = name
        self._clock = clock
        self._logger = logger
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # what idle workers wait for, without a timeout
        self._due = threading.Condition(self._lock)  # what the timekeeper waits for
        self._ended = threading.Condition(self._lock)  # what `stop` waits for
        self._line: WaitingLine[tuple[Job, Context]] = WaitingLine()
        self._cancellation = Cancellation()
        self._threads: list[threading.Thread] = []
        self._alive = 0  # workers
        self._idle = 0  # workers that wait and that nobody has woken yet
        self._timekeeper = False
        self._running = self._done = self._failed = self._refused = 0
        self._dropped: tuple[Job, ...] = ()
        self._interrupted = 0

    def start(self) -> None:
        with self._lock:
            if self.state not in (QueueState.NEW, QueueState.RUNNING):
                raise RuntimeError("A queue that has been stopped can't be started again: make a new one.")
            self._start_workers()

    def add(self, job: Job, context: Context, priority: int, delay: float) -> bool:
        with self._lock:
            if self._alive < self._workers and self.state in (QueueState.NEW, QueueState.RUNNING):
                self._start_workers()
            now = self._clock()
            free = self._workers - self._running
            fits = self._line.depth(free) < self._buffer if delay > 0 else self._line.depth(free - 1) <= self._buffer
            if not fits or self.state is not QueueState.RUNNING:
                self._refused += 1
                return False
            if delay > 0:
                added = self._line.add_delayed((job, context), priority=priority, due=now + delay)
                if self._line.next_due == now + delay:
                    self._wake_for_time()
            else:
                added = self._line.add((job, context), priority=priority, now=now)
                self._wake_for_work()
            # Only a signal handler can have stopped the queue since the check above. If the job came after that, it
            # is still there, and no worker may come for it.
            if self.state is not QueueState.RUNNING and self._line.withdraw(added):
                self._refused += 1
                return False
            return True

    def withdraw(self, job: Job) -> bool:
        with self._lock:
            added = self._line.find(lambda waiting: waiting[0] is job)
            return added is not None and self._line.withdraw(added)

    def stop(self, timeout: float | None, grace: float) -> StopReport:
        if threading.current_thread() in self._threads:
            raise RuntimeError("A job can't stop the queue that runs it.")
        with self._lock:
            if self.state in (QueueState.NEW, QueueState.RUNNING):
                self.state = QueueState.STOPPING if self._alive else QueueState.STOPPED
                self._wake_all()
            self._wait_until(lambda: not self._alive or self._cancellation.cancelled, timeout)
            if self._alive and not self._cancellation.cancelled:
                self._interrupted = self._running
                self._cancellation.cancel()
                self._ended.notify_all()  # other calls of `stop`, with more patience
            self._dropped += tuple(job for job, _ in self._line.clear())
            self._wait_until(lambda: not self._alive, grace)
            report = StopReport(waiting=self._dropped, cancelled=self._interrupted, running=self._running)
            gone = [] if self._alive else self._threads
        for thread in gone:
            thread.join()  # they are past their last job
        return report

    def stats(self) -> QueueStats:
        with self._lock:
            now = self._clock()
            free = self._workers - self._running
            return QueueStats(
                state=self.state,
                workers=self._workers,
                capacity=self._buffer,
                depth=self._line.depth(free),
                delayed=self._line.due_later(now),
                running=self._running + min(free, self._line.ready),
                done=self._done,
                failed=self._failed,
                refused=self._refused,
                oldest_wait=self._line.longest_wait(now),
            )

    # What follows is called with the lock held, except `_live` and `_run_jobs`.

    def _start_workers(self) -> None:
        self.state = QueueState.RUNNING
        while self._alive < self._workers and self.state is QueueState.RUNNING:
            name = f"{self._name}-{self._alive + 1}"
            thread = threading.Thread(target=self._live, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                if not self._alive:
                    self.state = QueueState.NEW
                    raise
                self._logger.warning("Queue %r runs on %d of %d workers.", self._name, self._alive, self._workers)
                return
            self._threads.append(thread)
            self._alive += 1

    def _wait_until(self, predicate: Callable[[], bool], timeout: float | None) -> None:
        self._ended.wait_for(predicate, None if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX))

    def _wake_for_work(self) -> None:
        """A job has come into the line: wake one worker, if any is waiting."""
        if self._idle:
            self._idle -= 1  # here, not by the one who wakes: until then it must not be counted on twice
            self._work.notify()
        elif self._timekeeper:
            self._due.notify()

    def _wake_for_time(self) -> None:
        """Another job is the first of those delayed: see that one worker waits for that one's time."""
        if self._timekeeper:
            self._due.notify()
        else:
            self._wake_for_work()

    def _wake_all(self) -> None:
        self._idle = 0
        self._work.notify_all()
        self._due.notify_all()

    def _live(self) -> None:
        """The life of a worker."""
        ended = False
        while not ended:
            try:
                self._run_jobs()
                ended = True
            except BaseException:
                if self.disowned:
                    return
                # Thrown in from outside, between two jobs: a time limit on a job that came a moment too late.
                self._logger.error("A worker of queue %r was interrupted, and goes on.", self._name, exc_info=True)
                with self._lock:
                    self._wake_all()  # for it may have been woken for a job, and to be counted again
        if self.disowned:
            return
        with self._lock:
            self._alive -= 1
            if not self._alive:
                self.state = QueueState.STOPPED
                self._ended.notify_all()

    def _run_jobs(self) -> None:
        """Run jobs until there will be none."""
        running = False
        try:
            with self._lock:
                entry = self._next()
                running = entry is not None
            while entry is not None:
                succeeded = run(*entry, self._cancellation, self._after_each, self._logger)
                if self.disowned:
                    running = False  # the job has forked, and this is the child, where the queue has started over
                    return
                entry = None  # lets go of the job before waiting for another
                self._give_way()
                with self._lock:
                    running = False
                    self._count(succeeded)
                    entry = self._next()
                    running = entry is not None
        finally:
            if running:  # interrupted between a job and its count
                with self._lock:
                    self._count(succeeded=False)

    def _give_way(self) -> None:
        """Let whoever has the lock get on.

        A thread may be waiting for the interpreter while it has the lock. To wait for it there as well would have
        the two take turns for each job, at the price of two switches each.
        """
        for _ in range(_TURNS):
            if self._lock.acquire(blocking=False):
                self._lock.release()
                return
            time.sleep(0)

    def _count(self, succeeded: bool) -> None:
        self._running -= 1
        if succeeded:
            self._done += 1
        else:
            self._failed += 1

    def _next(self) -> tuple[Job, Context] | None:
        """The next job, as soon as there is one; None when there will be none."""
        while True:
            now = self._clock() if self._line.delayed else 0.0
            for _ in range(self._line.promote(now)):
                self._wake_for_work()
            if self._line.ready:
                self._running += 1
                return self._line.take()
            if self.state is not QueueState.RUNNING:
                return None
            due = self._line.next_due
            if due is not None and not self._timekeeper:
                self._timekeeper = True
                try:
                    self._due.wait(min(due - now, threading.TIMEOUT_MAX))
                finally:
                    self._timekeeper = False
            else:
                self._idle += 1
                self._work.wait()
