import json
import logging
import threading

import pytest
from filereport import analysis, worker

from django_jobkit import jobkits
from django_jobkit.exceptions import QueueStopped, StorageUnavailable
from django_jobkit.jobs import State
from django_jobkit.signals import status_saved
from tests.inprocess.helpers import eventually

from .conftest import PATIENCE

TEXT = b"The clock ticks. The clock stops.\n"


@pytest.fixture
def saved():
    """The states that were recorded, in order, each once."""
    states = []

    def hear(status, **_):
        if [str(status.state)] != states[-1:]:
            states.append(str(status.state))

    status_saved.connect(hear)
    yield states
    status_saved.disconnect(hear)


@pytest.fixture
def held(monkeypatch):
    """Reports that wait in the middle until the test releases them."""

    class Held:
        begun, released = threading.Event(), threading.Event()

    def analyse(*args, progress, **kwargs):
        Held.begun.set()
        while not Held.released.wait(0.005):
            progress(0, 1, "Waiting")
        return analysis.analyse(*args, progress=progress, **kwargs)

    monkeypatch.setattr(worker, "analyse", analyse)
    yield Held
    Held.released.set()


def of(job_id):
    return jobkits["default"].store.get(job_id)


def test_a_job_goes_from_queued_to_its_results(queue, media, saved):
    job_id = worker.submit("clock.txt", TEXT, owner="ann")
    queue.drain()
    done = of(job_id)

    assert saved == ["queued", "running", "succeeded"]
    assert (done.command, done.title, done.owner, done.attempts) == ("report-text", "clock.txt", "ann", 1)
    assert done.queued_at <= done.started_at <= done.finished_at
    assert done.progress_current == done.progress_total == 5
    assert done.progress_message == "6 words in 2 sentences, very easy to read"
    job = media / "jobs" / job_id
    assert {path.name for path in job.iterdir()} == {"input.txt", "status.json", *done.outputs}
    assert json.loads((job / "summary.json").read_bytes())["words"] == 6
    assert list((media / "jobs.queue").iterdir()) == []


def test_a_table_is_a_task_of_its_own():
    assert of(worker.submit("clock.csv", b"a\n1\n")).command == "report-table"


def test_a_job_delivered_twice_is_run_once(saved):
    job_id = worker.submit("clock.txt", TEXT)
    worker.report_text.func(job_id, "clock.txt")

    assert saved == ["queued", "running", "succeeded"]


def test_a_file_at_fault_fails_the_job_in_words_for_its_owner(queue, caplog):
    job_id = worker.submit("clock.txt", b"K\xe4se")
    queue.drain()
    status = of(job_id)

    assert status.state == State.FAILED
    assert status.error.startswith("PermanentJobError: Line 1 is not UTF-8 text")
    assert status.finished_at is not None
    assert status.outputs == []


def test_a_fault_of_ours_fails_the_job_and_is_logged(queue, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(worker, "analyse", broken)
    job_id = worker.submit("clock.txt", TEXT)
    queue.drain()

    assert of(job_id).state == State.FAILED
    assert of(job_id).error.startswith("ZeroDivisionError: division by zero")
    assert [record.levelno for record in caplog.records if record.levelno > logging.INFO] == [logging.ERROR]


def test_a_failed_job_may_run_again_and_counts_its_attempts():
    job_id = worker.submit("clock.txt", b"K\xe4se")
    kit = jobkits["default"]
    kit.storage.write(kit.output_name(job_id, "input.txt"), TEXT)
    kit.enqueue(worker.report_text, ["clock.txt"], job_id=job_id)

    assert (of(job_id).state, of(job_id).attempts, of(job_id).error) == (State.SUCCEEDED, 2, "")


def test_another_type_of_file_is_refused_and_leaves_nothing(media):
    with pytest.raises(analysis.FileProblem):
        worker.submit("photo.png", b"\x89PNG")
    assert not (media / "jobs").exists() or list((media / "jobs").iterdir()) == []


def test_a_storage_that_fails_refuses_the_job(media):
    (media / "jobs").write_text("a file where the directory should be")

    with pytest.raises(StorageUnavailable):
        worker.submit("clock.txt", TEXT)


def test_a_job_deleted_while_it_runs_does_not_come_back(queue, held, media):
    job_id = worker.submit("clock.txt", TEXT)
    assert held.begun.wait(PATIENCE)
    jobkits["default"].history.delete(job_id)
    held.released.set()
    queue.drain()

    assert list((media / "jobs").iterdir()) == []


def test_jobs_that_do_not_end_when_the_site_stops_are_run_when_it_starts_again(queue, held, monkeypatch):
    from django_jobkit.backends import stop_queues

    running = [worker.submit(f"{number}.txt", TEXT) for number in range(3)]
    waiting = worker.submit("last.txt", TEXT)
    assert eventually(lambda: all(of(job_id).state == State.RUNNING for job_id in running))
    stop_queues(0, grace=PATIENCE)
    assert {of(job_id).state for job_id in [*running, waiting]} == {State.QUEUED}

    held.released.set()
    queue.start_again()
    assert eventually(lambda: {of(job_id).state for job_id in [*running, waiting]} == {State.SUCCEEDED})
    assert [of(job_id).attempts for job_id in [*running, waiting]] == [2, 2, 2, 1]


def test_jobs_submitted_to_a_site_that_stops_are_failed_and_say_why(queue):
    worker.submit("clock.txt", TEXT)
    queue.drain()
    with pytest.raises(QueueStopped):
        worker.submit("clock.txt", TEXT)

    newest = max((row.status for row in jobkits["default"].history.latest(5)), key=lambda status: status.queued_at)
    assert newest.state == State.FAILED
    assert newest.error.startswith("It could not be queued. QueueStopped: ")
