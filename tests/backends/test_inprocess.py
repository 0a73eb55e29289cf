"""What one expects of a backend for Django's tasks, and of the jobs that it makes of them."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from django_jobkit.backends import InProcessBackend, queue_stats, stop_queues
from django_jobkit.backends.calls import NoSuchTask
from django_jobkit.backends.compat import (
    BaseTaskBackend,
    InvalidTask,
    InvalidTaskBackend,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from django_jobkit.engines import Engine, engine_of
from django_jobkit.exceptions import (
    ArgumentsRefused,
    JobCancelled,
    JobExists,
    MalformedJobID,
    QueueFull,
    QueueStopped,
    StatusCorrupt,
    StatusUnavailable,
    StorageUnavailable,
)
from django_jobkit.jobs import JobStatus, State, Status, ids, json_field
from django_jobkit.testing import assert_job
from django_jobkit.tracking import tracked
from tests.inprocess.helpers import eventually

from . import site_tasks
from .conftest import BACKEND, finished
from .site_tasks import (
    PATIENCE,
    add,
    add_slowly,
    enqueue_again,
    fail,
    fail_at_first,
    give,
    give_up,
    hold,
    leave,
    note,
    ran,
    released,
    started,
    summarize,
    summarize_slowly,
    tell_attempt,
    tell_attempt_slowly,
    until_told,
)

# --- a task's life ----------------------------------------------------------------------------------------------------


def test_a_task_is_run_and_its_result_is_found_by_its_id(backend):
    result = add.enqueue(1, b=2)
    assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, [1], {"b": 2})
    assert isinstance(result.enqueued_at, datetime)

    found = finished(backend, result.id)

    assert (found.id, found.status, found.return_value) == (result.id, TaskResultStatus.SUCCESSFUL, 3)
    assert (found.task, found.args, found.kwargs, found.backend) == (add, [1], {"b": 2}, "default")
    assert result.enqueued_at == found.enqueued_at <= found.started_at <= found.finished_at
    assert found.last_attempted_at == found.started_at
    assert (found.attempts, found.errors) == (1, [])
    assert add.get_result(result.id) == found
    result.refresh()
    assert result == found


def test_a_result_goes_through_its_states(backend):
    result = hold.enqueue("x")
    assert started.wait(PATIENCE)
    result.refresh()
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.RUNNING, False, 1)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    released.set()
    assert finished(backend, result.id).return_value == "x"


def test_one_job_has_one_record_and_its_id_is_the_results(backend, kit):
    job_id = kit.submit(summarize, "a.csv", depth=2)
    result = finished(backend, job_id)

    assert (result.id, result.args, result.kwargs) == (job_id, [job_id, "a.csv"], {"depth": 2})
    assert result.return_value == {"path": "a.csv", "depth": 2}
    assert [name for name in kit.files if name.endswith("status.json")] == [f"jobs/{job_id}/status.json"]
    assert_job(
        job_id, state=State.SUCCEEDED, title="Summary of a.csv", command="summarize", attempts=1, progress_total=2
    )
    assert ran == [(job_id, "a.csv", 2)]


def test_any_other_task_gets_an_id_that_the_history_sorts_by_and_a_record_of_its_own(backend, kit):
    result = add.enqueue(1)
    assert ids.created_at(result.id)
    assert result.id.startswith("add-")
    finished(backend, result.id)
    status = assert_job(result.id, state=State.SUCCEEDED, command="add", result=1, attempts=1)
    assert status.queued_at <= status.started_at <= status.finished_at


def test_a_tracked_task_may_be_enqueued_by_itself_under_an_id(backend, kit):
    result = summarize.enqueue("mine-1", "a.csv")
    assert result.id == "mine-1"
    assert finished(backend, "mine-1").return_value["path"] == "a.csv"
    assert assert_job("mine-1", state=State.SUCCEEDED).queued_at is not None


def test_an_id_whose_job_is_unfinished_is_refused_and_one_whose_job_has_ended_runs_again(backend, kit):
    first = until_told.enqueue("mine-1")
    assert started.wait(PATIENCE)
    with pytest.raises(JobExists):
        summarize.enqueue("mine-1", "b.csv")
    released.set()
    finished(backend, first.id)
    summarize.enqueue("mine-1", "b.csv")
    assert eventually(lambda: ("mine-1", "b.csv", 1) in ran)
    assert eventually(lambda: kit.store.get("mine-1").state == State.SUCCEEDED)


@pytest.mark.parametrize("args", [(), (7,), ("a.csv",)])
def test_a_tracked_task_without_a_jobs_id_is_refused_and_told_how_it_is_done(backend, kit, args):
    with pytest.raises((TypeError, MalformedJobID), match=r"Submit it with jobkits\['default'\].submit\(summarize, "):
        summarize.enqueue(*args)
    assert kit.files == {}


def test_a_task_that_is_not_tracked_is_not_submitted_as_one_that_is(backend, kit):
    with pytest.raises(TypeError, match="add is not tracked"):
        kit.submit(add, 1)
    assert kit.files == {}


@pytest.mark.parametrize("is_async", [False, True])
def test_async_tasks_run_as_others_do(backend, kit, is_async):
    if is_async:
        job_id = asyncio.run(add_slowly.aenqueue(1, 2)).id
        assert eventually(lambda: asyncio.run(add_slowly.aget_result(job_id)).is_finished)
    else:
        job_id = add_slowly.enqueue(1, 2).id
    assert finished(backend, job_id).return_value == 3
    tracked_id = kit.submit(summarize_slowly, "a.csv")
    assert finished(backend, tracked_id).return_value == "a.csv"
    assert_job(tracked_id, title="a.csv", command="summarize_slowly")


def test_a_task_may_be_submitted_and_looked_up_from_an_event_loop(backend):
    async def use():
        result = await add.aenqueue(1, 2)
        while not result.is_finished:
            await asyncio.sleep(0)
            await result.arefresh()
        return result.return_value

    assert async_to_sync(use)() == 3


def test_a_task_that_takes_its_context_sees_its_own_result(backend):
    result = tell_attempt.enqueue("hello")
    assert finished(backend, result.id).return_value == ["hello", 1, result.id, "RUNNING", 1]
    assert finished(backend, tell_attempt_slowly.enqueue().id).return_value == 1


# --- failures ---------------------------------------------------------------------------------------------------------


def test_an_error_is_found_with_the_result(backend, kit):
    result = finished(backend, fail.enqueue("line 37").id)
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert "ValueError: line 37" in error.traceback
    assert "site_tasks.py" in error.traceback
    assert "django_jobkit/backends" not in error.traceback
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value
    assert_job(result.id, state=State.FAILED)


def test_what_would_end_a_process_ends_the_task_only(backend):
    result = finished(backend, leave.enqueue().id)
    assert result.errors[0].exception_class is SystemExit
    assert finished(backend, add.enqueue(1).id).return_value == 1


def test_a_permanent_error_counts_as_failed_although_it_is_not_raised_for_the_engine(backend, kit):
    result = finished(backend, kit.submit(give_up))
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class_path == "django_jobkit.exceptions.PermanentJobError"


def test_arguments_that_the_function_does_not_take_fail_the_job_and_do_not_lose_it(backend, kit):
    job_id = kit.submit(summarize, wrong=1)
    assert "wrong" in finished(backend, job_id).errors[0].traceback


@pytest.mark.parametrize("name", ["set", "object", "nan", "surrogate"])
def test_a_result_that_is_no_json_fails_the_task_as_in_other_backends(backend, name):
    result = finished(backend, give.enqueue(name).id)
    assert result.errors[0].exception_class_path == "django_jobkit.exceptions.ResultRefused"
    assert "give returned a" in result.errors[0].traceback


def test_a_result_too_long_for_a_record_fails_the_task(backend):
    (error,) = finished(backend, give.enqueue("long").id).errors
    assert "70,002 bytes of JSON, more than the 64,000 that a record may hold" in error.traceback


@pytest.mark.parametrize(("name", "expected"), [("tuple", [1, 2]), ("bytes", "abc"), ("keys", {"1": "a"})])
def test_a_result_comes_back_as_json_has_it(backend, name, expected):
    assert finished(backend, give.enqueue(name).id).return_value == expected


def test_a_tracked_tasks_error_is_logged_once_with_its_traceback(backend, caplog):
    job_id = fail.enqueue("line 37").id
    finished(backend, job_id)
    stop_queues(PATIENCE)
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [job_id in record.getMessage() for record in errors] == [True]
    assert errors[0].exc_info[1].args == ("line 37",)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ([{1, 2}], {}, "Argument 1 of note, a set, can't be kept as JSON"),
        ([0, object()], {}, "Argument 2 of note, a object, "),
        ([], {"value": datetime(2026, 1, 1)}, "Argument value of note, a datetime, "),  # noqa: DTZ001
        ([float("nan")], {}, "Argument 1 of note, a float, "),
        ([{1: "a"}], {}, "names are text, not int"),
        (["\ud800"], {}, "surrogates not allowed"),
        (["x" * 64_001], {}, "The arguments of note have 64,0.. bytes of JSON, more than 64,000"),
    ],
)
def test_arguments_that_cannot_be_kept_are_refused_with_the_reason_and_leave_nothing(
    backend, kit, args, kwargs, message
):
    with pytest.raises(ArgumentsRefused, match=message):
        note.enqueue(*args, **kwargs)
    assert kit.files == {}


def test_submit_refuses_such_arguments_before_it_records_anything(backend, kit):
    with pytest.raises(TypeError, match="Argument 1 of summarize, a PosixPath,"):
        kit.submit(summarize, __import__("pathlib").Path("a.csv"))
    assert kit.files == {}


def test_a_task_gets_its_arguments_as_json_has_them_whichever_process_runs_it(backend):
    value = [1, {"a": (2, 3)}]
    finished(backend, note.enqueue(value).id)
    value[0] = "changed by the caller"
    assert ran == [[1, {"a": [2, 3]}]]


def test_a_full_queue_refuses_at_once_and_leaves_nothing(tasks, kit):
    backend = tasks(WORKERS=1, BUFFER=1)
    held = [hold.enqueue().id]
    assert started.wait(PATIENCE)
    held.append(hold.enqueue().id)
    files = set(kit.files)
    with pytest.raises(QueueFull, match="1 jobs are waiting in the backend 'default'"):
        add.enqueue(1)
    assert set(kit.files) == files
    assert backend.stats().refused == 1
    released.set()
    for job_id in held:
        finished(backend, job_id)
    assert finished(backend, add.enqueue(1).id).return_value == 1


def test_a_job_that_was_submitted_to_a_full_queue_is_failed_with_the_reason(tasks, kit):
    tasks(WORKERS=1, BUFFER=0)
    hold.enqueue()
    assert started.wait(PATIENCE)
    with pytest.raises(QueueFull):
        kit.enqueue(summarize, ["a.csv"], job_id="mine-1")
    status = assert_job("mine-1", state=State.FAILED)
    assert status.error.startswith("It could not be queued. QueueFull: ")
    assert [name for name in kit.files if "mine-1" in name] == ["jobs/mine-1/status.json"]
    assert task_backends["default"].get_result("mine-1").errors


def test_a_queue_that_stops_refuses_and_leaves_nothing(backend, kit):
    finished(backend, add.enqueue(1).id)
    stop_queues(PATIENCE)
    files = set(kit.files)
    with pytest.raises(QueueStopped, match="The queue of the backend 'default' is stopping"):
        add.enqueue(2)
    assert set(kit.files) == files


def test_a_call_whose_record_cannot_be_written_is_refused_and_not_run(backend, kit):
    kit.storage.fail("write", times=None)
    with pytest.raises(StatusUnavailable):
        note.enqueue("lost")
    kit.storage.mend()
    finished(backend, note.enqueue("kept").id)
    assert ran == ["kept"]
    assert [row.status.state for row in kit.history.latest(5)] == [State.SUCCEEDED]


def test_a_call_whose_marker_cannot_be_written_is_refused_and_recorded_as_that(backend, kit):
    kit.storage.fail("write", where="*/task.json")
    with pytest.raises(StorageUnavailable):
        note.enqueue("lost")
    kit.storage.mend()
    finished(backend, note.enqueue("kept").id)
    assert ran == ["kept"]
    assert sorted(row.status.state for row in kit.history.latest(5)) == [State.FAILED, State.SUCCEEDED]


def test_a_call_that_was_refused_in_the_end_is_dropped_by_the_worker_that_has_it_already(backend, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.service.record_failed", lambda *args: None)
    kit.storage.fail("write", where="*/task.json")
    with pytest.raises(StorageUnavailable):
        note.enqueue("refused")
    finished(backend, note.enqueue("kept").id)
    stop_queues(PATIENCE)
    assert ran == ["kept"]


def test_a_worker_that_has_a_call_in_hand_waits_until_it_is_accepted(backend, kit):
    begun = []

    def listen(task_result, **kwargs):
        assert eventually(lambda: backend.stats().running == 1)
        begun.extend(ran)

    task_enqueued.connect(listen)
    try:
        job_id = note.enqueue("x").id
    finally:
        task_enqueued.disconnect(listen)
    finished(backend, job_id)
    assert begun == []
    assert ran == ["x"]


# --- order and time ---------------------------------------------------------------------------------------------------


def test_calls_run_by_priority_and_within_one_first_come_first_served(quick):
    hold.enqueue("first")
    assert started.wait(PATIENCE)
    results = [
        note.using(priority=priority).enqueue(name)
        for name, priority in [("a", 0), ("b", 5), ("c", -5), ("d", 5), ("e", 0), ("f", 100), ("g", -100)]
    ]
    released.set()
    for result in results:
        finished(quick, result.id)
    assert ran == ["first", "f", "b", "d", "a", "e", "c", "g"]
    assert quick.get_result(results[1].id).task.priority == 5


def test_a_call_waits_for_its_time(quick, kit):
    before = kit.recorder.now()
    run_after = before + timedelta(seconds=0.2)
    result = note.using(run_after=run_after).enqueue("later")
    assert result.task.run_after == run_after
    assert quick.stats().delayed == 1
    found = finished(quick, result.id)
    assert found.started_at >= run_after
    assert found.task.run_after == run_after
    assert finished(quick, note.using(run_after=before).enqueue("past").id).is_finished


def test_calls_that_wait_for_their_time_take_places(tasks):
    backend = tasks(BUFFER=1, DURABLE=False)
    far = datetime.now().astimezone() + timedelta(days=1)
    note.using(run_after=far).enqueue(1)
    with pytest.raises(QueueFull):
        note.using(run_after=far).enqueue(2)
    assert finished(backend, note.enqueue("now").id).is_finished


def test_queue_names_are_those_of_the_settings(settings, kit):
    settings.TASKS = {"default": {"BACKEND": "django_jobkit.backends.InProcessBackend", "QUEUES": ["default", "slow"]}}
    result = note.using(queue_name="slow").enqueue(1)
    assert finished(task_backends["default"], result.id).task.queue_name == "slow"
    with pytest.raises(InvalidTask, match="'quick' is not valid"):
        note.using(queue_name="quick")


# --- signals ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def heard():
    """What was sent, in order: the signal, the result's state then, and the sender."""
    found = []

    def listen(name):
        def receiver(sender, task_result, **kwargs):
            found.append((name, str(task_result.status), sender, len(task_result.errors), task_result.worker_ids))

        return receiver

    named = [("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished)]
    receivers = [(signal, listen(name)) for name, signal in named]
    for signal, receiver in receivers:
        signal.connect(receiver)
    yield found
    for signal, receiver in receivers:
        signal.disconnect(receiver)


def test_those_who_listen_hear_of_each_step_in_order(backend, kit, heard):
    for submit in (lambda: add.enqueue(1).id, lambda: kit.submit(summarize, "a.csv")):
        finished(backend, job_id := submit())
        assert eventually(lambda: len(heard) == 3)
        workers = backend.get_result(job_id).worker_ids
        assert heard == [
            ("enqueued", "READY", InProcessBackend, 0, []),
            ("started", "RUNNING", InProcessBackend, 0, workers),
            ("finished", "SUCCESSFUL", InProcessBackend, 0, workers),
        ]
        heard.clear()


def test_they_hear_of_a_failure_too(backend, kit, heard):
    for submit in (lambda: fail.enqueue("no").id, lambda: kit.submit(give_up)):
        finished(backend, submit())
        assert eventually(lambda: len(heard) == 3)
        assert heard[2][:4] == ("finished", "FAILED", InProcessBackend, 1)
        heard.clear()


def test_a_listener_that_fails_stops_nothing(backend, caplog):
    def broken(**kwargs):
        raise ZeroDivisionError

    for signal in (task_enqueued, task_started, task_finished):
        signal.connect(broken)
    try:
        assert finished(backend, add.enqueue(1).id).return_value == 1
    finally:
        for signal in (task_enqueued, task_started, task_finished):
            signal.disconnect(broken)


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result_id", ["add-20260831-102030-0123456789ab", "..", "", "a b", "x" * 200])
def test_a_result_that_is_not_there_is_said_not_to_exist(backend, result_id):
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(result_id)
    with pytest.raises(TaskResultDoesNotExist):
        asyncio.run(backend.aget_result(result_id))


def test_a_job_that_is_no_call_of_a_task_has_no_result(backend, kit):
    kit.store.save("a", JobStatus(state=State.SUCCEEDED))
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result("a")


@pytest.mark.parametrize(
    "member", [None, 7, "x", [], {}, {"path": 7, "token": "a"}, {"path": "a", "token": "b", "args": 1}]
)
def test_a_record_that_says_nonsense_of_its_task_has_no_result(backend, kit, member):
    status = JobStatus(state=State.SUCCEEDED)
    status.extra["django_task"] = member
    kit.store.save("a", status)
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result("a")


def test_a_result_that_cannot_be_read_is_never_said_not_to_exist(backend, kit):
    job_id = add.enqueue(1).id
    finished(backend, job_id)
    kit.storage.fail("read")
    with pytest.raises(StatusUnavailable):
        backend.get_result(job_id)
    kit.storage.write(f"jobs/{job_id}/status.json", b"{ broken")
    with pytest.raises(StatusCorrupt):
        backend.get_result(job_id)


def test_a_result_of_another_task_is_a_mismatch(backend):
    job_id = add.enqueue(1).id
    with pytest.raises(TaskResultMismatch):
        fail.get_result(job_id)


@pytest.mark.parametrize(
    "path", ["tests.backends.site_tasks.gone", "tests.backends.gone.add", "os.system", "tests.backends.site_tasks.ran"]
)
def test_a_record_can_name_no_function_but_a_task(backend, kit, path):
    status = JobStatus(state=State.SUCCEEDED)
    status.extra["django_task"] = {"path": path, "token": "0"}
    kit.store.save("a", status)
    with pytest.raises(NoSuchTask, match="no task"):
        backend.get_result("a")


# --- what a job sees --------------------------------------------------------------------------------------------------


def test_a_job_sees_that_its_queue_stops_and_without_markers_it_has_failed_then(quick, kit):
    job_id = kit.submit(until_told)
    assert started.wait(PATIENCE)
    stop_queues(0, grace=PATIENCE)
    status = assert_job(job_id, state=State.FAILED)
    assert status.error.startswith(JobCancelled.__name__)


def test_without_markers_jobs_that_were_not_begun_have_failed_when_the_queue_stops(quick, kit):
    kit.submit(until_told)
    assert started.wait(PATIENCE)
    waiting = [kit.submit(summarize, "a.csv"), note.enqueue("b").id]
    stop_queues(0, grace=PATIENCE)
    for job_id in waiting:
        assert_job(
            job_id,
            state=State.FAILED,
            error="The process that had accepted it stopped before it was begun. Submit it again.",
        )
    assert ran == []


def test_a_job_is_not_run_by_this_queue_once_it_has_ended_elsewhere_or_was_deleted(quick, kit):
    hold.enqueue("first")
    assert started.wait(PATIENCE)
    ended, deleted, kept = (kit.submit(summarize, name) for name in ("ended", "deleted", "kept"))
    kit.recorder.record(ended, JobStatus(state=State.FAILED))
    kit.history.delete(deleted)
    released.set()
    finished(quick, kept)
    assert ran == ["first", (kept, "kept", 1)]
    assert_job(ended, state=State.FAILED)
    assert deleted not in kit.history.ids()


def test_a_job_that_was_replaced_runs_once_with_its_new_arguments(quick, kit):
    hold.enqueue("first")
    assert started.wait(PATIENCE)
    kit.enqueue(summarize, ["old"], job_id="a")
    kit.enqueue(summarize, ["new"], job_id="a", replace=True)
    released.set()
    finished(quick, "a")
    stop_queues(PATIENCE)
    assert ran == ["first", ("a", "new", 1)]


def test_a_storage_that_fails_for_a_while_delays_a_job_and_does_not_lose_it(quick, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    hold.enqueue("first")
    assert started.wait(PATIENCE)
    job_id = kit.submit(summarize, "a.csv")
    kit.storage.fail("read", times=3, where=f"*/{job_id}/*")
    released.set()
    assert eventually(lambda: (job_id, "a.csv", 1) in ran)


def test_the_requests_of_a_whole_tracked_job_are_at_most_five(quick, kit):
    kit.storage.calls.clear()
    kit.submit(summarize, "a.csv")
    stop_queues(PATIENCE)
    assert kit.storage.calls == {"write": 3}


def test_with_markers_they_are_one_write_and_one_delete_more(backend, kit):
    finished(backend, add.enqueue(1).id)  # looks for markers, as the first use does
    assert eventually(lambda: kit.storage.calls["list_dirs"] == 1 and kit.storage.calls["delete"] == 1)
    kit.storage.calls.clear()
    kit.submit(summarize, "a.csv")
    stop_queues(PATIENCE)
    assert kit.storage.calls == {"write": 4, "delete": 1}


def test_connections_are_given_back_after_each_job(quick, monkeypatch):
    closed = []
    monkeypatch.setattr("django.db.connections.close_all", lambda: closed.append(len(ran)))
    finished(quick, note.enqueue("a").id)
    stop_queues(PATIENCE)
    assert 1 in closed


def test_a_job_that_takes_its_function_away_from_the_tracker_has_failed(backend, kit, monkeypatch):
    """As a decorator between the task and @tracked would that doesn't call what it wraps."""
    skipped = type("Skipped", (), {})()
    monkeypatch.setattr(site_tasks, "ran", skipped)
    function = summarize.func

    def skip(job_id, *args, **kwargs):
        return None

    vars(skip).update(vars(function))
    skip.__module__, skip.__qualname__ = function.__module__, function.__qualname__
    object.__setattr__(summarize, "func", skip)
    try:
        job_id = kit.submit(summarize, "a.csv")
        assert eventually(lambda: kit.store.get(job_id).state == State.FAILED)
    finally:
        object.__setattr__(summarize, "func", function)
    assert "returned without calling the function that @tracked wraps" in kit.store.get(job_id).error


# --- settings ---------------------------------------------------------------------------------------------------------


def test_a_backend_is_what_the_tasks_framework_wants_it_to_be(backend):
    assert isinstance(backend, BaseTaskBackend)
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority
    assert backend.check() == []


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"WORKER": 2}, "TASKS['default']['OPTIONS']['WORKER'] is no option of this backend.", "Did you mean WORKERS?"),
        ({"xyzzy": 2}, "TASKS['default']['OPTIONS']['xyzzy'] is no option", "The options are BUFFER, DURABLE,"),
        ({"WORKERS": 0}, "['WORKERS'] is 0.", "Set a whole number of 1 or more."),
        ({"BUFFER": -1}, "['BUFFER'] is -1.", "Set a whole number of 0 or more."),
        ({"BUFFER": True}, "['BUFFER'] is True.", "Set a whole number"),
        ({"LEASE": 0}, "['LEASE'] is 0.", "Set a number of seconds above 0 or None."),
        ({"STOP_TIMEOUT": None}, "['STOP_TIMEOUT'] is None.", "Set a number of seconds above 0."),
        ({"DURABLE": 1}, "['DURABLE'] is 1.", "Set True or False."),
        ({"KIT": ""}, "['KIT'] is ''.", "Set an alias of JOBKIT."),
        ({"KIT": "comics"}, "['KIT'] is 'comics', which is no alias in JOBKIT.", "Add it to JOBKIT, or choose from"),
    ],
)
def test_a_wrong_option_is_found_by_the_check_by_its_name(tasks, options, message, hint):
    (found,) = tasks(**options).check()
    assert message in found.msg
    assert found.hint.startswith(hint)
    assert (found.level, found.id) == (checks.ERROR, "jobkit.E010")


