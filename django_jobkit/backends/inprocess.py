"""`InProcessBackend`: Django's tasks on threads of this very process, with the kit's records as their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_jobkit.exceptions import InvalidJobID, StatusNotFound
from django_jobkit.inprocess import StopReport
from django_jobkit.jobs import State, errortext, ids
from django_jobkit.kit import JobKit, jobkits
from django_jobkit.submission import handing_over, record_failed, record_queued

from . import checking, options, processwide
from .calls import MEMBER, TaskCall, command_of, is_tracked
from .compat import (
    BaseTaskBackend,
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    task_enqueued,
)
from .entries import Entry
from .markers import Key
from .results import call_in, missing_fields, result_of
from .service import BackendStats

_SUBMIT: Final = "Submit it with jobkits[{kit!r}].submit({name}, ...), which makes the ID and records the job."


class InProcessBackend(BaseTaskBackend):
    """Runs tasks on a bounded queue of this process; see `options.Options` for what ``OPTIONS`` may hold.

    A task's result is the job of the same ID: its record, found by any process that has the same kit. With DURABLE,
    what was accepted is stored until it has ended, and another process runs it if this one dies. A task may be run
    again when its process dies in the middle of it, as with every queue that doesn't lose tasks.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.problems = options.problems(alias, self.options)
        self.settings = options.Options() if self.problems else options.read(self.options)

    # --- what Django's tasks ask of a backend --------------------------------------------------------------------

    def validate_task(self, task: Task[Any, Any]) -> None:
        """Raise InvalidTask for what this backend can't run."""
        super().validate_task(task)
        if self.problems:
            raise InvalidTaskBackend(" ".join(f"{problem.message} {problem.hint}" for problem in self.problems))
        alias = getattr(task.func, "jobkit_alias", self.settings.kit)
        if alias != self.settings.kit:
            raise InvalidTask(
                f"{task.module_path} is tracked in the kit {alias!r}, and the backend {self.alias!r} records in "
                f"{self.settings.kit!r}: set its KIT to {alias!r}, or give the task another backend."
            )

    def enqueue(self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult[Any, Any]:
        """Accept a call, and have it run here; the result's ID is the job's.

        A task whose function is `tracked` takes the job's ID first, and is best submitted by `JobKit.submit`; any
        other task gets a fresh ID. Raises `QueueFull`, `QueueStopped`, `ArgumentsRefused` and `StatusUnavailable` or
        `StorageUnavailable`; nothing was accepted then.
        """
        self.validate_task(task)
        kit = self.kit
        status: Any = None
        job_id = ""
        if is_tracked(task):
            job_id = self._job_id_in(task, args)
            args = args[1:]
            status = handing_over(job_id)
        is_recorded = status is not None
        call = call_in(status) if is_recorded else None
        if call is None:
            call = self._call_of(task, args, kwargs)
        if not is_recorded:
            now = kit.recorder.now()
            command = command_of(task)
            job_id = job_id or ids.new(command, now=now)
            status = kit.status_class(state=State.QUEUED, command=command, queued_at=now)
            status.extra[MEMBER] = call.member()
        entry = Entry(Key(job_id, call.token), call, status.queued_at, durable=self.settings.durable)
        result = result_of(job_id, status, call, task)
        service = processwide.service_of(self)
        written = False

        def write_record() -> None:
            nonlocal written
            if not is_recorded:
                record_queued(kit, job_id, status)
                written = True

        def announce() -> None:
            task_enqueued.send_robust(sender=type(self), task_result=result)

        try:
            service.accept(entry, write_record, announce)
        except BaseException as error:
            if written:
                record_failed(kit, job_id, f"It could not be queued. {errortext.describe(error)}")
            raise
        return result

    def get_result(self, result_id: str) -> TaskResult[Any, Any]:
        """The result of this ID, whichever process has it.

        Raises TaskResultDoesNotExist if there is no such job, or its record doesn't say what task it is of;
        `StatusUnavailable` or `StatusCorrupt` where that can't be told; `NoSuchTask` if the task's code is gone.
        """
        try:
            status = self.kit.store.get(result_id)
        except (StatusNotFound, InvalidJobID) as error:
            raise TaskResultDoesNotExist(result_id) from error
        call = call_in(status)
        if call is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(ids.sanitize(result_id), status, call, call.task())

    async def aget_result(self, result_id: str) -> TaskResult[Any, Any]:
        """`get_result`, in a thread of its own."""
        return await sync_to_async(self.get_result, thread_sensitive=False)(result_id)

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """What is wrong with the backend's settings, each by the setting's name."""
        return list(checking.messages(self))

    # --- what `JobKit.submit` asks of a task's backend -----------------------------------------------------------

    def jobkit_members(self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is to stand in the record of this call. Raises what `enqueue` would have against the arguments."""
        self.validate_task(task)
        if not is_tracked(task):
            raise TypeError(
                f"{task.module_path} is not tracked, so it can't take a job's ID: wrap its function with @tracked, or "
                f"call its own enqueue()."
            )
        return {MEMBER: self._call_of(task, args, kwargs).member()}

    def jobkit_refuse_if_full(self, task: Task[Any, Any]) -> None:
        """Raise `QueueFull` or `QueueStopped` if a call would now be refused, which counts as one that was."""
        processwide.service_of(self).require_room(task.run_after)

    # --- more ----------------------------------------------------------------------------------------------------

    @property
    def kit(self) -> JobKit:
        """Where the jobs are recorded."""
        return jobkits[self.settings.kit]

    def stats(self) -> BackendStats:
        """The counts of this backend's queue in this process."""
        return processwide.stats_of(self.alias, self.settings)

    def stop(self, timeout: float | None = None) -> StopReport:
        """Stop this backend's queue in this process; see `stop_queues`. None: within STOP_TIMEOUT."""
        return processwide.service_of(self).stop(self.settings.stop_timeout if timeout is None else timeout)

    def _call_of(self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskCall:
        call = TaskCall.of(task, args, kwargs)
        if missing := missing_fields(self.kit.status_class):
            raise ImproperlyConfigured(
                f"{self.kit.name_of('STATUS_CLASS')} is {self.kit.settings.status_class}, which has no "
                f"{', '.join(missing)}: let it inherit from django_jobkit.jobs.JobStatus."
            )
        try:
            found = import_string(call.path)
        except ImportError:
            found = None
        if not isinstance(found, Task):
            raise InvalidTask(
                f"{call.path} is not the name of the task, by which other processes find it: give the task the name "
                f"of its function."
            )
        return call

    def _job_id_in(self, task: Task[Any, Any], args: Sequence[Any]) -> str:
        hint = _SUBMIT.format(kit=self.settings.kit, name=task.name)
        if not args or not isinstance(args[0], str):
            raise TypeError(f"{task.name} is tracked: its first argument is the job's ID. {hint}")
        try:
            return ids.sanitize(args[0])
        except InvalidJobID as error:
            raise type(error)(f"{error} {task.name} is tracked: its first argument is the job's ID. {hint}") from None
