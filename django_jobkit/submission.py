"""Submitting a job: its record first, then its task, and never the one without the other."""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from django.conf import settings
from django.db import transaction

from .exceptions import JobExists, StatusCorrupt, StatusUnavailable, VersionConflict
from .jobs import State, Status, errortext, ids
from .jobs.files import ABSENT
from .jobs.recorder import is_alive
from .jobs.swap import NotSaved, Previous, Saved, swap

if TYPE_CHECKING:
    from .kit import JobKit

_DROPPED: Final = (
    "It was never queued: the transaction in which it was submitted was not committed, or something else that waited "
    "for the commit failed."
)

_LEFT_ALONE: Final = 10.0
"""Seconds for which a storage that failed is not asked to record another job of a transaction that is rolled back."""

_asked_again_at = 0.0

logger = logging.getLogger("django_jobkit.submission")

_handing_over: ContextVar[Saved[Any] | None] = ContextVar("jobkit_handing_over", default=None)


def take_handed_over(job_id: str) -> Saved[Any] | None:
    """The ``queued`` record of this job, if it is being handed to its engine right here; None for any other.

    An engine that is called with a job's ID then knows that the job is recorded, without reading. It gets this once,
    and the job that it runs, which may have a copy of this context, doesn't.
    """
    saved = _handing_over.get()
    if saved is None or saved.status.job_id != job_id:
        return None
    _handing_over.set(None)
    return saved


def submit(
    kit: JobKit,
    task: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    job_id: str | None,
    prefix: str,
    replace: bool,
    fields: Mapping[str, Any],
) -> str:
    """See `JobKit.enqueue`."""
    command = _command_of(task)
    job_id = ids.new(prefix or command or "job", now=kit.recorder.now()) if job_id is None else ids.sanitize(job_id)
    defaults = {"command": command, "queued_at": kit.recorder.now()}
    status = kit.status_class(state=State.QUEUED, **{**defaults, **fields})
    status.extra.update(_members_for(task, args, kwargs))
    saved = record_queued(kit, job_id, status, replace=replace)
    if _in_transaction():
        _enqueue_on_commit(kit, task, saved, args, kwargs)
    else:
        _enqueue(kit, task, saved, args, kwargs)
    return job_id


def record_queued(kit: JobKit, job_id: str, status: Status, *, replace: bool = False) -> Saved[Any]:
    """Record a submission, over a job that has ended at most, and return what is now the record.

    Raises `JobExists` over a job that is queued or running, unless ``replace``; `StatusUnavailable`.
    """
    status.job_id = job_id
    now = status.queued_at
    try:
        return Saved(status, kit.store.save(job_id, status, if_version=ABSENT))
    except VersionConflict:
        pass

    def decide(previous: Previous[Any]) -> Any:
        if previous.error is not None and not (replace and isinstance(previous.error, StatusCorrupt)):
            raise previous.error
        prev = previous.status
        if prev is not None and not replace and _is_unfinished(kit, prev):
            raise JobExists(
                f"Job {job_id} is {prev.state}. Submit under another ID, or pass replace=True to submit it anew."
            )
        next_ = status.clone()
        if prev is not None:
            next_.carry_over(prev)
        next_.queued_at = now  # a new request, not the old one's time
        return next_

    try:
        saved = swap(kit.store, job_id, decide)
    except NotSaved as error:
        raise error.cause from None
    return saved or Saved(status, None)


def _is_unfinished(kit: JobKit, status: Status) -> bool:
    has_lease = kit.settings.lease is not None or getattr(status, "lease_expires_at", None) is not None
    if status.state == State.RUNNING and has_lease:
        return is_alive(status, kit.recorder.now())  # else its worker is gone
    return status.state in (State.QUEUED, State.RUNNING)


