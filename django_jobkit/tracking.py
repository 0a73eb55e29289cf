"""The life of one run, whichever engine calls it: `tracked` wraps the function, `Job` is what the function gets."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from django.core.files.base import ContentFile, File

from .conf import DEFAULT_ALIAS
from .engines import Engine, current_engine, engine_of, stop_requested
from .exceptions import JobCancelled, PermanentJobError
from .jobs import Recorder, State, errortext, ids
from .jobs.recorder import Claim
from .jobs.run import Run
from .jobs.swap import NotSaved
from .kit import JobKit, jobkits

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Engine", "Job", "engine_of", "stop_requested", "tracked"]

logger = logging.getLogger("django_jobkit.tracking")

RESULT_LIMIT: Final = 64_000
"""Bytes of JSON that a function's return value may have to be recorded as the job's result."""

_OWN_FRAMES: Final = str(Path(__file__).resolve().parent)


class Job:
    """A running job, as its function sees it. Its attributes may be set from any thread of the job.

    What is set here is recorded in the background, at most once per PROGRESS_INTERVAL, and with the job's end.
    """

    def __init__(self, kit: JobKit, job_id: str, attempt: int) -> None:
        self.kit = kit
        self.job_id = job_id
        self.attempt = attempt
        """1 for the first run of the job, 2 and more for retries."""
        self.outputs: list[str] = []
        """Names of the files made, relative to the job's directory."""
        self.result: Any = None
        self._title = ""
        self._current = 0
        self._total = 0
        self._message = ""
        self._run: Run[Any] | None = None
        self._stop = stop_requested.get()  # here, since the job's own threads have contexts of their own

    @property
    def title(self) -> str:
        """What the job is about, for people; set it as soon as it is known."""
        return self._title

    @title.setter
    def title(self, value: str) -> None:
        self._title = value
        if self._run is not None:
            self._run.touch()

    def progress(self, current: int, total: int | None = None, message: str | None = None) -> None:
        """Say how far the job is. May be called as often as one likes: it neither writes nor waits nor fails.

        ``total`` and ``message`` stay as they were where they aren't given. The latest values are recorded within
        PROGRESS_INTERVAL seconds, by a thread of the run's own, which renews the lease with them.
        """
        self._current = current
        if total is not None:
            self._total = total
        if message is not None:
            self._message = message
        run = self._run
        if run is not None and not run.dirty:
            run.touch()

    def save_output(self, name: str, content: bytes | str | File[Any]) -> str:
        """Write a file into the job's directory, list it in ``outputs``, and return its name.

        ``name`` is relative to the job's directory; a file of that name, as of an earlier attempt, is replaced.
        Raises ValueError for a name that would lead out of it, and what the storage raises.
        """
        path = self.kit.output_name(self.job_id, name)
        data = (
            content.encode() if isinstance(content, str) else content.read() if isinstance(content, File) else content
        )
        if isinstance(data, str):
            data = data.encode()
        self.kit.storage.write(path, data)
        if name not in self.outputs:
            self.outputs.append(name)
        return name

    def read_file(self, name: str) -> ContentFile[bytes]:
        """A file of the job's directory, as one that was stored there when the job was submitted."""
        return ContentFile(self.kit.storage.read(self.kit.output_name(self.job_id, name)).data, name=name)

    @property
    def cancelled(self) -> bool:
        """Whether the job is to end: its lease is lost, it was deleted, or its queue is stopping. Look often."""
        return (self._run is not None and self._run.lost.is_set()) or (self._stop is not None and self._stop())

    def check_cancelled(self) -> None:
        """Raise `JobCancelled` if the job is `cancelled`."""
        if self.cancelled:
            raise JobCancelled("The job was told to end before it was done.")

    def _write_into(self, status: Any) -> None:
        values = {
            "title": _text(self._title) or status.title,
            "progress_current": _count(self._current),
            "progress_total": _count(self._total),
            "progress_message": _text(self._message),
            "outputs": [_text(name) for name in self.outputs],
        }
        for name, value in values.items():
            if hasattr(status, name):
                setattr(status, name, value)


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
        job._run = run

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
        recorder, job_id, claim, begun, live=job._write_into, interval=kit.settings.progress_interval, logger=logger
    )
    engine.started(claim.saved.status if claim.saved else None)
    return _Tracker(job, run, engine)


def _count(value: Any) -> int:
    """A number that a status file can hold; 0 for what is none."""
    try:
        return max(min(int(value), 2**63 - 1), -(2**63))
    except (TypeError, ValueError, OverflowError):
        return 0


def _text(value: object) -> str:
    """Text that a status file can hold."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


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
