"""An accepted call, from when it is accepted until this process has no more to do with it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django_jobkit.exceptions import VersionConflict
from django_jobkit.jobs import State, Status, StatusStore
from django_jobkit.jobs.files import ABSENT
from django_jobkit.jobs.swap import Saved
from django_jobkit.kit import JobKit
from django_jobkit.submission import record_never_begun

from .calls import MEMBER, TaskCall
from .markers import Key


class Entry:
    """One call in the custody of this process; calling it has ``run`` run it, as the queue does.

    ``command`` is what its job is called. ``durable``: it has a marker. ``recovered``: found by its marker, and not
    accepted by this process. ``done``: it has been run to its end, though that could not be recorded. ``saved``: its
    record, as this process has written it. ``unwritten``: it has no record yet; see `write_behind`.
    """

    __slots__ = (
        *("_accepting", "abandoned", "accepted_at", "call", "command", "done", "dropped", "durable"),
        *("key", "recording", "recovered", "run", "saved", "tries", "unwritten"),
    )

    def __init__(
        self,
        key: Key,
        call: TaskCall,
        accepted_at: datetime,
        run: Callable[[Entry], object],
        *,
        command: str = "",
        durable: bool,
        recovered: bool = False,
    ) -> None:
        self.key = key
        self.call = call
        self.accepted_at = accepted_at
        self.run = run
        self.command = command
        self.durable = durable
        self.recovered = recovered
        self.done = False
        self.tries = 0
        self.saved: Saved[Any] | None = None
        self.unwritten = False
        self.recording = threading.Lock()
        """Held while its first record is written, be it ``queued`` or ``running``."""
        self.dropped = False
        self.abandoned = not recovered  # until it is accepted
        self._accepting = threading.Lock()
        if not recovered:
            # A worker may have it in hand before all is written that belongs to its being accepted.
            self._accepting.acquire()

    def __call__(self) -> object:
        return self.run(self)

    def __repr__(self) -> str:
        return f"<{self.call.path} of job {self.key.job_id}>"

    def settle(self, *, accepted: bool) -> bool:
        """Let the worker go on that waits, to run it or to drop it; whether it is accepted, and not `dropped`."""
        with self.recording:
            self.abandoned = not accepted or self.dropped
        self._accepting.release()
        return not self.abandoned

    def drop(self, timeout: float) -> bool:
        """Have it run no more. False for one that isn't accepted within ``timeout`` seconds, and then never is."""
        if not self.is_accepted(timeout):
            with self.recording:
                self.dropped = True
                return not self.abandoned
        return True

    def is_accepted(self, timeout: float = -1) -> bool:
        """Whether it was accepted, as soon as that is settled; False if it isn't within ``timeout`` seconds."""
        if not self._accepting.acquire(timeout=timeout):
            return False
        self._accepting.release()
        return not self.abandoned

    def queued(self, status_class: type[Status]) -> Any:
        """Its first record."""
        status = status_class(
            job_id=self.key.job_id, state=State.QUEUED, command=self.command, queued_at=self.accepted_at
        )
        status.extra[MEMBER] = self.call.member()
        return status

    def write(self, store: StatusStore[Any]) -> None:
        """Write its first record, if it has none. Raises what `StatusStore.save` does, but for a conflict: a record
        that is there already stays."""
        with self.recording:
            if self.unwritten:
                status = self.queued(store.status_class)
                with contextlib.suppress(VersionConflict):
                    self.saved = Saved(status, store.save(self.key.job_id, status, if_version=ABSENT))
                self.unwritten = False

    def fail(self, kit: JobKit, error: str) -> None:
        """Record, with one write, that it won't be run. Raises what `StatusStore.save` does, but for a conflict."""
        with self.recording:
            if self.unwritten:
                status = self.queued(kit.status_class)
                status.state, status.error = State.FAILED, error
                with contextlib.suppress(VersionConflict):
                    kit.store.save(self.key.job_id, status, if_version=ABSENT)
                self.unwritten = False
                return
        record_never_begun(kit, self.key.job_id, self.accepted_at, error, known=self.saved)

    def take_known(self, status_class: type[Status]) -> Saved[Any] | None:
        """What a worker that begins it may take its record for, the first time that it does."""
        if self.unwritten:
            return Saved(self.queued(status_class), ABSENT)
        saved, self.saved = self.saved, None
        return saved
