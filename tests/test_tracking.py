from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta

import pytest

from django_jobkit.exceptions import (
    InvalidJobID,
    JobBusy,
    JobCancelled,
    PermanentJobError,
    StatusUnavailable,
    StorageUnavailable,
)
from django_jobkit.jobs import JobStatus, State
from django_jobkit.tracking import Engine, engine_of, stop_requested, tracked

fast = pytest.mark.jobkit(PROGRESS_INTERVAL=0.001)
leased = pytest.mark.jobkit(LEASE=600, PROGRESS_INTERVAL=0.001)


@tracked(command="double")
def double(job, number):
    job.title = f"twice {number}"
    return number * 2


def test_a_job_of_a_few_lines_gets_its_whole_life_recorded(kit, clock):
    kit.recorder.record("a", JobStatus(state=State.QUEUED, owner="mika", queued_at=clock.now))
    queued_at = clock.now
    clock.advance(5)

    assert double("a", 21) == 42

    assert kit.store.get("a") == JobStatus(
        job_id="a",
        command="double",
        state=State.SUCCEEDED,
        title="twice 21",
        attempts=1,
        queued_at=queued_at,
        updated_at=clock.now,
        started_at=clock.now,
        finished_at=clock.now,
        owner="mika",
        result=42,
    )


def test_a_job_that_has_succeeded_is_not_run_again(kit):
    ran = []

    @tracked()
    def work(job):
        ran.append(job.job_id)
        return "done"

    assert work("x/a") == "done"
    assert work("a") is None
    assert ran == ["a"]
    assert kit.store.get("a").command == "work"


def test_an_error_is_recorded_and_raised_for_the_engine_to_retry(kit):
    @tracked()
    def work(job):
        if job.attempt == 1:
            raise ValueError("line 37 is no number")
        return job.attempt

    with pytest.raises(ValueError, match="line 37"):
        work("a")
    status = kit.store.get("a")
    assert (status.state, status.attempts) == (State.FAILED, 1)
    assert status.error.startswith("ValueError: line 37 is no number\n")
    assert "raise ValueError" in status.error
    assert "django_jobkit/tracking.py" not in status.error  # the kit's own frames are nobody's business
    assert status.finished_at is not None

    assert work("a") == 2
    status = kit.store.get("a")
    assert (status.state, status.attempts, status.error) == (State.SUCCEEDED, 2, "")


def test_a_permanent_error_is_recorded_and_not_raised(kit):
    @tracked()
    def work(job):
        raise PermanentJobError("the file is no CSV")

    assert work("a") is None
    assert kit.store.get("a").error.startswith("PermanentJobError: the file is no CSV")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
def test_even_what_ends_a_process_is_recorded_once(kit, storage, error):
    @tracked()
    def work(job):
        raise error

    with pytest.raises(type(error)):
        work("a")
    assert kit.store.get("a").state == State.FAILED
    assert storage.calls["write"] == 2


@pytest.mark.parametrize("arguments", [(), (1, 2)])
def test_a_job_whose_arguments_do_not_fit_is_failed_and_does_not_vanish(kit, arguments):
    with pytest.raises(TypeError):
        double("a", *arguments)
    assert kit.store.get("a").error.startswith("TypeError: ")


def test_a_whole_job_takes_no_more_than_five_storage_requests(kit, storage):
    kit.submit(double, 21)
    assert sum(storage.calls.values()) <= 5
    assert storage.calls == {"write": 3, "read": 1}


def test_an_invalid_id_runs_nothing(kit, storage):
    with pytest.raises(InvalidJobID):
        double("..", 21)
    assert storage.calls == {}


def test_when_it_cannot_be_told_whether_the_job_is_done_nothing_runs(kit, storage):
    storage.fail("read")
    with pytest.raises(StatusUnavailable):
        double("a", 21)


def test_a_begin_that_cannot_be_recorded_does_not_stop_the_work(kit, storage, caplog):
    @tracked()
    def work(job):
        pass

    storage.fail("write")
    work("a")
    assert (kit.store.get("a").state, kit.store.get("a").attempts) == (State.SUCCEEDED, 1)
    assert "could not be recorded" in caplog.text


def test_an_end_that_cannot_be_recorded_is_tried_again_and_then_logged_as_an_error(kit, storage, caplog):
    @tracked()
    def work(job):
        storage.fail("write", times=None)
        job._run._interval = 0
        return 7

    assert work("a") == 7  # the work is done: running it again would not be better
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.WARNING, logging.ERROR]
    assert caplog.records[-1].job_id == "a"


