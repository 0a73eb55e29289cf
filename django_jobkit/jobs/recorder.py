"""What a worker calls as its job goes along: guard against a second run, carry over, never roll a success back.

The rules are the Go reference's (``tests/vectors/recorder.json``). Beyond it, a save is conditional on the very
version that was read, and decided anew on a conflict, so that two workers can neither lose an attempt nor write
``running`` over ``succeeded`` even when they race; and a *lease* keeps a second worker away while one is at work.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Final, Generic, NamedTuple, TypeVar

from ..exceptions import InvalidJobID, JobBusy, StatusNotFound
from . import ids
from .status import State, Status
from .store import utc_now
from .swap import NotSaved, Previous, Saved, Store, swap

S = TypeVar("S", bound=Status)

RENEW_AT: Final = 1 / 3  # of the lease: two renewals may fail before it ends

Apply = Callable[[S, S | None], object]
"""``apply(next, prev)`` changes ``next`` after carry-over; ``prev`` is the previous record, or None. On a conflict
it is called again, with a fresh ``next``: let it change nothing else."""


class Claim(NamedTuple, Generic[S]):
    """A worker's hold on a job: its lease (empty without leases), and what it recorded (None if that failed)."""

    lease_id: str
    saved: Saved[S] | None


class Recorder(Generic[S]):
    """Records the life of jobs in a store.

    With ``store`` None nothing is recorded and every call is a no-op, so that a worker can be run without. ``lease``
    is in seconds; it needs a status class with ``lease_id`` and ``lease_expires_at`` (`JobStatus` has them). A lease
    belongs to the recorder that began the job: give each worker, or each run, a recorder of its own. Safe to call
    from many threads.
    """

    def __init__(
        self, store: Store[S] | None, *, lease: float | None = None, logger: logging.Logger | None = None
    ) -> None:
        if lease is not None and lease <= 0:
            raise ValueError(f"A lease is a positive number of seconds, or None, not {lease!r}.")
        self.store = store
        self.lease = lease
        self.logger = logger or logging.getLogger("django_jobkit.recorder")
        self._held: dict[str, str] = {}  # job ID -> the lease that this recorder took
        self._lock = threading.Lock()

    @property
    def enabled(self) -> bool:
        """Whether there is a store to record in."""
        return self.store is not None

    def already_succeeded(self, job_id: str) -> bool:
        """Whether the job has succeeded, so that a redelivered task is to be acknowledged and not run.

        False for a job never recorded. Raises what `StatusStore.get` raises when that can't be told: neither answer
        would be safe, so let the engine deliver again.
        """
        if self.store is None:
            return False
        try:
            return self.store.get(job_id).is_terminal
        except StatusNotFound:
            return False

    def begin(self, job_id: str, status: S, *apply: Apply[S] | None) -> bool:
        """Record that a worker begins, unless the job has succeeded; True means just that: do nothing.

        One read and one write. ``status`` is a ``running`` one and isn't changed. Raises `InvalidJobID`,
        `StatusUnavailable` or `StatusCorrupt` when the previous record can't be read; nothing is recorded then.
        A failing write is only logged, as in `record`.

        With a lease: raises `JobBusy` while another worker's lease on the job is alive, and a failing write raises,
        too, since a second worker would then come in.
        """
        claim = self.claim(job_id, status, *apply)
        if claim is not None and claim.lease_id:
            with self._lock:
                self._held[ids.sanitize(job_id)] = claim.lease_id
        return claim is None

    def claim(self, job_id: str, status: S, *apply: Apply[S] | None, known: Saved[S] | None = None) -> Claim[S] | None:
        """As `begin`, for a caller who keeps the lease and the record by itself; None: do nothing.

        ``known`` is what the caller has saved last, as for `swap`: then nothing is read unless that has changed.
        """
        if self.store is None:
            return Claim("", None)
        lease_id = secrets.token_hex(8) if self.lease is not None else ""

        def decide(previous: Previous[S]) -> S | None:
            if previous.error is not None:
                raise previous.error
            prev = previous.status
            if prev is not None and prev.is_terminal:
                return None
            if lease_id and is_alive(prev, self.now()):
                raise JobBusy(f"Another worker is at job {job_id} until {_expiry(prev)}.")
            next_ = self._next(status, prev, apply)
            if lease_id:
                self.put_lease(next_, lease_id)
            return next_

        try:
            saved = swap(self.store, job_id, decide, known=known)
        except NotSaved as error:
            if lease_id:
                raise error.cause from None
            self._warn_not_saved(job_id, status, error.cause)
            return Claim("", None)
        return None if saved is None else Claim(lease_id, saved)

    def record(self, job_id: str, status: S, *apply: Apply[S] | None) -> None:
        """Save ``status`` after carrying over from the previous record. One read and one write.

        Never raises for trouble with the storage, the ID or the status: what couldn't be recorded is logged, and the
        work goes on. Over a job that has succeeded only ``queued`` (a new request) and ``succeeded`` are written.
        An unreadable previous record is logged, and the status saved without carry-over. With a lease, a worker
        whose lease another has taken over records nothing any more, and that is logged.

        Where the store has a ``min_write_interval``, a record that would only repeat what was saved less than that
        long ago is not written.
        """
        if self.store is None:
            return
        try:
            saved = swap(self.store, job_id, lambda previous: self._decide_record(job_id, status, previous, apply))
        except NotSaved as error:
            self._warn_not_saved(job_id, status, error.cause)
        except _LeaseLost as error:
            self.logger.warning("job %a not recorded as %a: %s", job_id, str(status.state), error, extra=_extra(job_id))
        except _Repeated:
            pass
        else:
            if saved is None or saved.status.state != State.RUNNING:
                with self._lock:
                    self._held.pop(ids.sanitize(job_id), None)

    def renew(self, job_id: str) -> bool:
        """Prolong this recorder's lease on the job by its full length; whether it is still this recorder's.

        One read and one write. Raises what `StatusStore.get` and `StatusStore.save` raise when that can't be told.
        """
        lease_id = self._lease_on(job_id)
        if self.store is None or not lease_id:
            return False

        def decide(previous: Previous[S]) -> S | None:
            if previous.error is not None:
                raise previous.error
            if previous.status is None or getattr(previous.status, "lease_id", "") != lease_id:
                return None
            next_ = previous.status.clone()
            self.put_lease(next_, lease_id)
            return next_

        try:
            return swap(self.store, job_id, decide) is not None
        except NotSaved as error:
            raise error.cause from None

    # --- deciding -----------------------------------------------------------------------------------------------

    def _decide_record(
        self, job_id: str, status: S, previous: Previous[S], apply: tuple[Apply[S] | None, ...]
    ) -> S | None:
        prev = previous.status
        if previous.error is not None:
            # Writing without the previous record loses attempts and queued_at; not writing would lose the news.
            self.logger.warning(
                "previous record of job %a can't be read, nothing carried over: %s",
                job_id,
                previous.error,
                extra=_extra(job_id),
            )
        was_terminal = prev is not None and prev.is_terminal  # before apply gets hold of it
        recent = self._recent(prev)
        may_record = self._may_record(job_id, previous)
        next_ = self._next(status, prev, apply)
        if was_terminal and not next_.is_terminal and next_.state != State.QUEUED:
            self.logger.info(
                "job %a not recorded as %a: it has succeeded already", job_id, str(next_.state), extra=_extra(job_id)
            )
            return None
        if not may_record(next_):
            raise _LeaseLost("another worker has taken the job over")
        if next_.state == State.RUNNING and (lease_id := self._lease_on(job_id)):
            self.put_lease(next_, lease_id)
        if recent is not None and self._only_repeats(next_, recent):
            raise _Repeated
        return next_

    def _recent(self, prev: S | None) -> S | None:
        """A copy of the previous record if it is so fresh that the storage may not take another write yet."""
        interval: float = getattr(self.store, "min_write_interval", 0.0)
        if prev is None or prev.updated_at is None or not interval:
            return None
        age = (self.now() - prev.updated_at).total_seconds()
        return prev.clone() if 0 <= age < interval else None

    def _only_repeats(self, next_: S, recent: S) -> bool:
        """Whether ``next_`` says nothing that ``recent`` doesn't. That a lease has hardly begun is no news."""
        expiry = _expiry(recent)
        if self.lease is not None and expiry is not None:
            if (expiry - self.now()).total_seconds() < self.lease * (1 - RENEW_AT):
                return False
            vars(recent)["lease_expires_at"] = getattr(next_, "lease_expires_at", None)
        recent.job_id, recent.updated_at = next_.job_id, next_.updated_at  # stamped by the save
        return next_ == recent and next_.extra == recent.extra

    def _may_record(self, job_id: str, previous: Previous[S]) -> Callable[[S], bool]:
        lease_id = self._lease_on(job_id)
        if lease_id and previous.error is not None:
            # Whether the job was taken over can't be told. A success is true in any case; a failure might undo one.
            return lambda next_: next_.is_terminal
        if lease_id:
            still_ours = getattr(previous.status, "lease_id", "") == lease_id
            return lambda next_: still_ours
        busy = self.lease is not None and is_alive(previous.status, self.now())
        return lambda next_: not busy or next_.state == State.QUEUED

    def _next(self, status: S, prev: S | None, apply: tuple[Apply[S] | None, ...]) -> S:
        next_ = status.clone()
        if prev is not None:
            next_.carry_over(prev)
        for change in apply:
            if change is not None:
                change(next_, prev)
        return next_

    # --- leases -------------------------------------------------------------------------------------------------

    def _lease_on(self, job_id: str) -> str:
        try:
            job_id = ids.sanitize(job_id)
        except InvalidJobID:
            return ""
        with self._lock:
            return self._held.get(job_id, "")

    def put_lease(self, status: S, lease_id: str) -> None:
        """Write the lease, from now for its full length, into a status. Raises TypeError if its class can't hold it."""
        if not {"lease_id", "lease_expires_at"} <= {field.name for field in fields(status)}:
            raise TypeError(
                f"A lease needs a status class with lease_id and lease_expires_at; let {type(status).__name__} "
                f"inherit from JobStatus."
            )
        vars(status)["lease_id"] = lease_id
        vars(status)["lease_expires_at"] = self.now() + timedelta(seconds=self.lease or 0)

    def now(self) -> datetime:
        """The time by the store's clock."""
        clock: Callable[[], datetime | None] = getattr(self.store, "clock", utc_now)
        return clock() or utc_now()

    def _warn_not_saved(self, job_id: str, status: S, error: BaseException) -> None:
        self.logger.warning(
            "job %a could not be recorded as %a: %s", job_id, str(status.state), error, extra=_extra(job_id)
        )


class _LeaseLost(Exception):
    pass


class _Repeated(Exception):
    """There is nothing new to be written."""


def _expiry(status: Status | None) -> datetime | None:
    found: datetime | None = getattr(status, "lease_expires_at", None)
    return found


def is_alive(status: Status | None, now: datetime) -> bool:
    """Whether a worker holds a lease on the job that hasn't run out."""
    expiry = _expiry(status)
    return status is not None and status.state == State.RUNNING and expiry is not None and expiry > now


def _extra(job_id: str) -> dict[str, str]:
    return {"job_id": job_id}
