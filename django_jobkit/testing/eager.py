"""Running a job in the call that submits it, in place of an engine."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from asgiref.sync import async_to_sync

from django_jobkit.engines import Engine, engine_of
from django_jobkit.submission import take_handed_over

logger = logging.getLogger("django_jobkit.testing")


def run_now(
    task: Any, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, raise_errors: bool = False
) -> None:
    """Run the task's function, sync or async, to its end.

    Its errors are logged, as an engine would; with ``raise_errors`` they are raised. What ends a process
    (``KeyboardInterrupt``, ``SystemExit``) is always raised.
    """
    function = _function_of(task)
    saved = take_handed_over(job_id)
    engine = _Eager({} if saved is None else saved.status.extra)
    try:
        with engine_of(job_id, engine):
            _run(function, job_id, *args, **kwargs)
    except Exception:
        if raise_errors:
            raise
        logger.exception("job %s ended with an error", job_id, extra={"job_id": job_id})


class _Eager(Engine):
    """Leaves in the record what the task's own engine has put there when the job was submitted, as that would."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members

    def starting(self, next_: Any, prev: Any) -> None:
        next_.extra.update(self._members)


def _function_of(task: Any) -> Callable[..., Any]:
    """What a worker of the task's engine would call: the function of Django's `Task`, or of a Celery task."""
    for name in ("func", "run"):
        if callable(function := getattr(task, name, None)):
            return cast("Callable[..., Any]", function)
    if callable(task):
        return cast("Callable[..., Any]", task)
    raise TypeError(f"A task has func or run, or is a function; not {task!r}.")


def _run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    if not inspect.iscoroutinefunction(function):
        function(*args, **kwargs)
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        async_to_sync(function)(*args, **kwargs)
        return
    # Submitted on an event loop's own thread: that loop can't go on before we return, so the job has another.
    with ThreadPoolExecutor(1, "jobkit-eager") as pool:
        pool.submit(contextvars.copy_context().run, asyncio.run, function(*args, **kwargs)).result()