def test_texts_no_file_can_hold_are_recorded_as_far_as_they_can(kit):
    @tracked()
    def work(job):
        job.title = "a\ud800b"
        job.progress(1, 2, "\udfff")

    work("a")
    assert (kit.store.get("a").title, kit.store.get("a").progress_message) == ("a?b", "?")


@pytest.mark.parametrize(
    ("result", "recorded", "said"),
    [
        ({"n": [1, None, "海"]}, {"n": [1, None, "海"]}, ""),
        ((1, 2), [1, 2], ""),
        (None, None, ""),
        (object(), None, "no JSON"),
        (float("nan"), None, "no JSON"),
        ("x" * 70_000, None, "more than 64000"),
    ],
    ids=["json", "tuple", "none", "object", "nan", "large"],
)
def test_what_the_function_returns_is_recorded_if_a_file_can_hold_it(kit, caplog, result, recorded, said):
    @tracked()
    def work(job):
        return result

    work("a")
    assert (kit.store.get("a").state, kit.store.get("a").result) == (State.SUCCEEDED, recorded)
    assert said in caplog.text


def test_outputs_are_files_in_the_jobs_directory_and_listed(kit):
    @tracked()
    def work(job):
        job.save_output("chart.svg", "<svg/>")
        job.save_output("pages/1.txt", b"one")
        job.save_output("chart.svg", b"<svg></svg>")
        assert job.read_file("chart.svg").read() == b"<svg></svg>"
        with pytest.raises(ValueError, match="no name"):
            job.save_output("../b/status.json", b"{}")

    work("a")
    assert kit.store.get("a").outputs == ["chart.svg", "pages/1.txt"]
    assert kit.files["jobs/a/chart.svg"] == b"<svg></svg>"
    assert set(kit.files) == {"jobs/a/chart.svg", "jobs/a/pages/1.txt", "jobs/a/status.json"}


# --- progress ---------------------------------------------------------------------------------------------------


def wait_for(condition) -> None:
    deadline = threading.Event()
    for _ in range(2000):
        if condition():
            return
        deadline.wait(0.005)
    raise AssertionError("it did not come about in time")


@fast
def test_progress_is_recorded_while_the_job_runs_and_its_last_value_lands(kit):
    @tracked()
    def work(job):
        job.progress(1, 3, "reading")
        wait_for(lambda: kit.store.get("a").progress_current == 1)
        status = kit.store.get("a")
        assert (status.state, status.progress_total, status.progress_message) == (State.RUNNING, 3, "reading")
        job.title = "t"
        job.progress(3)

    work("a")
    status = kit.store.get("a")
    assert (status.progress_current, status.progress_total, status.progress_message) == (3, 3, "reading")


def test_a_million_steps_write_next_to_nothing(kit, storage):
    @tracked()
    def work(job):
        for n in range(100_000):
            job.progress(n, 100_000)

    work("a")
    assert storage.calls["write"] <= 4  # begin, end, and one a second in between
    assert kit.store.get("a").progress_current == 99_999


@fast
def test_progress_that_cannot_be_recorded_never_fails_the_job(kit, storage, caplog):
    @tracked()
    def work(job):
        storage.fail("write", times=None)
        job.progress(1, 3)
        wait_for(lambda: "progress can't be recorded" in caplog.text)
        storage.mend()
        wait_for(lambda: kit.store.get("a").progress_current == 1)

    work("a")
    assert kit.store.get("a").state == State.SUCCEEDED


@pytest.mark.parametrize(
    ("value", "recorded"), [("half", 0), ("7", 7), (2.9, 2), (None, 0), (10**30, 2**63 - 1), (float("inf"), 0)]
)
def test_a_progress_that_is_no_fit_number_never_fails_the_job(kit, value, recorded):
    @tracked()
    def work(job):
        job.progress(value, value)

    work("a")
    status = kit.store.get("a")
    assert (status.state, status.progress_current) == (State.SUCCEEDED, recorded)


# --- cancelled, and leases --------------------------------------------------------------------------------------


@leased
def test_a_job_that_was_deleted_meanwhile_is_told_and_stays_deleted(kit, caplog):
    @tracked()
    def work(job):
        assert not job.cancelled
        kit.history.delete("a")
        job.progress(1)
        wait_for(lambda: job.cancelled)
        job.check_cancelled()

    with pytest.raises(JobCancelled):
        work("a")
    assert kit.files == {}
    assert "no longer this worker's" in caplog.text


