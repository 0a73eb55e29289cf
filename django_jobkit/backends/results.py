"""A job's record, as the `TaskResult` that Django's tasks know it by."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django_jobkit.jobs import State, Status

from .calls import MEMBER, TaskCall, is_tracked
from .compat import Task, TaskError, TaskResult, TaskResultStatus

_STATUSES: Final[dict[str, TaskResultStatus]] = {
    State.QUEUED: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
}
_NO_CLASS: Final = "django_jobkit.exceptions.JobKitError"

NEEDED: Final = ("lease_id", "lease_expires_at", "started_at", "finished_at", "result")
"""Fields beside the common eight that a kit's status class must have for its jobs to be run by a backend."""


def missing_fields(status_class: type[Status]) -> tuple[str, ...]:
    """Those of `NEEDED` that the class doesn't have."""
    known = status_class.__dataclass_fields__
    return tuple(name for name in NEEDED if name not in known)


def call_in(status: Status) -> TaskCall | None:
    """The call that the record says the job is of; None where it doesn't, or not so that it can be understood."""
    try:
        return TaskCall.from_member(status.extra[MEMBER])
    except (KeyError, ValueError):
        return None


def result_of_new(job_id: str, now: datetime, call: TaskCall, task: Task[Any, Any]) -> TaskResult[Any, Any]:
    """The result of a job that has just been queued for the first time, and isn't `tracked`, as `result_of`."""
    return TaskResult(
        task=task,
        id=job_id,
        status=TaskResultStatus.READY,
        enqueued_at=now,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        errors=[],
        worker_ids=[],
    )


def result_of(job_id: str, status: Any, call: TaskCall, task: Task[Any, Any]) -> TaskResult[Any, Any]:
    """The result of a job as ``status`` records it, sharing no list or dict with that.

    Of a job that ran several times, the last run's times and error are known, and the workers of all its runs.
    A state that this version doesn't know counts as running: not finished.
    """
    state = _STATUSES.get(status.state, TaskResultStatus.RUNNING)
    member = status.extra.get(MEMBER)
    member = member if isinstance(member, dict) else {}
    result: TaskResult[Any, Any] = TaskResult(
        task=task,
        id=job_id,
        status=state,
        enqueued_at=status.queued_at,
        started_at=status.started_at,
        finished_at=status.finished_at,
        last_attempted_at=status.started_at,
        args=[job_id, *call.args] if is_tracked(task) else call.args,  # copied by the result, as are the next
        kwargs=call.kwargs,
        backend=call.backend,
        errors=[],
        worker_ids=_workers(member.get("worker_ids"), status.attempts),
    )
    if state == TaskResultStatus.FAILED:
        path = member.get("error_class")
        result.errors.append(
            TaskError(exception_class_path=path if isinstance(path, str) else _NO_CLASS, traceback=status.error)
        )
    elif state == TaskResultStatus.SUCCESSFUL:
        object.__setattr__(result, "_return_value", status.result)
    return result


def _workers(found: Any, attempts: int) -> list[str]:
    """One for each attempt, since that is how the result counts them; other engines leave no names."""
    names = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    return ["unknown"] * (attempts - len(names)) + names


def class_path(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"
