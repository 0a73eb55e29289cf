from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import TestCase, override_settings

from django_jobkit import jobkits
from django_jobkit.exceptions import (
    PermanentJobError,
    StatusUnavailable,
    StorageUnavailable,
    VersionConflict,
)
from django_jobkit.jobs import JobStatus, Recorder, State, StatusStore, ids
from django_jobkit.storages import ABSENT, adapt
from django_jobkit.storages.memory import MemoryJobStorage
from django_jobkit.testing import FaultyStorage, FrozenClock, MemoryKit, assert_job, memory_kit
from django_jobkit.tracking import tracked
from tests.storages.contract import StorageContract

try:
    from django.tasks import task
except ModuleNotFoundError:
    from django_tasks import task


@tracked(command="double")
def double(job, number):
    if number < 0:
        raise ValueError("negative")
    if number == 0:
        raise PermanentJobError("zero")
    job.save_output("note.txt", "done")
    return number * 2


@tracked(command="adouble")
async def adouble(job, number):
    await asyncio.sleep(0)
    if number < 0:
        raise ValueError("negative")
    return number * 2


@task()
@tracked(command="triple")
def triple(job, number):
    return number * 3


# --- a kit in memory --------------------------------------------------------------------------------------------


def test_a_block_has_a_kit_of_its_own_and_leaves_nothing_behind():
    before = jobkits["default"]
    with memory_kit() as kit:
        assert jobkits["default"] is kit
        kit.recorder.record("a", JobStatus(state=State.QUEUED))
        assert list(kit.files) == ["jobs/a/status.json"]
        with memory_kit() as inner:
            assert jobkits["default"] is inner
            assert inner.files == {}
        assert_job("a", state="queued")
    assert not isinstance(jobkits["default"], MemoryKit)
    assert jobkits["default"].django_storage is before.django_storage


def test_even_a_block_that_ends_with_an_error_gives_the_sites_kit_back():
    with pytest.raises(RuntimeError), memory_kit():
        raise RuntimeError
    assert not isinstance(jobkits["default"], MemoryKit)


def test_the_kit_has_no_cache_so_that_each_look_is_at_what_is_stored():
    with memory_kit() as kit:
        kit.store.save("a", JobStatus(state=State.QUEUED))
        kit.history.page(1, 20)
        kit.storage.delete_tree("jobs/a")  # behind the kit's back
        assert kit.history.page(1, 20).items == []


@override_settings(JOBKIT={"default": {}, "comics": {"PREFIX": "zines", "LEASE": 60}})
def test_the_sites_settings_stand_where_none_are_given():
    with memory_kit("comics", LEASE=5) as kit:
        assert (kit.settings.prefix, kit.settings.lease, kit.settings.cache) == ("zines", 5, None)
        assert not isinstance(jobkits["default"], MemoryKit)
    assert jobkits["comics"].settings.lease == 60


def test_a_kit_that_the_site_does_not_have_is_there_within_the_block():
    with memory_kit("comics"):
        assert set(jobkits) == {"default", "comics"}
    assert set(jobkits) == {"default"}


def test_a_wrong_setting_is_told_by_its_name():
    with pytest.raises(ImproperlyConfigured, match=r"LEESE.*Did you mean LEASE"), memory_kit(LEESE=5):
        pass
    assert not isinstance(jobkits["default"], MemoryKit)


def test_settings_that_change_within_the_block_leave_the_jobs_where_they_are():
    with memory_kit(eager=True):
        with override_settings(JOBKIT={"default": {"CACHE": None, "LEASE": 7}}):
            assert jobkits["default"].settings.lease == 7
            job_id = jobkits["default"].submit(double, 21)
        with override_settings(MEDIA_URL="/files/"):
            assert_job(job_id, state="succeeded")


def test_django_sees_the_same_files():
    with memory_kit() as kit:
        kit.storage.write("jobs/a/chart.svg", b"<svg/>")
        assert kit.django_storage.open("jobs/a/chart.svg").read() == b"<svg/>"


@memory_kit()
def test_it_can_be_a_decorator():
    assert isinstance(jobkits["default"], MemoryKit)


class TestInATestCase(TestCase):
    """As sites that use unittest have it: the test is in a transaction that never commits."""

    def setUp(self):
        self.kit = self.enterContext(memory_kit(eager=True))

    def test_the_job_runs_when_the_callbacks_of_the_commit_are_called(self):
        with self.captureOnCommitCallbacks(execute=True):
            job_id = jobkits["default"].submit(double, 21)
            assert_job(job_id, state="queued", attempts=0)
        assert_job(job_id, state="succeeded", result=42)


