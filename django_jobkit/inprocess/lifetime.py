"""What happens to queues when their process forks, and when it ends.

Workers are daemon threads, so that a job that never ends can't keep the process from ending; and queues are stopped
by ``atexit``, which runs while daemon threads still do, so that no job is cut off without having been asked to end.
(Non-daemon workers are joined before ``atexit`` runs: an idle one would have to wake up again and again to find out
that the process wants to end.)
"""

from __future__ import annotations

import atexit
import os
import time
import weakref
from typing import Protocol


class Queue(Protocol):
    def start_over(self) -> None:
        """Called in a new child process, where no other thread runs."""

    def stop_at_exit(self, elapsed: float) -> None:
        """Called once at the end of the process, ``elapsed`` seconds after that began."""


_known: weakref.WeakSet[Queue] = weakref.WeakSet()
_started: set[Queue] = set()  # kept alive, so that no running job is forgotten with its queue
_registered = False


def survive_fork(queue: Queue) -> None:
    """From now on have ``queue`` start over in every child process."""
    _known.add(queue)


def stop_at_exit(queue: Queue) -> None:
    """Have ``queue`` stopped when this process ends. May be called again."""
    global _registered
    _started.add(queue)
    if not _registered:
        # On first use, not on import: handlers run in reverse order, and what jobs need was most likely set up before.
        atexit.register(_stop_all)
        _registered = True


def forget_exit(queue: Queue) -> None:
    """``queue`` has been stopped: there is nothing more to do for it."""
    _started.discard(queue)


def _stop_all() -> None:
    began = time.monotonic()
    for queue in list(_started):
        queue.stop_at_exit(time.monotonic() - began)


def _start_over_all() -> None:
    for queue in list(_known):
        queue.start_over()


os.register_at_fork(after_in_child=_start_over_all)
