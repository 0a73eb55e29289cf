"""The queue, as its callers see it."""

from __future__ import annotations

import contextvars
import functools
import logging
import math
import operator
import time
from collections.abc import Callable

from . import lifetime
from .crew import Crew
from .report import QueueState, QueueStats, StopReport

_logger = logging.getLogger(__name__)


class JobQueue:
    """Runs jobs on a fixed number of threads of this process, and says no rather than let too many wait.

    A job is a callable without arguments (``functools.partial`` binds them), or a coroutine function without
    arguments, which gets an event loop of its own. What it returns is dropped. Whatever it raises, ``SystemExit``
    included, is logged once with its traceback, counted, and stops nothing else. It runs in a copy of the context
    (``contextvars``) of the one who enqueued it, and asks `current_cancellation` whether it should end early.

    ``workers``: threads, at least 1. ``buffer``: jobs that may wait, at least 0; a job that a free worker takes at
    once doesn't wait. ``after_each``: called after each job, in its thread and context, whatever became of it, to
    give back what the job held (database connections); its errors are logged.
    ``exit_timeout``: seconds that the end of the process is delayed for jobs to end; then they are cancelled, and
    get one second more. Jobs that run then can't start threads or use thread pools any more (Python's rule), so a
    server had better call `stop` itself. ``name`` begins the names of the threads. ``clock`` gives seconds.
    Raises ValueError when a number is too small.

    Workers start with the first job, so a queue may be made on import. After a fork the child's queue is empty, at
    zero, and starts its own workers on first use; the parent's goes on. An idle queue never wakes up. A queue that
    has been used lives until it is stopped.

    Every method may be called from any thread at any time; those but `stop` also from jobs.
    """

    def __init__(
        self,
        workers: int = 4,
        buffer: int = 100,
        *,
        after_each: Callable[[], object] | None = None,
        exit_timeout: float = 5.0,
        name: str = "jobkit",
        clock: Callable[[], float] = time.monotonic,
        logger: logging.Logger | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}.")
        if buffer < 0:
            raise ValueError(f"buffer must be at least 0, not {buffer}.")
        self._exit_timeout = exit_timeout
        self._name = name
        self._logger = logger or _logger
        self._new_crew = functools.partial(
            Crew, workers, buffer, after_each=after_each, name=name, clock=clock, logger=self._logger
        )
        self._crew = self._new_crew(state=QueueState.NEW)
        lifetime.survive_fork(self)

    def start(self) -> None:
        """Start the workers now instead of with the first job. May be called again.

        Raises RuntimeError on a queue that has been stopped, and when not even one thread can be started.
        """
        lifetime.stop_at_exit(self)
        self._crew.start()

    def enqueue(self, job: Callable[[], object], *, priority: int = 0, delay: float = 0.0) -> bool:
        """Accept ``job`` and have it run; or answer False at once, because the queue is full or has been stopped.

        Jobs of higher ``priority`` (any integer) are run first; those of one priority in the order they came.
        ``delay``: seconds until the job comes into the line, there taking the place of one that comes at that
        moment; not above zero means now. Delayed jobs count as waiting, and are dropped by `stop`.

        Raises TypeError if ``job`` isn't callable or ``priority`` isn't an integer, ValueError if ``delay`` isn't
        finite, and RuntimeError when not even one thread can be started (too many, or the process is ending).
        """
        if not callable(job):
            raise TypeError(f"A job must be callable, {job!r} isn't.")
        if not math.isfinite(delay):
            raise ValueError(f"delay must be a finite number of seconds, not {delay}.")
        crew = self._crew
        if crew.state is QueueState.NEW:
            lifetime.stop_at_exit(self)
        return crew.add(job, contextvars.copy_context(), operator.index(priority), delay)

    def withdraw(self, job: Callable[[], object]) -> bool:
        """Take back a job that still waits: this very object, once. False if it has begun, or isn't there.

        It takes a look at all that wait, so it is for what goes wrong, and not for every day.
        """
        return self._crew.withdraw(job)

    def stop(self, timeout: float | None = None, *, grace: float = 1.0) -> StopReport:
        """Refuse new jobs, run those that wait, then end the workers; the report says what was left.

        After ``timeout`` seconds (None: never; 0: at once) what still waits is dropped, running jobs are cancelled,
        and they get ``grace`` seconds more to notice. Returns within the sum of both; jobs that don't end are left
        running. Delayed jobs aren't waited for: those whose time hasn't come by the end are dropped.

        May be called again, also while another call is waiting: the shorter timeout wins, and every report counts
        from the beginning. May be called from a signal handler, whatever that interrupts. Raises RuntimeError when
        called by a job of this queue, which would wait for itself.
        """
        report = self._crew.stop(timeout, grace)
        lifetime.forget_exit(self)
        return report

    def stats(self) -> QueueStats:
        """The counts of this moment, all of the same moment."""
        return self._crew.stats()

    def start_over(self) -> None:
        """Forget the parent's jobs and workers, in a child process right after the fork. Called by `lifetime`.

        A queue that the parent had stopped stays stopped.
        """
        self._crew.disowned = True
        stopped = self._crew.state in (QueueState.STOPPING, QueueState.STOPPED)
        self._crew = self._new_crew(state=QueueState.STOPPED if stopped else QueueState.NEW)

    def stop_at_exit(self, elapsed: float) -> None:
        """Stop within what is left of ``exit_timeout`` after ``elapsed`` seconds. Called by `lifetime`."""
        try:
            report = self.stop(max(0.0, self._exit_timeout - elapsed))
        except KeyboardInterrupt:  # somebody has had enough of waiting
            report = self.stop(0)
        if not report.drained:
            self._logger.warning(
                "The process ends with %d jobs of queue %r never started, %d cancelled, %d of these still running.",
                *(len(report.waiting), self._name, report.cancelled, report.running),
            )
