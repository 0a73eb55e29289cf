"""Submitting a job: its record first, then its task, and never the one without the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.db import transaction

from .exceptions import JobExists, StatusCorrupt, VersionConflict
from .jobs import State, Status, errortext, ids
from .jobs.files import ABSENT
from .jobs.recorder import is_alive
from .jobs.swap import NotSaved, Previous, swap

if TYPE_CHECKING:
    from .kit import JobKit


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
    _record_queued(kit, job_id, command, replace=replace, fields=fields)
    if _in_transaction():
        # The rows that the task is about must be there when it starts.
        transaction.on_commit(lambda: _enqueue(kit, task, job_id, args, kwargs))
    else:
        _enqueue(kit, task, job_id, args, kwargs)
    return job_id


def _record_queued(kit: JobKit, job_id: str, command: str, *, replace: bool, fields: Mapping[str, Any]) -> None:
    now = kit.recorder.now()
    status = kit.status_class(state=State.QUEUED, **{"command": command, "queued_at": now, **fields})
    try:
        kit.store.save(job_id, status, if_version=ABSENT)
    except VersionConflict:
        pass
    else:
        return

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
        swap(kit.store, job_id, decide)
    except NotSaved as error:
        raise error.cause from None


def _is_unfinished(kit: JobKit, status: Status) -> bool:
    if status.state == State.RUNNING and kit.settings.lease is not None:
        return is_alive(status, kit.recorder.now())  # else its worker is gone
    return status.state in (State.QUEUED, State.RUNNING)


def _enqueue(kit: JobKit, task: Any, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        kit.hand_over(task, job_id, args, kwargs)
    except BaseException as error:
        failed = kit.status_class(state=State.FAILED, error=f"It could not be queued. {errortext.describe(error)}")
        kit.recorder.record(job_id, failed)
        raise


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
