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
from django_jobkit.jobs import ids
from django_jobkit.kit import JobKit, jobkits
from django_jobkit.submission import take_handed_over

from . import checking, options, processwide
from .calls import MEMBER, TaskCall, command_of, is_tracked
from .compat import (
    BaseTaskBackend,
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
)
from .entries import Entry
from .markers import Key
from .results import call_in, missing_fields, result_of, result_of_new
from .stats import BackendStats

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
        self._checked: tuple[Any, Any] = (None, None)  # the task that was enqueued last, and the kit

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
        return self._enqueue(task, args, kwargs, behind=not self.settings.durable)

    def enqueue_recorded(
        self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[Any, Any]:
        """`enqueue`, for a caller who leads somebody to the job's page: it has a record then, also without DURABLE."""
        return self._enqueue(task, args, kwargs, behind=False)

    def _enqueue(
        self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, behind: bool
    ) -> TaskResult[Any, Any]:
        self._check(task)
        if is_tracked(task):
            return self._enqueue_job(task, args, kwargs)
        now = self.kit.recorder.now()
        job_id = ids.new(task.name, now=now)
        call = TaskCall.of(task, args, kwargs, token=job_id[-8:])  # which an ID that is new makes a new one, too
        service = processwide.service_of(self)
        durable = self.settings.durable
        entry = Entry(Key(job_id, call.token), call, now, service.run, command=task.name, durable=durable)
        result = result_of_new(job_id, now, call, task)
        service.accept(entry, result, behind=behind)
        return result

    def _enqueue_job(
        self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[Any, Any]:
        """Accept a call of a tracked task, under an ID that may have been used before: it is recorded first."""
        job_id, args = self._job_id_in(task, args), args[1:]
        saved = take_handed_over(job_id)
        call = None if saved is None else call_in(saved.status)
        if call is None:
            call = TaskCall.of(task, args, kwargs)
        now = self.kit.recorder.now() if saved is None else saved.status.queued_at
        service = processwide.service_of(self)
        durable, command = self.settings.durable, command_of(task)
        entry = Entry(Key(job_id, call.token), call, now, service.run, command=command, durable=durable)
        entry.saved = saved
        status = entry.queued(self.kit.status_class) if saved is None else saved.status
        result = result_of(job_id, status, call, task)
        service.accept(entry, result)
        return result

    def get_result(self, result_id: str) -> TaskResult[Any, Any]:
        """The result of this ID, whichever process has it.

        Raises TaskResultDoesNotExist if there is no such job, or its record doesn't say what task it is of;
        `StatusUnavailable` or `StatusCorrupt` where that can't be told; `NoSuchTask` if the task's code is gone.
        """
        try:
            job_id = ids.sanitize(result_id)
            status = processwide.unwritten(self.settings.kit, job_id) or self.kit.store.get(job_id)
        except (StatusNotFound, InvalidJobID) as error:
            raise TaskResultDoesNotExist(result_id) from error
        call = call_in(status)
        if call is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(job_id, status, call, call.task())

    async def aget_result(self, result_id: str) -> TaskResult[Any, Any]:
        """`get_result`, in a thread of its own."""
        return await sync_to_async(self.get_result, thread_sensitive=False)(result_id)

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """What is wrong with the backend's settings, each by the setting's name."""
        return list(checking.messages(self))

    # --- what `JobKit.submit` asks of a task's backend -----------------------------------------------------------

    def jobkit_members(self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is to stand in the record of this call. Raises what `enqueue` would have against the arguments."""
        self._check(task)
        if not is_tracked(task):
            raise TypeError(
                f"{task.module_path} is not tracked, so it can't take a job's ID: wrap its function with @tracked, or "
                f"call its own enqueue()."
            )
        return {MEMBER: TaskCall.of(task, args, kwargs).member()}

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

    def _check(self, task: Task[Any, Any]) -> None:
        """Raise for a task that can't be run, or found by other processes, or whose jobs the kit couldn't record."""
        kit = self.kit
        if self._checked[0] is task and self._checked[1] is kit:
            return
        self.validate_task(task)
        if missing := missing_fields(kit.status_class):
            raise ImproperlyConfigured(
                f"{kit.name_of('STATUS_CLASS')} is {kit.settings.status_class}, which has no {', '.join(missing)}: let "
                f"it inherit from django_jobkit.jobs.JobStatus."
            )
        try:
            found = import_string(task.module_path)
        except ImportError:
            found = None
        if not isinstance(found, Task):
            raise InvalidTask(
                f"{task.module_path} is not the name of the task, by which other processes find it: give the task the "
                f"name of its function."
            )
        self._checked = task, kit

    def _job_id_in(self, task: Task[Any, Any], args: Sequence[Any]) -> str:
        hint = _SUBMIT.format(kit=self.settings.kit, name=task.name)
        if not args or not isinstance(args[0], str):
            raise TypeError(f"{task.name} is tracked: its first argument is the job's ID. {hint}")
        try:
            return ids.sanitize(args[0])
        except InvalidJobID as error:
            raise type(error)(f"{error} {task.name} is tracked: its first argument is the job's ID. {hint}") from None
