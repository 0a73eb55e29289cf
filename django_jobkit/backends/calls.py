"""A call of a task as it is kept: in the job's record, and beside it until the job has ended."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Self

from django.utils import timezone
from django.utils.module_loading import import_string

from django_jobkit.exceptions import ArgumentsRefused, ResultRefused
from django_jobkit.jobs import rfc3339, strictjson
from django_jobkit.tracking import RESULT_LIMIT

from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_QUEUE_NAME,
    InvalidTask,
    Task,
    TaskResultMismatch,
    normalize_json,
)

MEMBER: Final = "django_task"
"""The member of a job's record that says what task it is a call of."""

ARGUMENTS_LIMIT: Final = 64_000
"""Bytes of JSON that a call's arguments may have: the record is written again with every progress."""

_HINT: Final = (
    "Pass text, numbers, True, False, None, and lists or dicts of these; for an object pass its ID, for a file its name"
)


_DEFAULTS: Final[dict[str, Any]] = {
    "backend": DEFAULT_TASK_BACKEND_ALIAS,
    "args": [],
    "kwargs": {},
    "priority": 0,
    "queue_name": DEFAULT_TASK_QUEUE_NAME,
    "run_after": None,
}
"""Left out of the record and the marker, as most calls have them."""


class NoSuchTask(TaskResultMismatch):
    """The call names a task that the site's code doesn't have (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCall:
    """Which task is to be called with what, when, and before which others.

    ``args`` of a tracked task are those after the job's ID. ``token`` tells two submissions under one ID apart.
    """

    path: str
    backend: str
    args: list[Any]
    kwargs: dict[str, Any]
    priority: int
    queue_name: str
    run_after: datetime | None
    token: str

    @classmethod
    def of(cls, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, token: str = "") -> Self:
        """A fresh call, under a new token unless one is given. Raises `ArgumentsRefused`."""
        plain_args, plain_kwargs = _as_json(task.name, args, kwargs)
        run_after = task.run_after
        if run_after is not None and timezone.is_naive(run_after):
            run_after = timezone.make_aware(run_after)
        return cls(
            path=task.module_path,
            backend=task.backend,
            args=plain_args,
            kwargs=plain_kwargs,
            priority=int(task.priority),
            queue_name=task.queue_name,
            run_after=run_after,
            token=token or secrets.token_hex(4),
        )

    def member(self) -> dict[str, Any]:
        """What stands in the record; see `from_member`."""
        values = {name: getattr(self, name) for name in _FIELDS}  # dataclasses.asdict would copy all there is
        if self.run_after is not None:
            values["run_after"] = rfc3339.render(self.run_after)
        return {name: value for name, value in values.items() if value != _DEFAULTS.get(name)}

    @classmethod
    def from_member(cls, member: Any) -> Self:
        """The call that `member` describes. Raises ValueError for what it can't have written."""
        try:
            known = {name: member[name] for name in _FIELDS if name in member}
            values = {**_DEFAULTS, **known}
            if values["run_after"] is not None:
                values["run_after"] = rfc3339.parse(values["run_after"])
            call = cls(**values)
        except TypeError as error:
            raise ValueError(f"no call of a task: {error}") from error
        texts = (call.path, call.backend, call.queue_name, call.token)
        if not (
            all(isinstance(text, str) for text in texts)
            and isinstance(call.args, list)
            and isinstance(call.kwargs, dict)
            and isinstance(call.priority, int)
        ):
            raise ValueError("no call of a task: a value of the wrong kind")
        return call

    def task(self) -> Task[Any, Any]:
        """The task, with what this call says of it.

        Raises `NoSuchTask`, also where the name is that of anything but a task: who can write into the storage must
        not get any function called.
        """
        try:
            task = import_string(self.path)
        except ImportError as error:
            raise NoSuchTask(f"There is no task {self.path} (any more): {error}") from error
        if not isinstance(task, Task):
            raise NoSuchTask(f"{self.path} is no task (any more).")
        try:
            return task.using(
                priority=self.priority, queue_name=self.queue_name, run_after=self.run_after, backend=self.backend
            )
        except InvalidTask:  # QUEUES has changed since, say; what was accepted is still run
            return task


_FIELDS: Final = tuple(field.name for field in fields(TaskCall))


def is_tracked(task: Task[Any, Any]) -> bool:
    """Whether the task's function takes a job's ID first and records its runs by itself."""
    return isinstance(getattr(task.func, "jobkit_command", None), str)


def command_of(task: Task[Any, Any]) -> str:
    """What the task's jobs are called."""
    command = getattr(task.func, "jobkit_command", None)
    return command if isinstance(command, str) else task.name


def _as_json(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as they will come back from JSON, sharing nothing with what was passed."""
    if not args and not kwargs:
        return [], {}
    try:
        text, plain = _through_json([list(args), dict(kwargs)])
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentsRefused(f"{_culprit(name, args, kwargs)} can't be kept as JSON: {error}. {_HINT}.") from error
    if len(text) > ARGUMENTS_LIMIT:
        raise ArgumentsRefused(
            f"The arguments of {name} have {len(text):,} bytes of JSON, more than {ARGUMENTS_LIMIT:,}. "
            f"Store what is long in the job's directory, and pass its name."
        )
    plain_args, plain_kwargs = plain
    return plain_args, plain_kwargs


def _through_json(value: Any) -> tuple[bytes, Any]:
    """The JSON of the value, and what comes back from it, which is to be what was passed."""
    value = normalize_json(value)
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    plain = json.loads(text)
    if plain != value:
        strictjson.dumps(value)  # says what is wrong: the standard library makes text of other names in objects
        raise TypeError("it would come back as something else")
    return text, plain


def _culprit(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    named = [(f"Argument {number} of {name}", value) for number, value in enumerate(args, 1)]
    named += [(f"Argument {key} of {name}", value) for key, value in kwargs.items()]
    for words, value in named:
        try:
            _through_json(value)
        except (TypeError, ValueError, RecursionError):
            return f"{words}, a {type(value).__name__},"
    return f"A value in the arguments of {name}"


def storable_result(name: str, result: Any) -> Any:
    """A task's result as its record will hold it. Raises `ResultRefused`.

    As in other backends, numbers that are names in a dict become text.
    """
    if result is None:
        return None
    try:
        text = json.dumps(normalize_json(result), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultRefused(
            f"{name} returned a {type(result).__name__} that can't be recorded as JSON: {error}. "
            f"Return text, numbers, True, False, None, and lists or dicts of these."
        ) from error
    if len(text) > RESULT_LIMIT:
        raise ResultRefused(
            f"{name} returned {len(text):,} bytes of JSON, more than the {RESULT_LIMIT:,} that a record may hold. "
            f"Save it as an output of the job, and return its name."
        )
    return json.loads(text)