def test_a_wrong_option_makes_the_backend_refuse_everything(tasks):
    tasks(WORKERS="many")
    with pytest.raises(InvalidTaskBackend, match=r"\['WORKERS'\] is 'many'"):
        add.enqueue(1)


@dataclass(kw_only=True)
class PlainStatus(Status):
    pages: int = json_field(0)


@pytest.mark.jobkit(STATUS_CLASS="tests.backends.test_inprocess.PlainStatus")
def test_a_status_class_that_cannot_hold_a_lease_is_refused_by_check_and_by_enqueue(backend, kit):
    (found,) = backend.check()
    assert found.id == "jobkit.E011"
    assert "has no lease_id, lease_expires_at, started_at, finished_at, result" in found.msg
    with pytest.raises(ImproperlyConfigured, match="let it inherit from"):
        add.enqueue(1)
    with pytest.raises(ImproperlyConfigured, match="has no lease_id"):
        kit.submit(summarize, "a.csv")
    assert kit.files == {}


def test_a_storage_that_cannot_write_on_a_condition_is_warned_of_where_the_backend_is_durable(tasks, kit, monkeypatch):
    backend = tasks()
    monkeypatch.setattr(type(kit.storage), "atomic_swap", False, raising=False)
    (found,) = backend.check()
    assert (found.level, found.id) == (checks.WARNING, "jobkit.W010")
    assert tasks(DURABLE=False).check() == []


