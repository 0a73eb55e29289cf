"""The counts of a backend's queue in one process."""

from __future__ import annotations

from dataclasses import dataclass

from django_jobkit.inprocess import QueueState


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendStats:
    """The queue of one backend in this process, at one moment; counts are since the process started.

    ``capacity`` is how many jobs may wait, ``depth`` how many do, ``delayed`` those of them that wait for their
    time. ``recovering``: jobs of other processes that this one watches, to run them if they are left. ``done`` and
    ``failed`` are jobs that this process has run to their ends. ``oldest_wait`` in seconds.
    """

    backend: str
    kit: str
    state: QueueState
    workers: int
    capacity: int
    depth: int
    delayed: int
    running: int
    recovering: int
    done: int
    failed: int
    refused: int
    oldest_wait: float
