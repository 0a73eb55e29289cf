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
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from django_jobkit.exceptions import StatusUnavailable

from .entries import Entry

if TYPE_CHECKING:
    from .service import Service

_HEAD_START: Final = 0.05
"""Seconds that a worker gets to begin a call before ``queued`` is written."""
_PAUSE: Final = 1.0
"""Seconds for which the storage is left alone after it failed."""

logger = logging.getLogger("django_jobkit.backends")


class WriteBehind:
    """The entries of ``service`` without a record. Thread-safe; sleeps while there are none."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._entries: dict[str, Entry] = {}  # by job ID
        self._line: SimpleQueue[tuple[float, Entry] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()  # since a signal handler may enqueue, too
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
        thread = self._thread
        if thread is None or not thread.is_alive():
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
            if self._stopped.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            thread = threading.Thread(target=self._work, name=f"jobkit-{self._service.alias}-records", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # too many threads, or the process is ending
                logger.warning("backend %r records what it accepts by itself: %s", self._service.alias, error)
                self._write_all()
            else:
                self._thread = thread

    def _write_all(self) -> None:
        with suppress(Empty):
            while (item := self._line.get_nowait()) is not None:
                self._write(item[1])

    def _work(self) -> None:
        while (item := self._line.get()) is not None:
            due, entry = item
            if entry.unwritten:
                self._stopped.wait(max(0.0, due - time.monotonic()))
                if not self._write(entry):
                    self._line.put((0.0, entry))  # behind the others, whose files may do
                    self._stopped.wait(_PAUSE)
            del item, entry  # lets go of the call while it waits for another
            if self._line.empty():
                self._service.release_connections()

    def _write(self, entry: Entry) -> bool:
        """Whether there is nothing more to write of it."""
        if self._stopped.is_set():
            return True  # it is for the caller of `stop` to say what became of it
        try:
            entry.write(self._service.kit.store)
        except StatusUnavailable as error:
            self.failing = True
            extra = {"job_id": entry.key.job_id}
            logger.warning("job %s was accepted, and can't be recorded yet: %s", extra["job_id"], error, extra=extra)
            return False
        except Exception:
            logger.exception("job %s was accepted, and can't be recorded before it begins", entry.key.job_id)
            return True
        self.failing = False
        self._entries.pop(entry.key.job_id, None)
        return True