def test_a_task_that_is_tracked_in_another_kit_is_refused_when_it_is_declared(backend):
    @tracked(kit="comics")
    def draw(job):
        pass

    draw.__qualname__ = "draw"
    with pytest.raises(InvalidTask, match="is tracked in the kit 'comics', and the backend 'default' records in"):
        backend.task_class(func=draw)


def test_a_task_that_other_processes_would_not_find_by_its_name_is_refused(backend, kit):
    with pytest.raises(InvalidTask, match=r"tests\.backends\.site_tasks\.undecorated is not the name of the task"):
        site_tasks.nameless.enqueue()
    assert kit.files == {}


# --- counts -----------------------------------------------------------------------------------------------------------


def test_the_counts_say_what_this_process_has_done(tasks, kit):
    backend = tasks(WORKERS=2, BUFFER=3)
    assert queue_stats() == []
    assert (backend.stats().state, backend.stats().capacity, backend.stats().workers) == ("new", 3, 2)
    finished(backend, add.enqueue(1).id)
    finished(backend, fail.enqueue("no").id)
    assert eventually(lambda: backend.stats().running == 0)
    hold.enqueue()
    hold.enqueue()
    assert eventually(lambda: backend.stats().running == 2)
    note.enqueue(1)
    stats = backend.stats()
    assert (stats.done, stats.failed, stats.running, stats.depth, stats.refused) == (1, 1, 2, 1, 0)
    assert stats.oldest_wait > 0
    assert queue_stats()[0].backend == "default"
    released.set()
    stop_queues(PATIENCE)
    assert backend.stats().state == "stopped"
    assert backend.stats().done == 4