# --- jobs that run at once --------------------------------------------------------------------------------------


@pytest.fixture
def eager():
    with memory_kit(eager=True) as kit:
        yield kit


def test_a_job_has_run_when_submit_returns(eager):
    job_id = eager.submit(double, 21)
    assert_job(job_id, state="succeeded", result=42, attempts=1, command="double", outputs=["note.txt"])
    assert eager.files[f"jobs/{job_id}/note.txt"] == b"done"


def test_a_jobs_error_is_recorded_and_logged_and_not_the_callers(eager, caplog):
    job_id = eager.submit(double, -1)
    assert_job(job_id, state="failed", error=re.compile("ValueError: negative"))
    assert caplog.records[-1].job_id == job_id
    assert caplog.records[-1].exc_info


def test_a_jobs_error_reaches_the_caller_where_that_is_asked_for():
    with memory_kit(eager=True, raise_errors=True) as kit:
        with pytest.raises(ValueError, match="negative"):
            kit.enqueue(double, [-1], job_id="a")
        assert_job("a", state="failed", error=re.compile("negative"))
        assert_job(kit.submit(double, 0), state="failed", error=re.compile("zero"))


@pytest.mark.parametrize("holder", ["func", "run"], ids=["a Django task", "a Celery task"])
def test_a_task_is_run_by_its_function_and_its_engine_is_not_asked(eager, holder):
    class Task:
        def enqueue(self, *args, **kwargs):
            raise AssertionError("the engine was asked")

        apply_async = enqueue

    setattr(Task, holder, staticmethod(double))
    assert_job(eager.submit(Task(), number=21), state="succeeded", result=42, command="double")


@override_settings(TASKS={"default": {"BACKEND": "django_jobkit.backends.InProcessBackend"}})
def test_a_task_of_the_in_process_backend_runs_at_once_as_well(eager):
    job_id = eager.submit(triple, 21)
    assert_job(job_id, state="succeeded", result=63, command="triple")
    assert set(eager.files) == {f"jobs/{job_id}/status.json"}
    assert eager.store.get(job_id).extra["django_task"]["args"] == [21]  # by which it can be retried


def test_async_jobs_run_as_well(eager):
    assert_job(eager.submit(adouble, 21), state="succeeded", result=42)
    assert_job(eager.submit(adouble, -1), state="failed")


def test_an_async_job_may_be_submitted_on_an_event_loop(eager):
    async def life():
        return eager.submit(adouble, 21)

    assert_job(asyncio.run(life()), state="succeeded", result=42)


@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_the_job_runs_at_the_commit(eager):
    with transaction.atomic():
        job_id = eager.submit(double, 21)
        assert_job(job_id, state="queued")
    assert_job(job_id, state="succeeded")


@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_that_is_rolled_back_the_job_never_runs(eager):
    with transaction.atomic():
        job_id = eager.submit(double, 21)
        transaction.set_rollback(True)
    assert_job(job_id, state="failed", attempts=0)


def test_something_that_is_no_task_is_told_as_without_eager(eager):
    with pytest.raises(TypeError, match="A task has"):
        eager.enqueue(7, job_id="a")
    assert_job("a", state="failed", error=re.compile("could not be queued"))


# --- what a job should have come to -----------------------------------------------------------------------------


def test_the_status_is_returned_for_more_questions(eager):
    status = assert_job(eager.submit(double, 21))
    assert status.finished_at >= status.started_at


def test_members_that_the_class_does_not_know_can_be_asked_for(jobkit):
    jobkit.storage.write("jobs/a/status.json", b'{"job_id":"a","state":"running","updated_at":null,"pages":12}')
    assert_job("a", state="running", pages=12)


def test_what_differs_is_told_with_the_error_and_the_record(jobkit):
    jobkit.store.save("a", JobStatus(state=State.FAILED, title="Summer", error="ValueError: no\n  line 37", attempts=2))
    with pytest.raises(AssertionError) as caught:
        assert_job("a", state="succeeded", title="Winter", attempts=2, error=re.compile("line 3$"))
    lines = str(caught.value).splitlines()
    assert lines[0] == "Job 'a' of kit 'default' is not as expected:"
    assert "  state: 'failed', not 'succeeded'" in lines
    assert "  title: 'Summer', not 'Winter'" in lines
    assert "  error: nothing like 'line 3$' in 'ValueError: no\\n  line 37'" in lines
    assert "  its error: ValueError: no" in lines
    assert not any("attempts:" in line for line in lines)
    assert '"title":"Summer"' in str(caught.value).replace(": ", ":")