@leased
def test_a_second_delivery_is_busy_while_the_first_runs(kit):
    @tracked()
    def work(job, again):
        if again:
            with pytest.raises(JobBusy):
                work("a", False)

    work("a", True)
    assert kit.store.get("a").attempts == 1
    assert kit.store.get("a").lease_id == ""


@leased
def test_a_worker_whose_lease_was_taken_over_is_told_and_cannot_record(kit, clock):
    @tracked()
    def work(job, nested):
        if nested:
            return "second"
        clock.advance(601)  # as if it had been paused
        assert work("a", True) == "second"
        job.progress(1)
        wait_for(lambda: job.cancelled)
        return "first"

    work("a", False)
    status = kit.store.get("a")
    assert (status.state, status.result, status.attempts) == (State.SUCCEEDED, "second", 2)


@pytest.mark.jobkit(LEASE=0.3)
def test_a_lease_is_kept_alive_while_the_job_runs(jobkit):
    @tracked()
    def work(job):
        first = jobkit.store.get("a").lease_expires_at
        wait_for(lambda: jobkit.store.get("a").lease_expires_at > first + timedelta(seconds=0.2))

    work("a")
    assert jobkit.store.get("a").lease_expires_at is None


@leased
def test_a_job_submitted_anew_while_it_runs_is_superseded(kit):
    @tracked()
    def work(job):
        kit.enqueue(lambda job_id: None, job_id="a", replace=True)
        job.progress(1)
        wait_for(lambda: job.cancelled)

    work("a")
    assert kit.store.get("a").state == State.QUEUED


def test_an_engine_can_ask_its_jobs_to_end(kit):
    stopping = threading.Event()

    @tracked()
    def work(job):
        assert not job.cancelled
        stopping.set()
        job.check_cancelled()

    token = stop_requested.set(stopping.is_set)
    try:
        with pytest.raises(JobCancelled):
            work("a")
    finally:
        stop_requested.reset(token)


# --- async ------------------------------------------------------------------------------------------------------


@tracked(command="adouble")
async def adouble(job, number):
    job.title = "async"
    if number < 0:
        raise ValueError("negative")
    if number > 100:
        await asyncio.Event().wait()
    return number * 2


def test_async_functions_are_tracked_just_so(kit):
    assert asyncio.run(adouble("a", 21)) == 42
    assert asyncio.run(adouble("a", 21)) is None
    assert (kit.store.get("a").state, kit.store.get("a").title) == (State.SUCCEEDED, "async")
    with pytest.raises(ValueError, match="negative"):
        asyncio.run(adouble("b", -1))
    assert kit.store.get("b").state == State.FAILED


def test_a_cancelled_async_job_has_its_end_recorded(kit):
    async def life():
        task = asyncio.create_task(adouble("a", 101))
        while not (kit.files and kit.store.get("a").state == State.RUNNING):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(life())
    assert kit.store.get("a").error.startswith("CancelledError")


def test_the_wrapper_has_the_name_of_the_function_and_takes_an_id():
    assert (double.__name__, double.__module__) == ("double", __name__)
    assert not hasattr(double, "__wrapped__")
    assert double.jobkit_command == "double"


def test_an_unavailable_output_storage_fails_the_job_with_the_reason(kit, storage):
    @tracked()
    def work(job):
        storage.fail("write", where="*/a.txt")
        job.save_output("a.txt", b"")

    with pytest.raises(StorageUnavailable):
        work("a")
    assert kit.store.get("a").error.startswith("StorageUnavailable")


class Listener(Engine):
    """Writes down what it is told of a run, and says what a test wants it to."""

    def __init__(self, **answers):
        self.heard = []
        self.answers = answers
        self.lease = answers.get("lease")

    def note(self, what, *values):
        self.heard.append(what)
        if (answer := self.answers.get(what)) is not None:
            return answer(*values)
        return values[0]

    def starting(self, next_, prev):
        self.note("starting", next_, prev)

    def started(self, status):
        self.note("started", status)

    def accept_result(self, result):
        return self.note("accept_result", result)

    def ending(self, status, error):
        self.note("ending", status, error)

    def ended(self, status, error, *, lost):
        self.note("ended", status, error, lost)


