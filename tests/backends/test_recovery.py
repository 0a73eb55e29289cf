"""What was accepted by a process that is no more is run by another, and by no more than one while that lives."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest

from django_jobkit.backends import processwide, startup, stop_queues
from django_jobkit.backends.calls import MEMBER, TaskCall
from django_jobkit.backends.markers import Key, Marker, Markers
from django_jobkit.exceptions import PermanentJobError, QueueFull
from django_jobkit.jobs import JobStatus, State
from django_jobkit.testing import assert_job
from tests.inprocess.helpers import eventually

from .conftest import finished
from .site_tasks import (
    PATIENCE,
    add,
    draw,
    hold,
    note,
    raised_when_told,
    ran,
    released,
    started,
    summarize,
    until_told,
)

_numbers = itertools.count()


@pytest.fixture
def left(kit):
    """Leaves a job behind as a process does that is killed; returns its ID."""

    def leave(task, *args, state=State.QUEUED, lease=None, age=3600, job_id="", record=True, **fields):
        job_id = job_id or f"left-{next(_numbers)}"
        call = TaskCall.of(task, args, {})
        now = kit.recorder.now()
        accepted_at = now - timedelta(seconds=age)
        if record:
            status = JobStatus(state=state, queued_at=accepted_at, command=task.name, **fields)
            if lease is not None:
                status.lease_id, status.lease_expires_at = "another's", now + timedelta(seconds=lease)
            status.extra[MEMBER] = {**call.member(), "worker_ids": ["another"] * status.attempts}
            kit.store.save(job_id, status)
        Markers(kit).put(Key(job_id, call.token), Marker(call, accepted_at))
        return job_id

    return leave


def look(backend):
    processwide.service_of(backend).look_if_due()


def markers(kit):
    return sorted(key.job_id for key in Markers(kit))


# --- which are run ---------------------------------------------------------------------------------------------------


def test_a_job_that_waited_is_run(backend, kit, left):
    job_id = left(add, 1, 2)
    look(backend)
    result = finished(backend, job_id)
    assert (result.return_value, result.attempts) == (3, 1)
    assert eventually(lambda: markers(kit) == [])


def test_a_tracked_job_gets_its_id_and_its_arguments(backend, kit, left):
    job_id = left(summarize, "a.csv")
    look(backend)
    finished(backend, job_id)
    assert ran == [(job_id, "a.csv", 1)]


def test_a_job_whose_worker_gives_no_sign_of_life_any_more_is_run_again(backend, kit, left):
    job_id = left(add, 1, 2, state=State.RUNNING, lease=-1, attempts=1)
    look(backend)
    result = finished(backend, job_id)
    assert (result.attempts, result.worker_ids) == (2, ["another", backend_worker()])


def backend_worker():
    return processwide._process.worker_id


def test_a_job_whose_worker_lives_is_left_alone_until_its_lease_ends(backend, kit, left):
    job_id = left(note, "again", state=State.RUNNING, lease=0.4, attempts=1)
    ends = kit.store.get(job_id).lease_expires_at
    look(backend)
    assert eventually(lambda: backend.stats().recovering == 1)
    result = finished(backend, job_id)
    assert result.started_at >= ends
    assert ran == ["again"]


def test_a_worker_that_lives_on_keeps_its_job(jobkit_clock, backend, kit, left):
    job_id = left(note, "again", state=State.RUNNING, lease=0.01, attempts=1)
    look(backend)
    # Looked at again and again: by this clock the lease never ends.
    assert eventually(lambda: kit.storage.calls["read"] > 10)
    assert ran == []
    assert markers(kit) == [job_id]
    jobkit_clock.advance(0.01)
    finished(backend, job_id)
    assert ran == ["again"]


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED])
def test_a_job_that_has_ended_is_not_run_and_only_its_marker_goes(backend, kit, left, state):
    job_id = left(note, "again", state=state, attempts=1)
    look(backend)
    assert eventually(lambda: markers(kit) == [])
    assert_job(job_id, state=state, attempts=1)
    assert ran == []


def test_a_job_that_was_deleted_is_not_run_and_its_marker_goes(backend, kit, left):
    left(note, "deleted", record=False)
    look(backend)
    assert eventually(lambda: markers(kit) == [])
    assert ran == []
    assert kit.files == {}


def test_a_run_without_a_lease_is_somebody_elses(backend, kit, left):
    job_id = left(note, "again", state=State.RUNNING, attempts=1)
    last = left(note, "last")
    look(backend)
    finished(backend, last)
    assert eventually(lambda: backend.stats().recovering == 0)
    assert markers(kit) == [job_id]
    assert ran == ["last"]


def test_a_job_that_was_submitted_anew_is_run_with_its_new_arguments_only(backend, kit, left):
    left(note, "old", job_id="a")
    left(note, "new", job_id="a")
    look(backend)
    finished(backend, "a")
    assert eventually(lambda: markers(kit) == [])
    assert ran == ["new"]


def test_a_job_waits_for_its_time_in_another_process_too(backend, kit, left):
    run_after = kit.recorder.now() + timedelta(seconds=0.3)
    job_id = left(note.using(run_after=run_after), "later")
    look(backend)
    assert finished(backend, job_id).started_at >= run_after


def test_jobs_of_another_backend_are_left_to_it(settings, kit, tasks, left):
    backend = tasks()
    settings.TASKS = {**settings.TASKS, "other": settings.TASKS["default"]}
    theirs = left(note.using(backend="other"), "theirs")
    ours = left(note, "ours")
    look(backend)
    finished(backend, ours)
    assert eventually(lambda: markers(kit) == [theirs])
    assert ran == ["ours"]


def test_jobs_of_a_backend_that_there_is_no_more_are_left_and_reported_once(settings, kit, tasks, left, caplog):
    backend = tasks()
    settings.TASKS = {**settings.TASKS, "old": settings.TASKS["default"]}
    theirs = sorted(left(note.using(backend="old"), number) for number in range(3))
    backend = tasks()
    ours = left(note, "ours")
    look(backend)
    finished(backend, ours)
    assert eventually(lambda: markers(kit) == theirs)
    assert caplog.text.count("waits for TASKS['old'], which there isn't") == 1


def test_they_are_run_by_priority_and_age_however_many_there_are(tasks, kit, left):
    backend = tasks(WORKERS=1, BUFFER=1)
    for number in range(20):
        left(note.using(priority=number % 3), [number % 3, number], age=1000 - number)
    look(backend)
    assert eventually(lambda: len(ran) == 20)
    assert eventually(lambda: markers(kit) == [])
    assert sorted(ran, key=lambda value: (-value[0], value[1])) == ran


def test_more_than_a_batch_of_them_are_run(tasks, kit, left, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._BATCH", 7)
    backend = tasks(WORKERS=2)
    for number in range(50):
        left(note, number)
    look(backend)
    assert eventually(lambda: len(ran) == 50)
    assert sorted(ran) == list(range(50))
    assert eventually(lambda: markers(kit) == [])


def test_new_jobs_find_room_while_others_are_recovered(tasks, kit, left):
    backend = tasks(WORKERS=1, BUFFER=2)
    hold.enqueue("first")
    assert started.wait(PATIENCE)
    for number in range(30):
        left(note, number)
    processwide.service_of(backend)._look_due = 0
    look(backend)
    assert eventually(lambda: backend.stats().recovering == 29)
    job_id = note.enqueue("new").id
    released.set()
    finished(backend, job_id)
    assert eventually(lambda: len(ran) == 32)


# --- what stands in the way ------------------------------------------------------------------------------------------


def test_a_task_whose_code_is_gone_fails_with_that_reason(backend, kit, left, monkeypatch):
    monkeypatch.setattr(type(note), "module_path", property(lambda self: "tests.backends.site_tasks.gone"))
    job_id = left(note, 1)
    monkeypatch.undo()
    look(backend)
    assert eventually(lambda: kit.store.get(job_id).state == State.FAILED)
    assert kit.store.get(job_id).error.startswith(
        "It could not be begun. There is no task tests.backends.site_tasks.gone (any more)"
    )
    assert eventually(lambda: markers(kit) == [])


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"accepted_at":"2026-08-31T10:20:30Z","call":{}}'])
def test_a_damaged_marker_is_reported_and_keeps_no_other_from_being_run(backend, kit, left, caplog, data):
    kit.storage.write("jobs.queue/broken.0a/task.json", data)
    job_id = left(note, "kept")
    look(backend)
    finished(backend, job_id)
    assert eventually(lambda: "the marker of job broken is damaged" in caplog.text)
    assert "jobs.queue/broken.0a/task.json" in kit.files


def test_a_damaged_record_is_reported_and_its_marker_stays(backend, kit, left, caplog):
    job_id = left(note, "broken")
    kit.storage.write(f"jobs/{job_id}/status.json", b"{ broken")
    look(backend)
    assert eventually(lambda: f"The status file of job {job_id} is damaged" in caplog.text)
    assert eventually(lambda: backend.stats().recovering == 0)
    assert markers(kit) == [job_id]
    assert ran == []


def test_other_directories_among_the_markers_are_none(backend, kit, left):
    for name in ("notes/task.json", ".hidden.0a/task.json", "a b.0a/task.json", "a./task.json"):
        kit.storage.write(f"jobs.queue/{name}", b"{}")
    assert markers(kit) == []


def test_a_storage_that_cannot_be_listed_is_asked_again_soon(backend, kit, left, monkeypatch, caplog):
    monkeypatch.setattr("django_jobkit.backends.service._SOONER", 0.0)
    job_id = left(note, "kept")
    kit.storage.fail("list_dirs")
    look(backend)
    assert eventually(lambda: "can't look for jobs that were left yet" in caplog.text)
    look(backend)
    finished(backend, job_id)


def test_a_record_that_cannot_be_read_is_read_again_later(backend, kit, left, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    job_id = left(note, "kept")
    kit.storage.fail("read", times=3, where="*/status.json")
    look(backend)
    assert eventually(lambda: ran == ["kept"])
    finished(backend, job_id)


def test_a_marker_that_cannot_be_removed_is_removed_later_and_the_job_not_run_again(backend, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    kit.storage.fail("delete", times=3)
    job_id = note.enqueue("once").id
    finished(backend, job_id)
    assert eventually(lambda: markers(kit) == [])
    assert ran == ["once"]


def test_a_job_whose_end_could_not_be_recorded_is_not_run_again_by_this_process(tasks, kit, monkeypatch):
    monkeypatch.setattr("django_jobkit.jobs.run.END_TRIES", 1)
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    backend = tasks(LEASE=0.1)
    result = hold.enqueue("once")
    assert started.wait(PATIENCE)
    kit.storage.fail("write", "delete", times=None)
    released.set()
    assert eventually(lambda: backend.stats().running == 0)
    kit.storage.mend()
    assert eventually(lambda: markers(kit) == [])
    assert_job(result.id, state=State.RUNNING)
    assert ran == ["once"]


# --- several processes -----------------------------------------------------------------------------------------------


def test_queues_side_by_side_run_each_job_once(tasks, kit, left):
    """As processes do: each has a queue of its own, and they share nothing but the storage."""
    backend = tasks(WORKERS=2)
    jobs = [left(note, number) for number in range(30)]
    services = [
        processwide.Service("default", backend.settings, type(backend), worker_id=f"worker-{number}")
        for number in range(4)
    ]
    threads = [threading.Thread(target=service.look_if_due) for service in services]
    for thread in threads:
        thread.start()
    assert eventually(lambda: len(ran) >= 30)
    assert eventually(lambda: markers(kit) == [])
    for service in services:
        service.stop(PATIENCE)
    assert sorted(ran) == list(range(30))
    assert {kit.store.get(job_id).attempts for job_id in jobs} == {1}


def test_a_worker_whose_job_was_taken_over_leaves_it_alone(tasks, kit):
    tasks(LEASE=600)
    job_id = kit.submit(until_told)
    assert started.wait(PATIENCE)
    status = kit.store.get(job_id)
    status.lease_id = "another's"
    kit.store.save(job_id, status)
    released.set()
    stop_queues(PATIENCE)
    assert_job(job_id, state=State.RUNNING, lease_id="another's")
    assert markers(kit) == [job_id]


def test_a_job_that_is_deleted_while_it_runs_leaves_nothing(backend, kit):
    job_id = kit.submit(draw)
    assert started.wait(PATIENCE)
    kit.history.delete(job_id)
    released.set()
    assert eventually(lambda: backend.stats().running == 0)
    assert kit.files == {}


# --- a stop ----------------------------------------------------------------------------------------------------------


def test_jobs_that_wait_when_a_process_stops_are_run_by_the_next(tasks, kit):
    backend = tasks(WORKERS=1)
    first = kit.submit(until_told)
    assert started.wait(PATIENCE)
    waiting = [note.enqueue(1).id, note.using(run_after=kit.recorder.now() + timedelta(seconds=0.2)).enqueue(2).id]
    report = stop_queues(0, grace=PATIENCE)["default"]
    assert (len(report.waiting), report.cancelled, report.running) == (2, 1, 0)
    assert markers(kit) == sorted([first, *waiting])
    assert_job(first, state=State.QUEUED, error="Its process stopped before it was done. It will run again.")
    assert ran == []

    processwide.forget_queues()
    released.set()
    look(backend)
    for job_id in [first, *waiting]:
        finished(backend, job_id)
    assert ran[-1] == 2
    assert sorted(map(str, ran)) == sorted(["1", "2", first])
    assert kit.store.get(first).attempts == 2


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (RuntimeError("cannot schedule new futures after interpreter shutdown"), State.QUEUED),
        (SystemExit(1), State.QUEUED),
        (PermanentJobError("no"), State.FAILED),
    ],
)
def test_whatever_error_ends_a_job_that_was_told_to_end_has_it_run_again_but_a_permanent_one(
    backend, kit, error, state
):
    raised_when_told.append(error)
    job_id = kit.submit(until_told)
    assert started.wait(PATIENCE)
    stop_queues(0, grace=PATIENCE)
    assert_job(job_id, state=state)


def test_a_stop_waits_for_those_that_wait_and_run(tasks, kit):
    backend = tasks(WORKERS=1)
    jobs = [hold.enqueue(1).id, note.enqueue(2).id]
    assert started.wait(PATIENCE)
    stopping = threading.Thread(target=stop_queues, args=(PATIENCE,))
    stopping.start()
    assert eventually(lambda: backend.stats().state == "stopping")
    released.set()
    stopping.join()
    assert ran == [1, 2]
    assert [backend.get_result(job_id).is_finished for job_id in jobs] == [True, True]
    assert markers(kit) == []


# --- when it is looked -----------------------------------------------------------------------------------------------


def test_the_first_use_of_a_queue_looks_and_nothing_before(backend, kit, left):
    left(note, "kept")
    backend.stats()
    backend.check()
    assert ran == []
    assert kit.storage.calls["list_dirs"] == 0
    finished(backend, note.enqueue("new").id)
    assert eventually(lambda: sorted(ran) == ["kept", "new"])


def test_the_first_request_looks_and_others_only_when_it_is_time(tasks, kit, left):
    backend = tasks(RECOVER_EVERY=60)
    job_id = left(note, "kept")
    for _ in range(5):
        startup.look_for_jobs(sender=None)
    finished(backend, job_id)
    assert kit.storage.calls["list_dirs"] == 1
    processwide.service_of(backend)._look_due = 0
    startup.look_for_jobs(sender=None)
    assert eventually(lambda: kit.storage.calls["list_dirs"] == 2)


def test_after_the_first_look_only_what_is_old_enough_is_taken(tasks, kit, left):
    """What is younger another process is most likely about to run."""
    backend = tasks(RECOVER_EVERY=60)
    look(backend)
    assert eventually(lambda: kit.storage.calls["list_dirs"] == 1)
    young, old = left(note, "young", age=59), left(note, "old", age=61)
    processwide.service_of(backend)._look_due = 0
    assert eventually(lambda: backend.stats().recovering == 0)
    look(backend)
    finished(backend, old)
    assert eventually(lambda: markers(kit) == [young])
    assert ran == ["old"]


def test_there_may_be_only_one_look(tasks, kit):
    backend = tasks(RECOVER_EVERY=None)
    for _ in range(3):
        look(backend)
        assert eventually(lambda: kit.storage.calls["list_dirs"] == 1)


def test_without_markers_nothing_is_looked_for_or_stored(tasks, kit, left):
    backend = tasks(DURABLE=False)
    left(note, "left")
    kit.storage.calls.clear()
    startup.look_for_jobs(sender=None)
    finished(backend, note.enqueue("new").id)
    assert kit.storage.calls["list_dirs"] == 0
    assert ran == ["new"]


def test_a_site_whose_tasks_cannot_be_made_serves_its_requests(settings, caplog):
    settings.TASKS = {"default": {"BACKEND": "nowhere.Backend"}}
    startup.look_for_jobs(sender=None)
    startup.look_for_jobs(sender=None)
    assert caplog.text.count("TASKS['default'] can't be used: Could not find backend 'nowhere.Backend'") == 1


def test_looking_leaves_no_thread_behind(backend, kit, left):
    job_id = left(note, "kept")
    look(backend)
    finished(backend, job_id)
    assert eventually(lambda: not [thread for thread in threading.enumerate() if thread.name.endswith("-recovery")])


def test_it_is_said_what_was_left(tasks, kit, caplog):
    caplog.set_level(logging.WARNING)
    tasks(WORKERS=1)
    kit.submit(until_told)
    assert started.wait(PATIENCE)
    note.enqueue(1)
    stop_queues(0, grace=PATIENCE)
    assert (
        "backend 'default' stops with 1 jobs not begun and 1 told to end, 0 of which still run, to be run again by "
        "another process" in caplog.text
    )


# --- what must not stop it -------------------------------------------------------------------------------------------


def test_jobs_that_were_left_are_all_run_while_others_keep_the_queue_full(tasks, kit, left):
    backend = tasks(WORKERS=1, BUFFER=0)
    job_ids = [left(note, number) for number in range(12)]
    stopped = threading.Event()

    def keep_full():
        while not stopped.is_set():
            with contextlib.suppress(QueueFull):
                note.enqueue("client")
            stopped.wait(0.0002)

    client = threading.Thread(target=keep_full)
    client.start()
    try:
        look(backend)
        assert eventually(lambda: set(range(12)) <= set(ran))
    finally:
        stopped.set()
        client.join()
    assert {kit.store.get(job_id).state for job_id in job_ids} <= {State.SUCCEEDED, State.RUNNING}


def test_a_job_that_the_queue_cannot_take_just_now_is_handed_over_later(tasks, kit, left, monkeypatch):
    monkeypatch.setattr("django_jobkit.backends.recovery._FIRST_RETRY", 0.01)
    backend = tasks(WORKERS=1)
    service = processwide.service_of(backend)
    answers = iter([False, RuntimeError("can't start new thread")])
    put = service._put

    def put_later(entry, delay):
        answer = next(answers, None)
        if isinstance(answer, Exception):
            raise answer
        return put(entry, delay) if answer is None else answer

    monkeypatch.setattr(service, "_put", put_later)
    job_ids = [left(note, number) for number in range(3)]
    look(backend)
    assert [finished(backend, job_id).status for job_id in job_ids] == ["SUCCESSFUL"] * 3


def test_a_job_that_waits_for_ages_keeps_no_other_waiting(tasks, kit, left):
    backend = tasks(WORKERS=1)
    note.using(run_after=datetime(9999, 12, 31, tzinfo=UTC)).enqueue("far")
    processwide.forget_queues()
    look(backend)
    assert eventually(lambda: backend.stats().recovering == 1)
    job_id = left(note, "left")
    processwide.service_of(backend).recovery.scan()
    finished(backend, job_id)
    assert ran == ["left"]


def test_a_marker_nested_too_deeply_to_be_read_keeps_no_other_waiting(backend, kit, left):
    kit.storage.write("jobs.queue/deep.0badc0de/task.json", b"[" * 100_000)
    job_id = left(note, "left")
    look(backend)
    finished(backend, job_id)


def test_connections_that_cannot_be_closed_end_no_thread(tasks, kit, left, monkeypatch, caplog):
    backend = tasks(WORKERS=1)

    def fail():
        raise OSError("gone")

    monkeypatch.setattr("django.db.connections.close_all", fail)
    job_ids = [left(note, number) for number in range(3)]
    look(backend)
    assert [finished(backend, job_id).status for job_id in job_ids] == ["SUCCESSFUL"] * 3
    assert "a database connection can't be closed" in caplog.text