def test_a_field_that_is_not_there_is_told_with_one_that_is(jobkit):
    jobkit.store.save("a", JobStatus(state=State.QUEUED))
    with pytest.raises(AssertionError, match="titel: there is no such field; did you mean title"):
        assert_job("a", titel="Summer")


def test_a_job_that_is_not_there_is_told_with_those_that_are(jobkit):
    with pytest.raises(AssertionError, match="no job 'a' in kit 'default', and no other"):
        assert_job("a", state="queued")
    for number in range(12):
        jobkit.store.save(f"b{number:02}", JobStatus(state=State.QUEUED))
    with pytest.raises(AssertionError, match=r"There are b11, b10, .*, b02, and 2 more"):
        assert_job("a", state="queued")


def test_a_job_of_another_kit_can_be_asked_for(jobkit):
    with memory_kit("comics") as comics:
        comics.store.save("a", JobStatus(state=State.QUEUED))
        assert_job("a", kit="comics", state="queued")
        assert_job("a", kit=comics, state="queued")
        with pytest.raises(AssertionError, match="kit 'default'"):
            assert_job("a", state="queued")


# --- a storage that breaks --------------------------------------------------------------------------------------


class TestFaultyStorageWithoutFaults(StorageContract):
    @pytest.fixture
    def storage(self):
        return FaultyStorage(MemoryJobStorage())


@pytest.fixture
def storage():
    return FaultyStorage(MemoryJobStorage())


CALLS = {
    "read": lambda storage: storage.read("jobs/a/status.json"),
    "write": lambda storage: storage.write("jobs/a/status.json", b"2"),
    "delete": lambda storage: storage.delete("jobs/a/status.json"),
    "delete_tree": lambda storage: storage.delete_tree("jobs/a"),
    "list_dirs": lambda storage: list(storage.list_dirs("jobs")),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_fails_as_often_as_it_is_told_to_and_does_nothing_then(storage, kind):
    storage.write("jobs/a/status.json", b"1")
    storage.calls.clear()
    storage.fail(kind, times=2)
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match=f"{kind} of 'jobs"):
            CALLS[kind](storage)
    assert storage.inner.read("jobs/a/status.json").data == b"1"
    CALLS[kind](storage)
    assert storage.calls == {kind: 3}


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_fails_until_it_is_mended(storage, kind):
    storage.write("jobs/a/status.json", b"1")
    storage.fail(times=None)
    for _ in range(10):
        with pytest.raises(StorageUnavailable):
            CALLS[kind](storage)
    storage.mend()
    CALLS[kind](storage)


def test_a_call_fails_with_the_error_that_is_given(storage):
    storage.fail("read", error=TimeoutError("no answer"))
    with pytest.raises(TimeoutError, match="no answer"):
        storage.read("jobs/a/status.json")


def test_only_the_names_that_match_are_met(storage):
    storage.fail("write", times=None, where="*/status.json")
    storage.write("jobs/a/chart.svg", b"")
    with pytest.raises(StorageUnavailable):
        storage.write("jobs/a/status.json", b"")


def test_faults_are_met_one_after_another(storage):
    storage.fail("write", error=TimeoutError)
    storage.fail("write", error=PermissionError)
    for error in (TimeoutError, PermissionError):
        with pytest.raises(error):
            storage.write("a", b"")
    storage.write("a", b"")


def test_a_lost_answer_is_a_write_that_was_done(storage):
    storage.lose_answer("write")
    with pytest.raises(StorageUnavailable, match="done"):
        storage.write("a", b"1")
    assert storage.read("a").data == b"1"


def test_a_lost_answer_to_a_conditional_write_looks_like_a_conflict_that_is_not_certain(storage):
    storage.lose_answer()
    with pytest.raises(VersionConflict) as caught:
        storage.write("a", b"1", if_version=ABSENT)
    assert not caught.value.certain
    store = StatusStore(storage)
    storage.lose_answer(times=None, where="jobs/*")
    Recorder(store).begin("a", JobStatus(state=State.RUNNING))
    assert store.get("a").state == State.RUNNING  # the kit finds out that it was its own
    assert storage.calls["write"] == 2


def test_a_lost_answer_to_a_delete_is_a_delete_that_was_done(storage):
    storage.write("jobs/a/x", b"")
    storage.lose_answer("delete_tree")
    with pytest.raises(StorageUnavailable):
        storage.delete_tree("jobs/a")
    assert list(storage.list_dirs("jobs")) == []


