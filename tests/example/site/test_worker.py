import json
import logging

import pytest
from filereport import analysis, worker

from django_jobkit import jobkits
from django_jobkit.exceptions import StorageUnavailable
from django_jobkit.jobs import JobStatus, State
from django_jobkit.signals import status_saved

TEXT = b"The clock ticks. The clock stops.\n"


@pytest.fixture
def saved():
    """The states that were recorded, in order."""
    states = []

    def hear(status, **_):
        states.append(str(status.state))

    status_saved.connect(hear)
    yield states
    status_saved.disconnect(hear)


def test_a_job_goes_from_queued_to_its_results(hands, media, saved):
    hands.at_once = False
    job_id = worker.submit("clock.txt", TEXT, owner="ann")
    queued = jobkits["default"].store.get(job_id)
    hands.work()
    done = jobkits["default"].store.get(job_id)

    assert saved == ["queued", "running", "succeeded"]
    assert (queued.command, queued.title, queued.owner, queued.attempts) == ("report-text", "clock.txt", "ann", 0)
    assert (done.command, done.title, done.owner, done.attempts) == ("report-text", "clock.txt", "ann", 1)
    assert done.queued_at == queued.queued_at <= done.started_at <= done.finished_at
    assert done.progress_current == done.progress_total == 5
    assert done.progress_message == "6 words in 2 sentences, very easy to read"
    job = media / "jobs" / job_id
    assert {path.name for path in job.iterdir()} == {"input.txt", "status.json", *done.outputs}
    assert json.loads((job / "summary.json").read_bytes())["words"] == 6


def test_the_job_is_on_record_before_a_worker_gets_it(monkeypatch, hands):
    seen = []
    monkeypatch.setattr(worker, "run", lambda job_id, _: seen.append(jobkits["default"].store.get(job_id).state))

    worker.submit("clock.txt", TEXT)

    assert seen == [State.QUEUED]


def test_a_job_delivered_twice_is_run_once(saved):
    job_id = worker.submit("clock.txt", TEXT)
    worker.run(job_id, "clock.txt")

    assert saved == ["queued", "running", "succeeded"]


def test_a_file_at_fault_fails_the_job_in_words_for_its_owner(caplog):
    job_id = worker.submit("clock.txt", b"K\xe4se")
    status = jobkits["default"].store.get(job_id)

    assert status.state == State.FAILED
    assert status.error.startswith("Line 1 is not UTF-8 text")
    assert status.finished_at is not None
    assert status.outputs == []
    assert not caplog.records  # nothing that the site's owner could mend


def test_a_fault_of_ours_fails_the_job_and_is_logged(monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(worker, "analyse", broken)
    status = jobkits["default"].store.get(worker.submit("clock.txt", TEXT))

    assert (status.state, status.error) == (State.FAILED, "ZeroDivisionError: division by zero")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_failed_job_may_run_again_and_counts_its_attempts(monkeypatch):
    job_id = worker.submit("clock.txt", b"K\xe4se")
    kit = jobkits["default"]
    kit.storage.write(kit.output_name(job_id, "input.txt"), TEXT)
    worker.run(job_id, "clock.txt")
    status = kit.store.get(job_id)

    assert (status.state, status.attempts, status.error) == (State.SUCCEEDED, 2, "")


def test_another_type_of_file_is_refused_and_leaves_nothing(media):
    with pytest.raises(analysis.FileProblem):
        worker.submit("photo.png", b"\x89PNG")
    assert list(media.iterdir()) == []


def test_a_storage_that_fails_refuses_the_job(media):
    (media / "jobs").write_text("a file where the directory should be")

    with pytest.raises(StorageUnavailable):
        worker.submit("clock.txt", TEXT)


def test_progress_is_recorded_at_most_once_a_second(saved):
    status = JobStatus(state=State.RUNNING)
    jobkits["default"].store.save("job-1", status)
    times = iter([0.0, 0.5, 0.9, 1.0, 1.0, 1.5, 1.9, 2.0, 2.0])
    progress = worker.Progress("job-1", status, clock=lambda: next(times))

    for step in range(1, 7):
        progress(step, 6, f"step {step}")

    recorded = jobkits["default"].store.get("job-1")
    assert saved == ["running"] * 3
    assert (recorded.progress_current, recorded.progress_total, recorded.progress_message) == (6, 6, "step 6")


def test_a_job_deleted_while_it_runs_does_not_come_back(monkeypatch, media):
    def analyse_and_be_deleted(*args, **kwargs):
        report = analysis.analyse(*args, **kwargs)
        for job_id in jobkits["default"].history.ids():
            jobkits["default"].history.delete(job_id)
        return report

    monkeypatch.setattr(worker, "analyse", analyse_and_be_deleted)
    worker.submit("clock.txt", TEXT)

    assert list((media / "jobs").iterdir()) == []


def test_jobs_that_wait_when_the_site_stops_are_failed_and_say_why(hands):
    hands.at_once = False
    job_id = worker.submit("clock.txt", TEXT)
    worker.stop()
    status = jobkits["default"].store.get(job_id)

    assert (status.state, status.attempts) == (State.FAILED, 0)
    assert status.error == "The site stopped before the report was begun. Submit it again."


def test_jobs_submitted_to_a_site_that_stops_are_failed_too(hands):
    worker.stop()
    with pytest.raises(RuntimeError):
        worker.submit("clock.txt", TEXT)

    (row,) = jobkits["default"].history.latest(5)
    assert row.status.state == State.FAILED


def test_an_error_that_no_record_could_tell_is_logged(monkeypatch, caplog):
    def broken(job_id, _):
        raise StorageUnavailable("away")

    monkeypatch.setattr(worker, "run", broken)
    job_id = worker.submit("clock.txt", TEXT)

    assert f"report {job_id} has no record of its end" in caplog.text
