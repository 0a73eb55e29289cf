"""What a queue says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class QueueState(StrEnum):
    """The life of a queue, in this order; only a fork leads back to ``NEW``, in the child."""

    NEW = "new"  # no workers yet: the first job starts them
    RUNNING = "running"
    STOPPING = "stopping"  # refuses new jobs; some are still running
    STOPPED = "stopped"  # no worker is left


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """A queue at one moment. ``dataclasses.asdict`` gives something that JSON can hold.

    The counts are of this process and since its start, so that of all the jobs ever accepted
    ``depth + running + done + failed`` are accounted for, and the rest was dropped by `JobQueue.stop`.
    """

    state: QueueState
    workers: int  # as asked for; while NEW or STOPPED there are none
    capacity: int  # most jobs that may wait, which is ``buffer``
    depth: int  # jobs waiting, delayed ones among them; never above capacity
    delayed: int  # jobs waiting for their time, rather than for a worker
    running: int  # jobs that a worker has, or that a free worker is about to take; never above workers
    done: int  # jobs that ended without an error
    failed: int  # jobs that ended with one
    refused: int  # answers of False, whether the queue was full or stopping
    oldest_wait: float  # seconds that a worker has been owed to the job that has waited longest; 0.0 when none has


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """What `JobQueue.stop` had to leave. Nothing, if `drained`."""

    waiting: tuple[Callable[[], object], ...] = ()  # never started and now dropped: the next to run first
    cancelled: int = 0  # jobs that were running when the time was up, and were asked to end
    running: int = 0  # those among them that had not ended when the report was made

    @property
    def drained(self) -> bool:
        """Whether every accepted job was run, to an end of its own."""
        return not (self.waiting or self.cancelled or self.running)
