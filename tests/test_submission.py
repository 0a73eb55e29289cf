from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import transaction

from django_jobkit.exceptions import InvalidJobID, JobExists, StatusCorrupt, StatusNotFound, StatusUnavailable
from django_jobkit.jobs import JobStatus, State
from django_jobkit.submission import take_handed_over
from django_jobkit.tracking import tracked


@tracked(command="summarize")
def summarize(job, path):
    return path


class Queue:
    """As much of an engine as submitting needs."""

    func = summarize

    def __init__(self) -> None:
        self.taken = []
        self.refuses = None

    def enqueue(self, job_id, *args, **kwargs):
        if self.refuses:
            raise self.refuses
        self.taken.append((job_id, args, kwargs))


@pytest.fixture(autouse=True)
def _no_outage_of_another_test(monkeypatch):
    monkeypatch.setattr("django_jobkit.submission._asked_again_at", 0.0)


@pytest.fixture
def queue():
    return Queue()


def test_the_job_is_recorded_as_queued_before_the_engine_gets_it(kit, clock):
    seen = []

    def hand_over(job_id, path):
        seen.append((job_id, path, kit.store.get(job_id).state))

    job_id = kit.submit(hand_over, "a.csv")
    assert seen == [(job_id, "a.csv", State.QUEUED)]
    assert kit.store.get(job_id).queued_at == clock.now


def test_the_id_and_the_command_come_from_the_task(kit, queue):
    job_id = kit.submit(queue, "a.csv", depth=2)
    assert re.fullmatch(r"summarize-\d{8}-\d{6}-[0-9a-f]{12}", job_id)
    assert kit.store.get(job_id).command == "summarize"
    assert queue.taken == [(job_id, ("a.csv",), {"depth": 2})]


def test_what_is_known_of_the_job_can_be_recorded_with_it(kit, queue):
    job_id = kit.enqueue(queue, ["a.csv"], prefix="zine", title="Summer", owner="mika", retry_of="zine-1")
    status = kit.store.get(job_id)
    assert job_id.startswith("zine-")
    assert (status.title, status.owner, status.retry_of) == ("Summer", "mika", "zine-1")


def test_submitting_is_one_storage_request(kit, storage, queue):
    kit.submit(queue)
    assert storage.calls == {"write": 1}


def test_a_celery_task_gets_the_jobs_id_as_its_own(kit):
    class CeleryTask:
        run = summarize

        def apply_async(self, args, kwargs, task_id):
            self.called = (args, kwargs, task_id)

    task = CeleryTask()
    kit.enqueue(task, ["a.csv"], {"depth": 2}, job_id="a")
    assert task.called == (("a", "a.csv"), {"depth": 2}, "a")
    assert kit.store.get("a").command == "summarize"


def test_an_engine_that_refuses_leaves_the_job_failed_with_the_reason(kit, queue):
    queue.refuses = ConnectionError("no broker")
    with pytest.raises(ConnectionError):
        kit.enqueue(queue, job_id="a", title="Summer")
    status = kit.store.get("a")
    assert (status.state, status.title) == (State.FAILED, "Summer")
    assert status.error.startswith("It could not be queued. ConnectionError: no broker")


def test_without_a_record_nothing_is_handed_over(kit, storage, queue):
    storage.fail("write")
    with pytest.raises(StatusUnavailable):
        kit.submit(queue)
    assert queue.taken == []


@pytest.mark.parametrize("job_id", ["", "..", "a b"])
def test_an_invalid_id_is_refused(kit, queue, job_id):
    with pytest.raises(InvalidJobID):
        kit.enqueue(queue, job_id=job_id)
    assert queue.taken == []


