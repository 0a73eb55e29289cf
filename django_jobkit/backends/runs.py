"""One run of an accepted call: claimed, called, recorded, and told to those who listen to Django's tasks."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.dispatch import Signal

from django_jobkit.exceptions import (
    JobBusy,
    PermanentJobError,
    StatusCorrupt,
    StatusNotFound,
    StatusUnavailable,
)
from django_jobkit.inprocess import current_cancellation
from django_jobkit.jobs import State, Status, errortext
from django_jobkit.jobs.swap import Saved
from django_jobkit.kit import JobKit
from django_jobkit.submission import record_failed
from django_jobkit.tracking import Engine, engine_of, stop_requested, tracked

from .calls import MEMBER, NoSuchTask, TaskCall, is_tracked, storable_result
from .compat import Task, TaskContext, TaskResult, task_finished, task_started
from .entries import Entry
from .results import call_in, class_path, result_of

_WORKERS_KEPT: Final = 20
_PUT_BACK: Final = "Its process stopped before it was done. It will run again."

logger = logging.getLogger("django_jobkit.backends")


class Outcome(Enum):
    """What a run leaves to do."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDLESS = "needless"  # it has ended before, was deleted, or was submitted anew
    PUT_BACK = "put back"  # queued again, for the process that comes next
    BUSY = "busy"  # another worker is at it
    UNAVAILABLE = "unavailable"  # its record could not be read or written
    UNRECORDED = "unrecorded"  # it has been run, and the record doesn't say so
    LOST = "lost"  # another worker has taken it over
    UNCLEAR = "unclear"  # a person has to look at its record


class _Skip(Exception):
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


