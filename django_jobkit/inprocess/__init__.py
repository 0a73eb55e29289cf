"""A bounded queue of jobs and its workers, on threads of this process. Imports neither Django nor any SDK."""

from __future__ import annotations

from .cancellation import Cancellation, current_cancellation
from .queue import JobQueue
from .report import QueueState, QueueStats, StopReport
from .retry import exponential, linear, with_retry

__all__ = [
    "Cancellation",
    "JobQueue",
    "QueueState",
    "QueueStats",
    "StopReport",
    "current_cancellation",
    "exponential",
    "linear",
    "with_retry",
]