def test_something_that_is_no_task_leaves_the_job_failed(kit):
    with pytest.raises(TypeError, match="A task has enqueue"):
        kit.enqueue(7, job_id="a")
    assert kit.store.get("a").state == State.FAILED


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_second_submit_while_the_first_is_unfinished_is_refused_unless_asked_for(kit, queue, state):
    kit.store.save("a", JobStatus(state=state))
    with pytest.raises(JobExists, match=f"Job a is {state}"):
        kit.enqueue(queue, job_id="a")
    assert queue.taken == []
    kit.enqueue(queue, job_id="a", replace=True)
    assert kit.store.get("a").state == State.QUEUED
    assert len(queue.taken) == 1


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED])
def test_a_job_that_has_ended_runs_again_under_its_id(kit, queue, clock, state):
    kit.store.save(
        "a", JobStatus(state=state, attempts=1, title="t", queued_at=clock.now, result=7, finished_at=clock.now)
    )
    clock.advance(timedelta(days=1))
    kit.enqueue(queue, job_id="a")
    status = kit.store.get("a")
    assert status == JobStatus(
        job_id="a",
        command="summarize",
        state=State.QUEUED,
        attempts=1,
        title="t",
        queued_at=clock.now,
        updated_at=clock.now,
    )
    assert summarize("a", "again") == "again"


@pytest.mark.jobkit(LEASE=60)
def test_a_running_job_whose_worker_is_gone_can_be_submitted_again(kit, queue, clock):
    kit.store.save("a", JobStatus(state=State.RUNNING, lease_id="x", lease_expires_at=clock.now + timedelta(seconds=1)))
    with pytest.raises(JobExists):
        kit.enqueue(queue, job_id="a")
    clock.advance(1)
    kit.enqueue(queue, job_id="a")
    assert len(queue.taken) == 1


def test_a_damaged_record_is_only_replaced_when_asked_for(kit, storage, queue):
    storage.write("jobs/a/status.json", b"{ broken")
    with pytest.raises(StatusCorrupt):
        kit.enqueue(queue, job_id="a")
    kit.enqueue(queue, job_id="a", replace=True)
    assert kit.store.get("a").state == State.QUEUED


@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_the_engine_gets_the_task_at_the_commit(kit, queue):
    with transaction.atomic():
        job_id = kit.submit(queue, "a.csv")
        assert kit.store.get(job_id).state == State.QUEUED
        assert queue.taken == []
    assert [taken[0] for taken in queue.taken] == [job_id]


@pytest.mark.django_db(transaction=True)
def test_an_engine_that_refuses_at_the_commit_reaches_the_caller_too(kit, queue):
    queue.refuses = ConnectionError("no broker")
    with pytest.raises(ConnectionError), transaction.atomic():
        kit.enqueue(queue, job_id="a")
    assert kit.store.get("a").state == State.FAILED


NEVER_QUEUED = "It was never queued: the transaction in which it was submitted was not committed,"


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_transaction_is_rolled_back_has_failed_and_does_not_wait_for_ever(kit, queue):
    with transaction.atomic():
        job_id = kit.enqueue(queue, ["a.csv"], title="A report")
        transaction.set_rollback(True)
    status = kit.store.get(job_id)
    assert (status.state, status.title, queue.taken) == (State.FAILED, "A report", [])
    assert status.error.startswith(NEVER_QUEUED)


@pytest.mark.django_db(transaction=True)
def test_so_has_one_whose_savepoint_is_rolled_back_and_no_other(kit, queue):
    with transaction.atomic():
        kept = kit.submit(queue, "kept")
        with transaction.atomic():
            lost = kit.submit(queue, "lost")
            transaction.set_rollback(True)
        assert (kit.store.get(lost).state, kit.store.get(kept).state) == (State.FAILED, State.QUEUED)
    assert [taken[0] for taken in queue.taken] == [kept]
    assert kit.store.get(kept).state == State.QUEUED


@pytest.mark.django_db(transaction=True)
def test_so_has_one_that_comes_after_a_commit_hook_that_fails(kit, queue):
    def submit_after_another_hook():
        with transaction.atomic():
            transaction.on_commit(lambda: 1 / 0)
            kit.enqueue(queue, job_id="a")

    with pytest.raises(ZeroDivisionError):
        submit_after_another_hook()
    assert kit.store.get("a").error.startswith(NEVER_QUEUED)


