"""One job, run to its end, which nothing that the job does can prevent."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable
from contextvars import Context

from .cancellation import Cancellation, running_under


def call(job: Callable[[], object]) -> object:
    """Run ``job`` to its end, in an event loop of its own if it is async, and return what it returns."""
    result = job()
    if result is not None and inspect.iscoroutine(result):
        import asyncio  # whoever wrote an async job has loaded it already; others needn't

        return asyncio.run(result)
    return result


def run(
    job: Callable[[], object],
    context: Context,
    cancellation: Cancellation,
    after_each: Callable[[], object] | None,
    logger: logging.Logger,
) -> bool:
    """Whether ``job`` ended without an error. Its error, and one of ``after_each``, is logged and goes no further."""
    succeeded = False
    try:
        context.run(_call, job, cancellation)
        succeeded = True
    except BaseException:
        _log(logger, "Job %r failed.", job)
    if after_each is not None:
        try:
            context.run(after_each)
        except BaseException:
            _log(logger, "What is to be done after each job failed after %r.", job)
    return succeeded


def _call(job: Callable[[], object], cancellation: Cancellation) -> None:
    running_under(cancellation)
    call(job)


def _log(logger: logging.Logger, message: str, job: Callable[[], object]) -> None:
    with contextlib.suppress(BaseException):  # a broken log handler must not stop a worker either
        logger.error(message, job, exc_info=True)
