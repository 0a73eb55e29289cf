"""Without markers, a call that anybody may enqueue is accepted in memory, and recorded shortly after."""

from __future__ import annotations

import logging
import threading

import pytest

from django_jobkit.backends import processwide, retry, stop_queues
from django_jobkit.backends.compat import TaskResultDoesNotExist, TaskResultStatus, task_backends, task_enqueued
from django_jobkit.exceptions import QueueFull, StatusNotFound, StatusUnavailable, StorageUnavailable
from django_jobkit.jobs import JobStatus, State
from django_jobkit.testing import assert_job
from tests.inprocess.helpers import eventually

from . import site_tasks
from .conftest import BACKEND, finished
from .site_tasks import PATIENCE, add, hold, note, ran, released, started, summarize, until_told

A_LONG_WHILE = 3600.0


@pytest.fixture
def unhurried(quick, monkeypatch):
    """One worker, and nothing is recorded but by it."""
    monkeypatch.setattr("django_jobkit.backends.write_behind._HEAD_START", A_LONG_WHILE)
    return quick


@pytest.fixture
def prompt(quick, monkeypatch):
    """One worker, and what it doesn't begin is recorded at once."""
    monkeypatch.setattr("django_jobkit.backends.write_behind._HEAD_START", 0.0)
    monkeypatch.setattr("django_jobkit.backends.write_behind._PAUSE", 0.01)
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    return quick


def keep_busy():
    """Give the one worker something to do until `released`."""
    result = hold.enqueue("first")
    assert started.wait(PATIENCE)
    return result


def record_of(kit, job_id):
    try:
        return kit.store.get(job_id)
    except StatusNotFound:
        return None


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_call_that_a_worker_begins_at_once_takes_two_writes_and_no_read(unhurried, kit):
    kit.storage.calls.clear()
    job_id = note.enqueue("a").id
    stop_queues(PATIENCE)
    assert kit.storage.calls == {"write": 2}
    status = assert_job(job_id, state=State.SUCCEEDED, command="note", attempts=1)
    assert status.queued_at <= status.started_at <= status.finished_at


def test_a_call_that_waits_is_recorded_as_queued_and_takes_one_write_more(prompt, kit):
    keep_busy()
    kit.storage.calls.clear()
    job_id = add.enqueue(1, b=2).id
    assert eventually(lambda: record_of(kit, job_id))
    assert_job(job_id, state=State.QUEUED, command="add", attempts=0)
    assert kit.store.get(job_id).extra["django_task"]["kwargs"] == {"b": 2}
    kit.storage.calls.clear()
    released.set()
    finished(prompt, job_id)
    assert kit.storage.calls["write"] == 3  # with the end of the first
    assert_job(job_id, state=State.SUCCEEDED, result=3)


def test_nothing_is_written_before_the_caller_has_its_result(unhurried, kit):
    keep_busy()
    kit.storage.calls.clear()
    note.enqueue("a")
    assert kit.storage.calls == {}


def test_a_job_that_is_submitted_by_the_kit_is_recorded_first_all_the_same(unhurried, kit):
    keep_busy()
    assert_job(kit.submit(summarize, "a.csv"), state=State.QUEUED)
    summarize.enqueue("b", "b.csv")
    assert_job("b", state=State.QUEUED)


def test_the_history_lists_a_new_job_although_its_list_is_cached(prompt, kit):
    assert kit.history.ids() == []
    keep_busy()
    job_id = note.enqueue("a").id
    assert eventually(lambda: job_id in kit.history.ids())


