"""Records of calls that were accepted in this process's memory, written shortly after.

Without markers an accepted call is lost with its process in any case, so its caller needn't wait for a file either.
A worker that begins a call at once makes ``running`` its first record, and one write is saved; for all that wait, a
thread writes ``queued``. Until then this process alone can tell of them. While the storage fails, records are written
first, so that callers get to know, and no more is promised than memory has places for.
"""

from __future__ import annotations

import logging
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from django_jobkit.exceptions import StatusUnavailable

from .entries import Entry
from .recovery import retry_delay

if TYPE_CHECKING:
    from .service import Service

_HEAD_START: Final = 0.02
"""Seconds that a worker gets to begin a call before ``queued`` is written."""

logger = logging.getLogger("django_jobkit.backends")


class WriteBehind:
    """The entries of ``service`` without a record. Thread-safe; sleeps while there are none."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._entries: dict[str, Entry] = {}  # by job ID
        self._line: SimpleQueue[tuple[float, Entry] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self.failing = False
        """Whether the storage has refused what was written last."""

    def __len__(self) -> int:
        """How many it looks after."""
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Have what would be its record be known of the job here."""
        entry.unwritten = True
        self._entries[entry.key.job_id] = entry

    def schedule(self, entry: Entry) -> None:
        """Have it written, if no worker begins it right now."""
        self._line.put((time.monotonic() + _HEAD_START, entry))
        if self._thread is None:
            self._start()

    def find(self, job_id: str) -> Any:
        """The status of a job without a record; None for any other."""
        entry = self._entries.get(job_id)
        return entry.queued(self._service.kit.status_class) if entry is not None and entry.unwritten else None

    def forget(self, entry: Entry) -> None:
        """It needs no record any more."""
        entry.unwritten = False
        self._entries.pop(entry.key.job_id, None)

    def stop(self) -> None:
        """Write no more; the thread ends. What is still without a record is for the caller to record."""
        self._stopped.set()
        self._line.put(None)

    # --- the thread ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._work, name=f"jobkit-{self._service.alias}-records", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # too many threads, or the process is ending; workers record what they begin
                logger.warning("backend %r can't record yet what it has accepted: %s", self._service.alias, error)
                self.failing = True
            else:
                self._thread = thread

    def _work(self) -> None:
        while (item := self._line.get()) is not None:
            due, entry = item
            if entry.unwritten:
                self._stopped.wait(max(0.0, due - time.monotonic()))
                self._write(entry)
            del item, entry  # lets go of the call while it waits for another
            if self._line.empty():
                self._service.release_connections()

    def _write(self, entry: Entry) -> None:
        tries = 0
        while entry.unwritten and not self._stopped.is_set():
            try:
                entry.write(self._service.kit.store)
            except StatusUnavailable as error:
                tries += 1
                self.failing = True
                extra = {"job_id": entry.key.job_id}
                logger.warning(
                    "job %s was accepted, and can't be recorded yet: %s", extra["job_id"], error, extra=extra
                )
                self._stopped.wait(retry_delay(tries))
            except Exception:
                logger.exception("job %s was accepted, and can't be recorded before it begins", entry.key.job_id)
                return
        self.failing = False
        self._entries.pop(entry.key.job_id, None)