def test_a_conflict_meets_conditional_writes_only(storage):
    storage.conflict()
    version = storage.write("a", b"1")
    with pytest.raises(VersionConflict) as caught:
        storage.write("a", b"2", if_version=version)
    assert caught.value.certain
    assert storage.read("a").data == b"1"
    storage.write("a", b"2", if_version=version)


def test_another_worker_can_slip_in_between_a_read_and_a_write(storage):
    store = StatusStore(storage)
    other = Recorder(StatusStore(storage.inner))

    def add_attempt(next_, prev):
        next_.attempts += 1

    storage.meanwhile(lambda: other.begin("a", JobStatus(state=State.RUNNING), add_attempt))
    Recorder(store).begin("a", JobStatus(state=State.RUNNING), add_attempt)
    assert store.get("a").attempts == 2


def test_a_slow_call_waits_and_may_fail_as_well():
    waits = []
    storage = FaultyStorage(MemoryJobStorage(), sleep=waits.append)
    storage.slow(2.5, "read", "write")
    storage.write("a", b"1")
    storage.fail("read")
    with pytest.raises(StorageUnavailable):
        storage.read("a")
    storage.delete("a")
    assert waits == [2.5, 2.5]


@pytest.mark.parametrize("method", ["fail", "lose_answer", "slow"])
def test_a_call_that_storages_do_not_have_is_told(storage, method):
    arguments = (1.0, "reads") if method == "slow" else ("reads",)
    with pytest.raises(ValueError, match="No call of a storage: reads"):
        getattr(storage, method)(*arguments)


def test_a_fault_that_would_meet_nothing_is_told(storage):
    with pytest.raises(ValueError, match="times is 1 or more"):
        storage.fail(times=0)


def test_threads_share_the_counts_and_the_faults(storage):
    storage.fail("read", times=50)
    failed = []

    def read():
        for _ in range(25):
            try:
                storage.read("a")
            except StorageUnavailable:
                failed.append(1)
            except FileNotFoundError:
                pass

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storage.calls["read"] == 100
    assert len(failed) == 50


def test_it_keeps_the_contract_and_shows_what_its_inner_storage_has_besides(storage):
    assert adapt(storage) is storage
    assert storage.storage is storage.inner.storage
    with pytest.raises(AttributeError):
        _ = storage.nonsense


def test_a_site_sees_an_outage_as_one(jobkit):
    jobkit.storage.fail("read")
    with pytest.raises(StatusUnavailable):
        jobkit.store.get("a")


# --- a time that stands still -----------------------------------------------------------------------------------


def test_a_frozen_clock_moves_when_it_is_told_to():
    clock = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
    assert clock() == clock()
    assert clock.advance(1.5) == datetime(2026, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    clock.advance(timedelta(days=1))
    assert clock().day == 2


def test_a_frozen_clock_needs_a_time_zone():
    with pytest.raises(ValueError, match="time zone"):
        FrozenClock(datetime(2026, 1, 1))  # noqa: DTZ001


def test_records_ids_and_leases_follow_the_clock():
    clock = FrozenClock()
    with memory_kit(clock=clock, eager=True, LEASE=60) as kit:
        job_id = kit.submit(double, 21)
        assert_job(job_id, queued_at=clock.now, started_at=clock.now, finished_at=clock.now, updated_at=clock.now)
        assert ids.created_at(job_id) == clock.now
        Recorder(kit.store, lease=60).begin("a", JobStatus(state=State.RUNNING))
        assert_job("a", lease_expires_at=clock.now + timedelta(seconds=60))


# --- fixtures ---------------------------------------------------------------------------------------------------


def test_the_kit_of_the_fixture_is_the_default_one(jobkit, jobkit_storage):
    assert jobkits["default"] is jobkit
    assert jobkit.storage is jobkit_storage


def test_without_the_clock_of_the_fixture_time_goes_on(jobkit):
    jobkit.store.save("a", JobStatus(state=State.QUEUED))
    assert abs(jobkit.store.get("a").updated_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_test_that_asks_for_the_clock_has_it_in_its_kit(jobkit, jobkit_clock):
    jobkit.store.save("a", JobStatus(state=State.QUEUED))
    assert_job("a", updated_at=jobkit_clock.now)


@pytest.mark.jobkit("comics", eager=True, LEASE=60)
def test_the_marker_says_how_the_kit_is_made(jobkit):
    assert (jobkit.alias, jobkit.settings.lease) == ("comics", 60)
    assert_job(jobkit.enqueue(lambda job_id: None, job_id="a"), kit="comics", state="queued")


def test_only_the_plugin_needs_pytest():
    code = (
        "import sys, django.conf; django.conf.settings.configure(); import django_jobkit.testing;"
        "sys.exit('pytest' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