# --- what goes wrong in between ---------------------------------------------------------------------------------------


def test_a_job_does_not_take_a_call_of_its_own_for_the_one_that_was_submitted(quick, kit):
    job_id = kit.submit(enqueue_again)
    finished(quick, job_id)
    assert ran == [f"Job {job_id} is running. Submit under another ID, or pass replace=True to submit it anew."]


@pytest.mark.parametrize("submit", ["kit", "task"])
def test_who_listens_may_enqueue_a_failed_job_again(quick, kit, submit):
    again = []

    def listen(task_result, **kwargs):
        if task_result.status == TaskResultStatus.FAILED:
            again.append(task_result.task.enqueue(*task_result.args))

    task_finished.connect(listen)
    try:
        job_id = kit.submit(fail_at_first) if submit == "kit" else fail_at_first.enqueue("a").id
        assert eventually(lambda: again)
        finished(quick, job_id)
    finally:
        task_finished.disconnect(listen)
    assert ran == [1, 2]
    assert_job(job_id, state=State.SUCCEEDED, attempts=2)


@pytest.mark.parametrize("signal", [task_started, task_finished], ids=["started", "finished"])
def test_who_listens_and_would_end_the_process_ends_nothing(backend, kit, signal, caplog):
    def listen(**kwargs):
        raise asyncio.CancelledError

    signal.connect(listen)
    try:
        job_id = note.enqueue("a").id
        finished(backend, job_id)
    finally:
        signal.disconnect(listen)
    stop_queues(PATIENCE)
    assert ran == ["a"]
    assert_job(job_id, state=State.SUCCEEDED)
    assert list(kit.storage.list_dirs("jobs.queue")) == []
    assert f"job {job_id}: somebody who listens to Django's tasks failed" in caplog.text