def test_workers_and_the_writer_never_get_in_each_others_way(tasks, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.write_behind._HEAD_START", 0.0)
    tasks(DURABLE=False, WORKERS=4, BUFFER=500)
    job_ids = [note.enqueue(number).id for number in range(300)]
    stop_queues(PATIENCE)
    assert sorted(ran) == list(range(300))
    assert {(kit.store.get(job_id).state, kit.store.get(job_id).attempts) for job_id in job_ids} == {("succeeded", 1)}


def test_while_a_worker_writes_a_first_record_nobody_else_does(unhurried, kit, monkeypatch):
    """Storages that can't write on a condition would let ``queued`` come after ``running``."""
    behind = processwide.service_of(unhurried).behind
    entries, locked = [], []
    add_ = behind.add
    monkeypatch.setattr(behind, "add", lambda entry: (entries.append(entry), add_(entry)))
    kit.storage.meanwhile(lambda: locked.append(entries[0].recording.locked()), "write", times=None)
    finished(unhurried, note.enqueue("a").id)
    assert locked == [True, False]


# --- what is known ----------------------------------------------------------------------------------------------------


def test_this_process_knows_a_job_that_has_no_record_yet(unhurried, kit):
    keep_busy()
    result = add.enqueue(1, b=2)
    assert record_of(kit, result.id) is None
    found = unhurried.get_result(result.id)
    assert (found.id, found.status, found.args, found.kwargs) == (result.id, TaskResultStatus.READY, [1], {"b": 2})
    assert found.enqueued_at == result.enqueued_at
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_a_result_is_found_by_a_path_and_by_another_backend_of_the_kit(settings, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.write_behind._HEAD_START", A_LONG_WHILE)
    options = {"DURABLE": False, "WORKERS": 1}
    settings.TASKS = {alias: {"BACKEND": BACKEND, "OPTIONS": options} for alias in ("default", "other")}
    keep_busy()
    job_id = note.enqueue("a").id
    assert task_backends["default"].get_result(f"jobs/{job_id}").id == job_id
    assert task_backends["other"].get_result(job_id).id == job_id
    released.set()


def test_a_caller_who_leads_somebody_to_the_page_can_have_it_recorded_first(unhurried, kit):
    keep_busy()
    assert_job(unhurried.enqueue_recorded(note, ["a"], {}).id, state=State.QUEUED)
    failed = note.enqueue("a").id
    assert_job(retry(failed, unwritten(unhurried, failed), None), state=State.QUEUED)


def unwritten(backend, job_id):
    return processwide.service_of(backend).behind.find(job_id)


def test_a_job_is_known_without_a_gap_from_its_acceptance_to_its_end(tasks, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.write_behind._HEAD_START", 0.0)
    backend = tasks(DURABLE=False, WORKERS=2)
    for number in range(50):
        finished(backend, note.enqueue(number).id)  # asks over and over, and raises where there is nothing


def test_a_call_that_is_refused_is_known_nowhere(tasks, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.write_behind._HEAD_START", A_LONG_WHILE)
    backend = tasks(DURABLE=False, WORKERS=1, BUFFER=0)
    keep_busy()
    made = []
    monkeypatch.setattr(
        "django_jobkit.backends.inprocess.ids.new", lambda *args, **kwargs: made.append("job-refused1") or made[0]
    )
    with pytest.raises(QueueFull):
        note.enqueue("a")
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(made[0])


def test_a_call_whose_acceptance_is_interrupted_is_known_nowhere_and_not_run(unhurried):
    def interrupt(**kwargs):
        raise KeyboardInterrupt

    keep_busy()
    task_enqueued.connect(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            note.enqueue("a")
    finally:
        task_enqueued.disconnect(interrupt)
    released.set()
    stop_queues(PATIENCE)
    assert ran == ["first"]
    assert len(processwide.service_of(unhurried).behind) == 0


def test_what_has_a_record_is_not_remembered(unhurried, kit):
    finished(unhurried, note.enqueue("a").id)
    stop_queues(PATIENCE)
    assert len(processwide.service_of(unhurried).behind) == 0


# --- when the storage fails -------------------------------------------------------------------------------------------


def test_what_was_accepted_is_neither_lost_nor_run_without_a_record_while_the_storage_fails(prompt, kit, caplog):
    keep_busy()
    kit.storage.fail("write", times=None, where="*/note-*")
    job_id = note.enqueue("kept").id
    assert eventually(lambda: f"job {job_id} was accepted, and can't be recorded yet" in caplog.text)
    released.set()
    assert eventually(lambda: f"job {job_id} can't be begun yet" in caplog.text)
    assert prompt.get_result(job_id).status == TaskResultStatus.READY
    assert "kept" not in ran

    kit.storage.mend()

    finished(prompt, job_id)
    assert ran.count("kept") == 1
    assert_job(job_id, state=State.SUCCEEDED, attempts=1)


def test_a_call_whose_beginning_cannot_be_recorded_is_begun_again(unhurried, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    kit.storage.fail("write", times=3)
    job_id = note.enqueue("a").id
    finished(unhurried, job_id)
    assert ran == ["a"]
    assert_job(job_id, state=State.SUCCEEDED, attempts=1)


def test_a_job_whose_file_cannot_be_written_keeps_no_others_waiting(prompt, kit):
    keep_busy()
    kit.storage.fail("write", times=None, where="*/add-*")
    add.enqueue(1)
    job_id = note.enqueue("a").id
    assert eventually(lambda: record_of(kit, job_id))


def test_a_job_that_began_though_the_storage_said_no_is_left_alone_until_its_lease_ends(unhurried, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)

    def time_out():
        raise StorageUnavailable("timed out")

    kit.storage.meanwhile(time_out, "write", where="*/note-*")
    job_id = note.enqueue("a").id
    assert eventually(lambda: unhurried.stats().recovering == 1 and not processwide.service_of(unhurried).behind)
    assert unhurried.get_result(job_id).status == TaskResultStatus.RUNNING
    assert ran == []


def test_while_the_storage_fails_callers_get_to_know_and_nothing_more_is_promised(prompt, kit):
    keep_busy()
    kit.storage.fail("write", times=None, where="*/note-*")
    note.enqueue("accepted")
    assert eventually(lambda: processwide.service_of(prompt).behind.failing)
    with pytest.raises(StatusUnavailable):
        note.enqueue("refused")

    kit.storage.mend()
    assert eventually(lambda: not processwide.service_of(prompt).behind.failing)
    kit.storage.calls.clear()
    released.set()
    finished(prompt, note.enqueue("later").id)
    assert "refused" not in ran
    assert {"accepted", "later"} <= set(ran)


def test_a_record_that_stands_there_already_is_left_and_its_job_not_run(unhurried, kit):
    keep_busy()
    job_id = note.enqueue("mine").id
    kit.store.save(job_id, JobStatus(state=State.FAILED, error="somebody else's"))
    released.set()
    stop_queues(PATIENCE)
    assert ran == ["first"]
    assert_job(job_id, state=State.FAILED, error="somebody else's", attempts=0)


def test_a_job_that_cannot_be_begun_has_failed_on_its_page_too(unhurried, kit, monkeypatch):
    keep_busy()
    job_id = note.enqueue("a").id
    monkeypatch.delattr(site_tasks, "note")
    released.set()
    stop_queues(PATIENCE)
    status = assert_job(job_id, state=State.FAILED, command="note")
    assert "There is no task tests.backends.site_tasks.note (any more)" in status.error


# --- the end ----------------------------------------------------------------------------------------------------------


def test_what_was_not_begun_when_the_queue_stops_has_failed_and_says_what_it_was(unhurried, kit):
    keep_busy()
    job_id = note.enqueue("a").id
    threading.Timer(0.05, released.set).start()
    stop_queues(0, grace=PATIENCE)
    status = assert_job(job_id, state=State.FAILED, command="note")
    assert status.error.startswith("The process that had accepted it stopped before it was begun.")
    assert status.extra["django_task"]["args"] == ["a"]
    assert ran == ["first"]


def test_what_cannot_even_be_recorded_then_is_logged(unhurried, kit, caplog):
    keep_busy()
    job_id = note.enqueue("a").id
    kit.storage.fail("write", times=None, where="*/note-*")
    threading.Timer(0.05, released.set).start()
    stop_queues(0, grace=PATIENCE)
    kit.storage.mend()
    assert "1 jobs were never begun, and that can't be recorded:" in caplog.text
    assert f"; they are {job_id}" in caplog.text
    assert len(processwide.service_of(unhurried).behind) == 0


@pytest.mark.jobkit(CONCURRENCY=1)
def test_a_process_that_ends_asks_a_storage_that_fails_once_and_not_for_each_job(unhurried, kit, caplog):
    keep_busy()
    job_ids = [note.enqueue(number).id for number in range(5)]
    kit.storage.fail("write", times=None, where="*/note-*")
    kit.storage.calls.clear()
    threading.Timer(0.05, released.set).start()
    stop_queues(0, grace=PATIENCE)
    assert kit.storage.calls["write"] == 2  # with the end of the one that ran
    assert "5 jobs were never begun, and that can't be recorded:" in caplog.text
    assert f"; they are {', '.join(job_ids)}" in caplog.text


@pytest.mark.jobkit(CONCURRENCY=4)
def test_what_was_not_begun_takes_one_write_each_and_several_at_a_time(unhurried, kit):
    keep_busy()
    job_ids = [note.enqueue(number).id for number in range(8)]
    together = threading.Barrier(4)
    kit.storage.meanwhile(lambda: together.wait(PATIENCE), "write", times=None, where="*/note-*")
    kit.storage.calls.clear()
    threading.Timer(0.05, released.set).start()
    stop_queues(0, grace=PATIENCE)
    assert kit.storage.calls == {"write": 9}  # with the end of the one that ran
    assert {kit.store.get(job_id).state for job_id in job_ids} == {State.FAILED}


def test_a_process_that_ends_does_not_wait_for_a_storage_that_hangs(unhurried, kit, monkeypatch, caplog):
    monkeypatch.setattr("django_jobkit.backends.service.LAST_WORDS", 0.05)
    answered = threading.Event()
    keep_busy()
    job_id = note.enqueue("a").id
    kit.storage.meanwhile(lambda: answered.wait(PATIENCE), "write", where="*/note-*")
    threading.Timer(0.05, released.set).start()
    stop_queues(0, grace=PATIENCE)
    assert (
        f"1 jobs were never begun, and that can't be recorded: there was no more time; they are {job_id}" in caplog.text
    )
    answered.set()
    assert eventually(lambda: not [t for t in threading.enumerate() if t.name == "jobkit-leftovers"])


def test_a_job_is_known_until_it_is_recorded_that_it_was_lost(unhurried, kit):
    seen = []
    keep_busy()
    result = note.enqueue("a")
    kit.storage.meanwhile(lambda: seen.append(unhurried.get_result(result.id).status), "write", where="*/note-*")
    threading.Timer(0.05, released.set).start()
    stop_queues(0, grace=PATIENCE)
    assert seen == [TaskResultStatus.READY]
    assert unhurried.get_result(result.id).status == TaskResultStatus.FAILED


def test_connections_that_cannot_be_closed_end_no_thread(prompt, kit, monkeypatch):
    def fail():
        raise OSError("gone")

    monkeypatch.setattr("django.db.connections.close_all", fail)
    keep_busy()
    for number in range(3):
        job_id = note.enqueue(number).id
        assert eventually(lambda job_id=job_id: record_of(kit, job_id))


def test_the_thread_ends_with_the_queue_and_gives_back_its_connections(prompt, kit, monkeypatch):
    closed_by = []
    monkeypatch.setattr("django.db.connections.close_all", lambda: closed_by.append(threading.current_thread().name))
    keep_busy()
    job_id = note.enqueue("a").id
    assert eventually(lambda: record_of(kit, job_id))
    assert eventually(lambda: "jobkit-default-records" in closed_by)
    released.set()
    stop_queues(PATIENCE)
    assert eventually(lambda: not [t for t in threading.enumerate() if t.name == "jobkit-default-records"])


def test_where_no_thread_can_be_started_the_caller_writes_the_record(prompt, kit, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    kit.submit(until_told)  # which needs no writer
    assert started.wait(PATIENCE)

    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("django_jobkit.backends.write_behind.threading.Thread", NoThread)
        assert_job(note.enqueue("a").id, state=State.QUEUED)
    assert "backend 'default' records what it accepts by itself: can't start new thread" in caplog.text
    later = note.enqueue("b").id
    assert eventually(lambda: record_of(kit, later))