def _members_for(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the task's engine wants to have in the record besides; raises what it has against the arguments."""
    backend = get_backend() if callable(get_backend := getattr(task, "get_backend", None)) else None
    members = getattr(backend, "jobkit_members", None)
    return cast("Mapping[str, Any]", members(task, args, kwargs)) if callable(members) else {}


def _enqueue_on_commit(
    kit: JobKit, task: Any, saved: Saved[Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """The rows that the task is about must be there when it starts."""

    def enqueue() -> None:
        dropped.detach()
        _enqueue(kit, task, saved, args, kwargs)

    # Django tells nobody of a rollback, and just lets go of what waited for the commit.
    dropped = weakref.finalize(enqueue, _record_dropped, kit, saved, os.getpid())
    transaction.on_commit(enqueue)


def _record_dropped(kit: JobKit, saved: Saved[Any], pid: int) -> None:
    global _asked_again_at
    if os.getpid() != pid:
        return  # a child has let go of its copy
    job_id = saved.status.job_id
    try:
        if time.monotonic() < _asked_again_at:
            raise StatusUnavailable("The storage failed a moment ago.")  # a rollback isn't to wait for it many times
        record_never_begun(kit, job_id, saved.status.queued_at, _DROPPED, known=saved)
    except Exception as error:  # also what goes wrong since the process is ending
        if time.monotonic() >= _asked_again_at:
            _asked_again_at = time.monotonic() + _LEFT_ALONE
        extra = {"job_id": job_id}
        logger.warning("job %s was never queued, and can't be recorded so: %s", job_id, error, extra=extra)


def record_never_begun(
    kit: JobKit, job_id: str, queued_at: datetime | None, error: str, *, known: Saved[Any] | None = None
) -> None:
    """Record that the submission of this time failed, with all that its record says, if that still stands there.

    ``known`` is as for `swap`. Raises `StatusUnavailable`.
    """

    def decide(previous: Previous[Any]) -> Any:
        if isinstance(previous.error, StatusUnavailable):
            raise previous.error
        prev = previous.status
        if prev is None or prev.state != State.QUEUED or prev.queued_at != queued_at:
            return None
        next_ = prev.clone()
        next_.state, next_.error = State.FAILED, error
        return next_

    try:
        swap(kit.store, job_id, decide, known=known)
    except NotSaved as failure:
        raise failure.cause from None


def _enqueue(kit: JobKit, task: Any, saved: Saved[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    job_id = saved.status.job_id
    try:
        with _noted(saved):
            kit.hand_over(task, job_id, args, kwargs)
    except BaseException as error:
        record_failed(kit, job_id, f"It could not be queued. {errortext.describe(error)}")
        raise


@contextmanager
def _noted(saved: Saved[Any]) -> Iterator[None]:
    token = _handing_over.set(saved)
    try:
        yield
    finally:
        _handing_over.reset(token)


def record_failed(kit: JobKit, job_id: str, error: str) -> None:
    """Record that the job will not be run, and why. Never raises for trouble with the storage."""

    def keep(next_: Status, prev: Status | None) -> None:
        if prev is not None:
            next_.extra.update(prev.extra)

    kit.recorder.record(job_id, kit.status_class(state=State.FAILED, error=error), keep)


def hand_over(task: Any, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """See `JobKit.hand_over`."""
    _call(task)(job_id, *args, **kwargs)


def _call(task: Any) -> Callable[..., Any]:
    """How the engine takes a task: Django's `Task.enqueue`, Celery's `apply_async`, or a function that does it."""
    if callable(enqueue := getattr(task, "enqueue", None)):
        return cast("Callable[..., Any]", enqueue)
    if callable(apply_async := getattr(task, "apply_async", None)):
        return lambda job_id, *args, **kwargs: apply_async((job_id, *args), kwargs, task_id=job_id)
    if callable(task):
        return cast("Callable[..., Any]", task)
    raise TypeError(
        f"A task has enqueue() or apply_async(), or is a function that hands it to its queue; not {task!r}."
    )


def _command_of(task: Any) -> str:
    for holder in (task, getattr(task, "func", None), getattr(task, "run", None)):
        command = getattr(holder, "jobkit_command", None)
        if isinstance(command, str):
            return command
    return ""


def _in_transaction() -> bool:
    if not settings.DATABASES.get("default"):
        return False
    return bool(transaction.get_connection().in_atomic_block)