def test_an_engine_hears_of_the_run_that_it_calls_for_in_order_and_may_add_to_the_record(kit):
    def add(next_, prev):
        assert prev.state == State.QUEUED
        next_.extra["worker"] = "w1"

    engine = Listener(starting=add, ended=lambda status, error, lost: seen.append((status.state, status.extra, error)))
    seen = []
    kit.recorder.record("a", JobStatus(state=State.QUEUED))
    with engine_of("a", engine):
        double("a", 21)
    assert engine.heard == ["starting", "started", "accept_result", "ending", "ended"]
    assert seen == [(State.SUCCEEDED, {"worker": "w1"}, None)]
    assert kit.store.get("a").extra == {"worker": "w1"}


def test_an_engine_takes_part_in_no_other_run_that_is_made_on_the_way(kit):
    @tracked()
    def outer(job):
        return double("inner", 1)

    engine = Listener()
    with engine_of("outer", engine):
        outer("outer")
    assert engine.heard.count("starting") == 1
    assert kit.store.get("inner").state == State.SUCCEEDED
    double("later", 1)
    assert engine.heard.count("starting") == 1


def test_an_engine_can_refuse_a_run_and_nothing_is_recorded(kit):
    def refuse(next_, prev):
        raise LookupError("not this one")

    kit.recorder.record("a", JobStatus(state=State.FAILED, error="earlier"))
    with engine_of("a", Listener(starting=refuse)), pytest.raises(LookupError):
        double("a", 1)
    assert kit.store.get("a").error == "earlier"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_that_its_engine_refuses_fails_the_job(kit, is_async):
    def refuse(result):
        raise PermanentJobError(f"not {result}")

    if is_async:

        @tracked()
        async def work(job):
            job.result = 7
    else:

        @tracked()
        def work(job):
            job.result = 7

    engine = Listener(accept_result=refuse, ended=lambda status, error, lost: seen.append(error))
    seen = []
    with engine_of("a", engine):
        asyncio.run(work("a")) if is_async else work("a")
    status = kit.store.get("a")
    assert (status.state, status.error.splitlines()[0]) == (State.FAILED, "PermanentJobError: not 7")
    assert isinstance(seen[0], PermanentJobError)


def test_an_engine_may_say_what_is_recorded_of_a_result(kit):
    with engine_of("a", Listener(accept_result=str)):
        assert double("a", 21) == 42
    assert kit.store.get("a").result == "42"


@leased
def test_an_engine_may_put_a_job_back_that_it_has_told_to_end(kit):
    def put_back(status, error):
        if isinstance(error, JobCancelled):
            status.state = State.QUEUED

    @tracked()
    def work(job):
        job.check_cancelled()

    token = stop_requested.set(lambda: True)
    try:
        with engine_of("a", Listener(ending=put_back)), pytest.raises(JobCancelled):
            work("a")
    finally:
        stop_requested.reset(token)
    status = kit.store.get("a")
    assert (status.state, status.lease_id, status.attempts) == (State.QUEUED, "", 1)


def test_an_engines_own_lease_counts_before_the_kits(kit, clock):
    seen = []
    with engine_of("a", Listener(lease=30, started=seen.append)):
        double("a", 1)
    assert seen[0].lease_expires_at == clock.now + timedelta(seconds=30)


@leased
def test_an_engine_hears_that_an_end_could_not_be_recorded(kit):
    @tracked()
    def work(job):
        kit.store.delete("a")

    seen = []
    with engine_of("a", Listener(ended=lambda *args: seen.append(args))):
        work("a")
    assert seen == [(None, None, True)]


def test_an_engine_can_tell_a_lost_job_from_an_end_that_the_storage_did_not_take(kit, storage, monkeypatch):
    monkeypatch.setattr("django_jobkit.jobs.run.END_TRIES", 1)

    @tracked()
    def work(job):
        storage.fail("write", times=None)

    seen = []
    with engine_of("a", Listener(ended=lambda *args: seen.append(args))):
        work("a")
    assert seen == [(None, None, False)]


@leased
def test_a_job_runs_where_no_thread_can_be_started_to_keep_its_record(kit, monkeypatch, caplog):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    @tracked()
    def work(job):
        job.progress(1, 2)
        return "done"

    assert work("a") == "done"
    assert kit.store.get("a").progress_current == 1
    assert "runs without records of its progress: can't start new thread" in caplog.text
