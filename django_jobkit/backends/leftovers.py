"""What becomes of calls that are lost with their process, which is recorded in a bounded time, or with their job."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from django_jobkit.exceptions import StatusCorrupt, StatusNotFound, StatusUnavailable, StorageUnavailable
from django_jobkit.kit import JobKit

from .entries import Entry

NEVER_BEGUN: Final = "The process that had accepted it stopped before it was begun. Submit it again."
_NAMED: Final = 100

logger = logging.getLogger("django_jobkit.backends")


class LeftOver:
    """Records of ``entries`` that their jobs have failed, several at a time; stops at the first failure."""

    def __init__(self, kit: JobKit, entries: Sequence[Entry], after_each_thread: Callable[[], object]) -> None:
        self._kit = kit
        self._after_each_thread = after_each_thread
        self._entries = entries
        self._line = deque(entries)
        self._recorded: set[str] = set()
        self._trouble: object = "there was no more time"
        self._given_up = threading.Event()

    def record(self, seconds: float) -> None:
        """Return after ``seconds`` at most. What could not be recorded by then is logged."""
        if not self._entries:
            return
        deadline = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._work, name="jobkit-leftovers", daemon=True)
            for _ in range(min(self._kit.settings.concurrency, len(self._entries)))
        ]
        started = []
        for thread in threads:
            try:
                thread.start()
            except RuntimeError:  # too many, or the process is ending
                break
            started.append(thread)
        if not started:
            self._work(deadline)
        for thread in started:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._given_up.set()
        left = [entry.key.job_id for entry in self._entries if entry.key.job_id not in self._recorded]
        if left:
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            logger.error(
                "%d jobs were never begun, and that can't be recorded: %s; they are %s%s",
                *(len(left), self._trouble, ", ".join(left[:_NAMED]), more),
            )

    def _work(self, deadline: float = float("inf")) -> None:
        while not self._given_up.is_set() and time.monotonic() < deadline:
            try:
                entry = self._line.popleft()
            except IndexError:
                break
            try:
                entry.fail(self._kit, NEVER_BEGUN)
            except Exception as error:
                self._trouble = error
                self._given_up.set()  # a process that is to end doesn't wait for the storage again and again
            else:
                self._recorded.add(entry.key.job_id)
        self._after_each_thread()


def clear_if_deleted(kit: JobKit, job_id: str) -> bool:
    """Whether a job that its run has lost was deleted; what the run has written since goes, too."""
    try:
        kit.store.get(job_id)
    except StatusNotFound:
        try:
            kit.history.delete(job_id)
        except StorageUnavailable as error:
            logger.warning("files of job %s, which was deleted, are left: %s", job_id, error)
        return True
    except (StatusUnavailable, StatusCorrupt):
        pass
    return False