@pytest.mark.django_db(transaction=True)
def test_a_rollback_does_not_touch_what_was_submitted_anew_or_has_begun(kit, queue, clock):
    with transaction.atomic():
        kit.enqueue(queue, job_id="a")
        clock.advance(1)
        kit.store.save("a", JobStatus(state=State.QUEUED, queued_at=clock.now))
        kit.enqueue(queue, job_id="b")
        kit.store.save("b", JobStatus(state=State.RUNNING))
        kit.enqueue(queue, job_id="c")
        kit.store.delete("c")
        transaction.set_rollback(True)
    assert (kit.store.get("a").state, kit.store.get("b").state) == (State.QUEUED, State.RUNNING)
    with pytest.raises(StatusNotFound):
        kit.store.get("c")


@pytest.mark.django_db(transaction=True)
def test_a_child_process_that_lets_go_of_the_transaction_fails_nothing(kit, queue, monkeypatch):
    with transaction.atomic():
        job_id = kit.submit(queue)
        with monkeypatch.context() as in_the_child:
            in_the_child.setattr("os.getpid", lambda: -1)
            transaction.get_connection().run_on_commit.clear()
    assert kit.store.get(job_id).state == State.QUEUED


@pytest.mark.django_db(transaction=True)
def test_a_rollback_asks_a_storage_that_fails_once(kit, queue, storage):
    with transaction.atomic():
        for _ in range(3):
            kit.submit(queue)
        storage.fail("write", times=None)
        storage.calls.clear()
        transaction.set_rollback(True)
    assert storage.calls == {"write": 1}


@pytest.mark.django_db(transaction=True)
def test_a_rollback_is_not_disturbed_by_a_storage_that_fails(kit, queue, storage, caplog):
    with transaction.atomic():
        job_id = kit.submit(queue)
        storage.fail("write")
        transaction.set_rollback(True)
    assert f"job {job_id} was never queued, and can't be recorded so" in caplog.text


def test_no_database_is_needed(kit, queue, monkeypatch):
    monkeypatch.setattr(settings, "DATABASES", {})
    kit.submit(queue)
    assert len(queue.taken) == 1


class Backend:
    """As much of a backend as has a say in the record."""

    def jobkit_members(self, task, args, kwargs):
        if "secret" in kwargs:
            raise TypeError("not that")
        return {"call": [*args]}


class BackedQueue(Queue):
    def get_backend(self):
        return Backend()

    def enqueue(self, job_id, *args, **kwargs):
        super().enqueue(job_id, *args, **kwargs)
        self.seen = [take_handed_over(job_id), take_handed_over("another")]


def test_the_tasks_backend_can_add_to_the_record_and_finds_it_when_it_gets_the_task(kit):
    queue = BackedQueue()
    kit.enqueue(queue, ["a.csv"], job_id="a")
    assert kit.store.get("a").extra == {"call": ["a.csv"]}
    assert queue.seen[0].status.queued_at == kit.store.get("a").queued_at
    assert queue.seen[1] is None
    assert take_handed_over("a") is None


def test_what_the_backend_adds_stays_when_the_job_could_not_be_queued(kit):
    queue = BackedQueue()
    queue.refuses = ConnectionError("full")
    with pytest.raises(ConnectionError):
        kit.enqueue(queue, ["a.csv"], job_id="a")
    status = kit.store.get("a")
    assert (status.state, status.extra) == (State.FAILED, {"call": ["a.csv"]})


def test_arguments_that_the_backend_refuses_leave_no_record(kit, storage):
    with pytest.raises(TypeError, match="not that"):
        kit.submit(BackedQueue(), secret=1)
    assert kit.files == {}


def test_a_running_job_whose_lease_came_from_its_engine_can_be_submitted_again_when_that_ends(kit, queue, clock):
    kit.store.save("a", JobStatus(state=State.RUNNING, lease_id="x", lease_expires_at=clock.now + timedelta(seconds=1)))
    with pytest.raises(JobExists):
        kit.enqueue(queue, job_id="a")
    clock.now += timedelta(seconds=1)
    kit.enqueue(queue, job_id="a")
    assert len(queue.taken) == 1
