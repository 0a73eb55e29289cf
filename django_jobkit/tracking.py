"""The life of one run, whichever engine calls it: `tracked` wraps the function, which gets a `Job`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from .conf import DEFAULT_ALIAS
from .engines import Engine, current_engine, engine_of, stop_requested
from .exceptions import PermanentJobError
from .job import Job
from .jobs import Recorder, State, errortext, ids
from .jobs.recorder import Claim
from .jobs.run import Run
from .jobs.swap import NotSaved
from .kit import jobkits

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Engine", "Job", "engine_of", "stop_requested", "tracked"]

logger = logging.getLogger("django_jobkit.tracking")

RESULT_LIMIT: Final = 64_000
"""Bytes of JSON that a function's return value may have to be recorded as the job's result."""

_OWN_FRAMES: Final = str(Path(__file__).resolve().parent)


def tracked(
    command: str = "", *, kit: str = DEFAULT_ALIAS
) -> Callable[[Callable[Concatenate[Job, P], R]], Callable[Concatenate[str, P], R | None]]:
    """Record the runs of a function, sync or async, under the alias ``kit``.

    The function's first argument becomes the `Job`; callers, which are engines, pass the job's ID instead::

        @shared_task
        @tracked(command="summarize")
        def summarize(job, path): ...

    A job that has succeeded isn't run again: the wrapper returns None at once. Before a run, attempts are counted
    and ``running`` is recorded; after it, once, the end: ``succeeded``, with what the function returns as the result,
    or ``failed``, with the error's text, for every exception, those that end a thread or a process included. The
    arguments are checked within the run, so a job that can't take them is ``failed`` and doesn't just vanish.

    Exceptions are raised again for the engine to retry, but for `PermanentJobError`. Besides them the wrapper raises
    `InvalidJobID`, `JobBusy` (another worker's lease on the job is alive: deliver again later), and
    `StatusUnavailable` or `StatusCorrupt` where it can't be told whether the job has succeeded.
    """

    def decorate(function: Callable[Concatenate[Job, P], R]) -> Callable[Concatenate[str, P], R | None]:
        name = command or function.__name__
        if inspect.iscoroutinefunction(function):
            wrapper: Any = _async_wrapper(function, name, kit)
        else:
            wrapper = _sync_wrapper(function, name, kit)
        # Not functools.wraps: __wrapped__ would have callers' signature checks see the Job.
        functools.update_wrapper(wrapper, function)
        del wrapper.__wrapped__
        wrapper.jobkit_command = name
        wrapper.jobkit_alias = kit
        return cast("Callable[Concatenate[str, P], R | None]", wrapper)

    return decorate


def _sync_wrapper(function: Callable[..., Any], command: str, alias: str) -> Callable[..., Any]:
    def run(job_id: str, /, *args: Any, **kwargs: Any) -> Any:
        tracker = _begin(alias, job_id, command)
        if tracker is None:
            return None
        try:
            result = tracker.accepted(function(tracker.job, *args, **kwargs))
        except BaseException as error:
            tracker.failed(error)
            if isinstance(error, PermanentJobError):
                return None
            raise
        tracker.succeeded()
        return result

    return run


def _async_wrapper(function: Callable[..., Any], command: str, alias: str) -> Callable[..., Any]:
    async def run(job_id: str, /, *args: Any, **kwargs: Any) -> Any:
        beginning = asyncio.ensure_future(asyncio.to_thread(_begin, alias, job_id, command))
        try:
            tracker = await asyncio.shield(beginning)
        except asyncio.CancelledError as error:
            tracker = await beginning  # its thread goes on in any case, and what it begins must end
            if tracker is not None:
                await asyncio.to_thread(tracker.failed, error)
            raise
        if tracker is None:
            return None
        try:
            result = tracker.accepted(await function(tracker.job, *args, **kwargs))
        except BaseException as error:
            # Shielded: a task cancelled once more still has its end recorded, by the thread.
            await asyncio.shield(asyncio.to_thread(tracker.failed, error))
            if isinstance(error, PermanentJobError):
                return None
            raise
        await asyncio.shield(asyncio.to_thread(tracker.succeeded))
        return result

    return run


class _Tracker:
    """One run's job, and its end record."""

    def __init__(self, job: Job, run: Run[Any], engine: Engine) -> None:
        self.job = job
        self.run = run
        self.engine = engine
        job.belongs_to(run)

    def accepted(self, result: Any) -> Any:
        """What the function has returned, or set as the job's result, once its engine has accepted that."""
        job = self.job
        job.result = self.engine.accept_result(job.result if result is None else result)
        return result

    def succeeded(self) -> None:
        self._finish(State.SUCCEEDED, None)

    def failed(self, error: BaseException) -> None:
        self._finish(State.FAILED, error)

    def _finish(self, state: State, error: BaseException | None) -> None:
        text = "" if error is None else errortext.describe(error, skip=_OWN_FRAMES)
        result = _recordable(self.job.job_id, self.job.result)

        def end(status: Any) -> None:
            status.state = state
            status.error = text
            if hasattr(status, "finished_at"):
                status.finished_at = self.run.recorder.now()
            if hasattr(status, "result"):
                status.result = result
            self.engine.ending(status, error)

        recorded = lost = False
        try:
            recorded = self.run.finish(end)
            lost = not recorded
        except NotSaved as failure:
            # The work is done and its engine is answered accordingly: a retry would do, and bill, it again.
            logger.error(
                "job %s has %s, and that could not be recorded: %s",
                self.job.job_id,
                state,
                failure.cause,
                extra={"job_id": self.job.job_id},
            )
        else:
            if lost:
                logger.warning(
                    "job %s has %s, and that is not recorded: the job is no longer this worker's",
                    self.job.job_id,
                    state,
                    extra={"job_id": self.job.job_id},
                )
        self.engine.ended(self.run.saved.status if recorded and self.run.saved else None, error, lost=lost)


def _begin(alias: str, job_id: str, command: str) -> _Tracker | None:
    kit = jobkits[alias]
    job_id = ids.sanitize(job_id)
    set_ = current_engine.get()
    engine = set_[1] if set_ is not None and set_[0] == job_id else Engine()
    lease = kit.settings.lease if engine.lease is None else engine.lease
    recorder: Recorder[Any] = Recorder(kit.store, lease=lease)
    begun = kit.status_class(state=State.RUNNING, command=command)

    def start(next_: Any, prev: Any) -> None:
        next_.attempts += 1
        if hasattr(next_, "started_at"):
            next_.started_at = recorder.now()
        engine.starting(next_, prev)

    claim: Claim[Any] | None = recorder.claim(job_id, begun, start, known=engine.known)
    if claim is None:
        logger.info("job %s has succeeded already and is not run again", job_id, extra={"job_id": job_id})
        return None
    job = Job(kit, job_id, claim.saved.status.attempts if claim.saved else 1)
    run = Run(
        recorder, job_id, claim, begun, live=job.write_into, interval=kit.settings.progress_interval, logger=logger
    )
    tracker = _Tracker(job, run, engine)
    try:
        engine.started(claim.saved.status if claim.saved else None)
    except BaseException as error:
        tracker.failed(error)  # else the job would have a lease that is renewed for ever
        raise
    return tracker


def _recordable(job_id: str, result: Any) -> Any:
    """The result, if a status file can hold it. Else None: the work isn't lost for what it returns."""
    if result is None:
        return None
    try:
        size = len(json.dumps(result, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        logger.warning("job %s: its result is no JSON and is not recorded: %s", job_id, error)
        return None
    if size > RESULT_LIMIT:
        logger.warning("job %s: its result has %d bytes, more than %d, and is not recorded", job_id, size, RESULT_LIMIT)
        return None
    return json.loads(json.dumps(result))