def test_an_engine_that_fails_when_the_start_is_recorded_leaves_no_lease_that_is_renewed_for_ever(kit):
    class Failing(Engine):
        lease = 60.0

        def started(self, status):
            raise asyncio.CancelledError

    with engine_of("a", Failing()), pytest.raises(asyncio.CancelledError):
        summarize.func("a", "a.csv")
    status = assert_job("a", state=State.FAILED)
    assert (status.lease_id, status.lease_expires_at) == ("", None)
    assert not [thread for thread in threading.enumerate() if thread.name == "jobkit-run-a"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_call_that_could_not_be_recorded_keeps_no_place(tasks, kit, durable):
    backend = tasks(DURABLE=durable, WORKERS=1, BUFFER=1)
    kit.submit(until_told)
    assert started.wait(PATIENCE)
    later = summarize.using(run_after=kit.recorder.now() + timedelta(days=1))
    kit.storage.fail("write", times=3, where="*/[abc]/*")
    for task, job_id in ((summarize, "a"), (later, "b"), (summarize, "c")):
        with pytest.raises(StatusUnavailable):
            task.enqueue(job_id, "a.csv")
        assert backend.stats().depth == 0
    summarize.enqueue("d", "d.csv")
    released.set()
    finished(backend, "d")


def test_a_call_that_is_still_being_recorded_when_the_queue_stops_is_refused(quick, kit, monkeypatch):
    """It would be accepted by a queue that runs nothing any more."""
    monkeypatch.setattr("django_jobkit.backends.service._SETTLING", 0.01)
    kit.submit(until_told)
    assert started.wait(PATIENCE)
    writing, stopped = threading.Event(), threading.Event()
    outcome = []

    def hold_up():
        writing.set()
        assert stopped.wait(PATIENCE)

    def enqueue():
        try:
            outcome.append(summarize.enqueue("a", "a.csv"))
        except QueueStopped as error:
            outcome.append(error)

    kit.storage.meanwhile(hold_up, "write", where="*/a/*")
    client = threading.Thread(target=enqueue)
    client.start()
    assert writing.wait(PATIENCE)
    stop_queues(0, grace=PATIENCE)
    stopped.set()
    client.join()
    assert isinstance(outcome[0], QueueStopped)
    assert_job("a", state=State.FAILED)


def test_a_job_that_cannot_be_begun_while_the_queue_drains_has_failed(quick, kit):
    kit.submit(until_told)
    assert started.wait(PATIENCE)
    job_id = kit.submit(summarize, "a.csv")
    kit.storage.fail("write", where=f"*/{job_id}/*")
    released.set()
    stop_queues(PATIENCE)
    status = assert_job(job_id, state=State.FAILED)
    assert status.error.startswith("The process that had accepted it stopped before it was begun.")


def test_all_queues_refuse_before_the_first_of_them_is_drained(settings, kit):
    options = {"DURABLE": False, "WORKERS": 1}
    settings.TASKS = {alias: {"BACKEND": BACKEND, "OPTIONS": options} for alias in ("default", "other")}
    other = note.using(backend="other")
    finished(task_backends["other"], other.enqueue("before").id)
    kit.submit(until_told)
    assert started.wait(PATIENCE)
    waiting = kit.submit(summarize, "a.csv")
    refused = []

    def try_the_other():
        with pytest.raises(QueueStopped):
            other.enqueue("meanwhile")
        refused.append(True)

    kit.storage.meanwhile(try_the_other, "write", where=f"*/{waiting}/*")
    stop_queues(0, grace=PATIENCE)
    assert refused == [True]