class TaskRun(Engine):
    """Runs one call, once: claims the job, if it still waits for this call or its worker is gone.

    ``sender`` is that of the signals. A job that ends in an error after it was told to stop is put back, if another
    process will find it by its marker.
    """

    def __init__(self, kit: JobKit, entry: Entry, *, lease: float, worker_id: str, sender: object) -> None:
        self.kit = kit
        self.entry = entry
        self.call: TaskCall = entry.call
        self.job_id = entry.key.job_id
        self.lease = lease
        self.worker_id = worker_id
        self.sender = sender
        self.task: Task[Any, Any] | None = None
        self.begun: Any = None
        self.final: Any = None
        self.error: BaseException | None = None
        self.lost = False
        self._recording = False

    def __call__(self) -> Outcome:
        cancellation = current_cancellation()
        token = stop_requested.set(lambda: cancellation.cancelled)
        try:
            self._hold_record()
            self.task = self.call.task()
            with engine_of(self.job_id, self):
                self._call_function(self.task)
            if self.error is not None:
                raise self.error  # swallowed by the tracker, as one that isn't to be retried
        except _Skip as skip:
            return skip.outcome
        except BaseException as error:
            return self._ended(error) if self.begun is not None else self._never_begun(error)
        finally:
            self._release_record()
            stop_requested.reset(token)
        return self._ended(None) if self.begun is not None else self._never_begun(None)

    def _call_function(self, task: Task[Any, Any]) -> None:
        function: Callable[..., Any] = task.func
        if not is_tracked(task):
            function = tracked(task.name, kit=self.kit.alias)(self._call_plain)
        if inspect.iscoroutinefunction(function):
            # Not asyncio.run: so its synchronous parts come back to this thread, whose connections are closed after.
            function = async_to_sync(function)
        args, kwargs = copy.deepcopy((self.call.args, self.call.kwargs))  # it may change what it is given
        function(self.job_id, *args, **kwargs)

    def _call_plain(self, _job: object, *args: Any, **kwargs: Any) -> Any:
        task = self.task
        assert task is not None
        if task.takes_context:
            args = (TaskContext(task_result=self._result(self.begun)), *args)
        function = async_to_sync(task.func) if inspect.iscoroutinefunction(task.func) else task.func
        return function(*args, **kwargs)

    def _hold_record(self) -> None:
        """Nobody else is to write the first record of the job while this run does."""
        if self.entry.unwritten:
            self.entry.recording.acquire()
            self._recording = True

    def _release_record(self) -> None:
        if self._recording:
            self._recording = False
            self.entry.recording.release()

    # --- as the engine of this run -------------------------------------------------------------------------------

    def starting(self, next_: Any, prev: Any) -> None:
        if prev is None:
            raise _Skip(Outcome.NEEDLESS)
        recorded = call_in(prev)
        if recorded is not None and recorded.token != self.call.token:
            raise _Skip(Outcome.NEEDLESS)
        if prev.state == State.RUNNING:
            if prev.lease_expires_at is None:
                raise _Skip(Outcome.UNCLEAR)  # run by something without a lease: whether it is alive can't be told
        elif prev.state != State.QUEUED:
            raise _Skip(Outcome.NEEDLESS)
        before = prev.extra[MEMBER].get("worker_ids") if recorded is not None else None
        workers = [*before, self.worker_id] if isinstance(before, list) else [self.worker_id]
        next_.extra[MEMBER] = {**self.call.member(), "worker_ids": workers[-_WORKERS_KEPT:]}

    @property
    def known(self) -> Saved[Any] | None:
        return self.entry.take_known(self.kit.status_class)

    def started(self, status: Any) -> None:
        self.begun = status
        self.entry.unwritten = False
        self._release_record()
        self._tell(task_started, status)

    def accept_result(self, result: Any) -> Any:
        return storable_result(self.call.path, result)

    def ending(self, status: Any, error: BaseException | None) -> None:
        member = dict(status.extra.get(MEMBER, {}))
        member.pop("error_class", None)
        if error is not None and self._is_put_back(error):
            status.state, status.error, status.finished_at = State.QUEUED, _PUT_BACK, None
        elif error is not None:
            member["error_class"] = class_path(error)
        status.extra[MEMBER] = member

    def ended(self, status: Any, error: BaseException | None, *, lost: bool) -> None:
        self.final, self.error, self.lost = status, error, lost

    def _is_put_back(self, error: BaseException) -> bool:
        # Any error, not only JobCancelled: what is called in a process that ends fails in many ways.
        stopped = current_cancellation().cancelled
        return self.entry.durable and stopped and not isinstance(error, PermanentJobError)

    # --- afterwards ----------------------------------------------------------------------------------------------

    def _ended(self, error: BaseException | None) -> Outcome:
        """Called while ``error`` is handled, so that receivers can log its traceback."""
        final = self.final
        if self.lost:
            return Outcome.LOST
        if final is None:
            final = self.begun.clone()
            final.state = State.SUCCEEDED if self.error is None else State.FAILED
            final.error = "" if self.error is None else errortext.describe(self.error)
            self._tell_finished(final)
            return Outcome.UNRECORDED
        if final.state == State.QUEUED:
            logger.info("job %s was put back to run again", self.job_id, extra={"job_id": self.job_id})
            return Outcome.PUT_BACK
        self._tell_finished(final)
        if error is not None and final.state == State.SUCCEEDED:
            logger.error("job %s has succeeded, and what is around it failed", self.job_id, exc_info=True)
        return Outcome.SUCCEEDED if final.state == State.SUCCEEDED else Outcome.FAILED

    def _never_begun(self, error: BaseException | None) -> Outcome:
        """The tracker didn't begin the job, or raised instead: ``error`` is being handled then."""
        extra = {"job_id": self.job_id}
        if isinstance(error, JobBusy):
            return Outcome.BUSY
        if isinstance(error, StatusUnavailable):
            logger.warning("job %s can't be begun yet: %s", self.job_id, error, extra=extra)
            return Outcome.UNAVAILABLE
        if isinstance(error, StatusCorrupt):
            logger.error("job %s can't be begun: %s", self.job_id, error, extra=extra)
            return Outcome.UNCLEAR
        self._release_record()
        try:
            self.entry.write(self.kit.store)
            status: Status = self.kit.store.get(self.job_id)
        except StatusNotFound:
            return Outcome.NEEDLESS
        except (StatusUnavailable, StatusCorrupt):
            return Outcome.UNAVAILABLE
        recorded = call_in(status)
        if status.state != State.QUEUED or (recorded is not None and recorded.token != self.call.token):
            return Outcome.NEEDLESS
        if error is None:
            error = RuntimeError(f"{self.call.path} returned without calling the function that @tracked wraps.")
        logger.error("job %s could not be begun: %s", self.job_id, error, exc_info=error, extra=extra)
        text = str(error) if isinstance(error, NoSuchTask) else errortext.describe(error)
        record_failed(self.kit, self.job_id, f"It could not be begun. {text}")
        return Outcome.FAILED

    def _result(self, status: Status) -> TaskResult[Any, Any]:
        assert self.task is not None
        return result_of(self.job_id, status, self.call, self.task)

    def _tell_finished(self, status: Status) -> None:
        self._tell(task_finished, status)

    def _tell(self, signal: Signal, status: Status) -> None:
        try:
            signal.send_robust(sender=self.sender, task_result=self._result(status))
        except BaseException:  # what ends a process, or a task, in those who listen: the job is none of theirs
            logger.exception("job %s: somebody who listens to Django's tasks failed", self.job_id)
