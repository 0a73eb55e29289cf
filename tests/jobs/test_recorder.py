from __future__ import annotations

import base64
import logging
import re
import threading
from datetime import timedelta

import pytest

from django_jobkit.exceptions import (
    InvalidJobID,
    JobBusy,
    StatusCorrupt,
    StatusNotEncodable,
    StatusNotFound,
    StatusUnavailable,
    VersionConflict,
)
from django_jobkit.jobs.files import ABSENT
from django_jobkit.jobs.recorder import Recorder
from django_jobkit.jobs.status import JobStatus, State, Status
from django_jobkit.jobs.store import StatusStore
from django_jobkit.jobs.swap import Saved
from tests.jobs import readings
from tests.jobs.fakes import Clock, DictStorage
from tests.jobs.shapes import OutputDirStatus
from tests.vectors import cases, text

ERRORS = {"unavailable": StatusUnavailable, "invalid_job_id": InvalidJobID, "decode": StatusCorrupt}
LOGS = {
    "warn:previous_unreadable": (logging.WARNING, "can't be read"),
    "info:not_rolled_back": (logging.INFO, "has succeeded already"),
    "warn:save_failed": (logging.WARNING, "could not be recorded"),
}


class Callbacks:
    """The vectors' ``apply`` lists."""

    def __init__(self, names: list[str]) -> None:
        self.previous_seen: list[bool] = []
        self.functions = [None if name == "nil" else self.make(name) for name in names]

    def make(self, name: str):
        word, _, state = name.partition(":")

        def apply(next_: OutputDirStatus, prev: OutputDirStatus | None) -> None:
            self.previous_seen.append(prev is not None)
            match word:
                case "increment_attempts":
                    next_.attempts += 1
                case "reset_attempts":
                    next_.attempts = 0
                case "clear_title":
                    next_.title = ""
                case "copy_output_dir" if prev is not None:
                    next_.output_dir = prev.output_dir
                case "set_state":
                    next_.state = state
                case "set_prev_state" if prev is not None:
                    prev.state = state

        return apply


@pytest.mark.parametrize(("given_", "expected"), cases("recorder.json"))
def test_recording_agrees_with_the_go_reference(given_, expected, caplog):
    caplog.set_level(logging.DEBUG)
    name = f"jobs/{given_['job_id']}/status.json"
    storage = DictStorage()
    clock = Clock()
    store = StatusStore(storage, OutputDirStatus, clock=clock)
    if (previous := given_["previous"]) is not None:
        if "record" in previous:
            clock.now = readings.time(previous["record"]["updated_at"])
            store.save(given_["job_id"], readings.status(previous["record"]))
        else:
            storage._put(name, base64.b64decode(previous["document_b64"]))
    recorder = Recorder(store if given_["store"] else None)
    assert recorder.enabled is given_["store"]

    for step, wanted in zip(given_["steps"], expected["steps"], strict=True):
        clock.now = readings.time(step["clock"])
        storage.read_fails, storage.write_fails = step.get("read_fails", False), step.get("write_fails", False)
        storage.calls.clear()
        caplog.clear()
        before = dict(storage.files)
        job_id = text(step, "job_id") if {"job_id", "job_id_b64"} & set(step) else given_["job_id"]
        callbacks = Callbacks(step.get("apply", []))
        call = getattr(recorder, step["call"])
        arguments = (
            (job_id,)
            if step["call"] == "already_succeeded"
            else (
                job_id,
                readings.status(step["next"]),
                *callbacks.functions,
            )
        )
        if wanted.get("error"):
            with pytest.raises(ERRORS[wanted["error"]]):
                call(*arguments)
        else:
            assert call(*arguments) is wanted.get("done")

        assert storage.calls["read"] == wanted["reads"]
        assert callbacks.previous_seen == wanted.get("previous_seen", [])
        assert [record.levelno for record in caplog.records] == [LOGS[log][0] for log in wanted["log"]]
        for record, log in zip(caplog.records, wanted["log"], strict=True):
            assert LOGS[log][1] in record.message
        assert (storage.files != before) is wanted["saved"]
        if wanted["saved"]:
            assert storage.files[name].data.decode() == to_microseconds(wanted["bytes"])

    last = storage.files.get(name)
    if expected["final_document"] is None:
        assert last is None
    else:
        assert last.data.decode() == to_microseconds(expected["final_document"])


def to_microseconds(document: str) -> str:
    """Python keeps six digits of a second, Go nine."""
    return re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", document)


# --- beyond the reference ---------------------------------------------------------------------------------------


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def storage():
    return DictStorage()


@pytest.fixture
def store(storage, clock):
    return StatusStore(storage, JobStatus, clock=clock)


def running(**fields) -> JobStatus:
    return JobStatus(state=State.RUNNING, **fields)


def add_attempt(next_, prev):
    next_.attempts += 1


def test_begin_and_record_take_one_read_and_one_write_each(storage, store):
    recorder = Recorder(store)
    recorder.record("a", JobStatus(state=State.QUEUED))
    assert storage.calls == {"read": 1, "write": 1}
    recorder.begin("a", running(), add_attempt)
    assert storage.calls == {"read": 2, "write": 2}


QUEUED = JobStatus(state=State.QUEUED, title="a report", attempts=1)


def test_a_claim_reads_nothing_where_the_record_is_known(storage, store):
    known = Saved(QUEUED, store.save("a", QUEUED))
    storage.calls.clear()
    claim = Recorder(store, lease=60).claim("a", JobStatus(state=State.RUNNING), known=known)
    assert storage.calls == {"write": 1}
    assert (claim.saved.status.title, store.get("a").title) == ("a report", "a report")


@pytest.mark.parametrize("is_known", [True, False], ids=["in another version", "as not written yet"])
def test_a_claim_goes_by_the_record_that_is_there_where_another_was_known(store, is_known):
    known = Saved(QUEUED, store.save("a", QUEUED) if is_known else ABSENT)
    store.save("a", JobStatus(state=State.SUCCEEDED))
    assert Recorder(store).claim("a", JobStatus(state=State.RUNNING), known=known) is None
    assert store.get("a").state == State.SUCCEEDED


def test_what_is_known_and_was_never_written_is_carried_over_into_the_first_record(storage, store):
    Recorder(store).claim("a", JobStatus(state=State.RUNNING), known=Saved(QUEUED, ABSENT))
    assert (storage.calls["read"], storage.calls["write"]) == (0, 1)
    assert (store.get("a").title, store.get("a").attempts) == ("a report", 1)


def test_neither_the_status_handed_in_nor_its_lists_are_changed(store):
    status = running(outputs=["a.svg"])
    Recorder(store).begin("a", status, add_attempt, lambda next_, prev: next_.outputs.append("b.svg"))
    assert status == running(outputs=["a.svg"])
    assert store.get("a").outputs == ["a.svg", "b.svg"]


class Racing(DictStorage):
    """Lets somebody else write between our read and our write."""

    def __init__(self) -> None:
        super().__init__()
        self.in_between = []

    def read(self, name):
        try:
            return super().read(name)
        finally:
            if self.in_between:
                self.in_between.pop(0)()


def test_two_workers_that_race_both_count_their_attempt(clock):
    storage = Racing()
    store = StatusStore(storage, JobStatus, clock=clock)
    other = Recorder(store)
    storage.in_between = [lambda: other.begin("a", running(), add_attempt)]

    assert Recorder(store).begin("a", running(), add_attempt) is False
    assert store.get("a").attempts == 2


def test_a_success_that_slips_in_between_is_not_rolled_back(clock, caplog):
    storage = Racing()
    store = StatusStore(storage, JobStatus, clock=clock)
    other = Recorder(store)
    other.begin("a", running(), add_attempt)
    storage.in_between = [lambda: other.record("a", JobStatus(state=State.SUCCEEDED))]

    Recorder(store).record("a", JobStatus(state=State.FAILED, error="too late"))
    assert store.get("a").state == State.SUCCEEDED

    storage.in_between = [lambda: other.record("b", JobStatus(state=State.SUCCEEDED))]
    assert Recorder(store).begin("b", running()) is True  # seen on the second look: do nothing


def test_a_write_whose_answer_was_lost_counts_as_done(storage, store, caplog):
    storage.answer_lost = True
    assert Recorder(store).begin("a", running(), add_attempt) is False
    assert store.get("a").attempts == 1
    assert storage.calls["write"] == 1
    assert not caplog.records


def test_the_same_bytes_written_by_another_are_not_taken_for_ours(clock):
    # Two workers, one clock, one content: with a storage that is certain of the conflict both must count.
    storage = Racing()
    store = StatusStore(storage, JobStatus, clock=clock)
    store.save("a", running())
    storage.in_between = [lambda: Recorder(store).begin("a", running(), add_attempt)]
    Recorder(store).begin("a", running(), add_attempt)
    assert store.get("a").attempts == 2


def test_endless_conflicts_are_given_up_and_logged(store, storage, caplog, monkeypatch):
    monkeypatch.setattr("django_jobkit.jobs.swap.time.sleep", lambda seconds: None)

    def conflict(*args, **kwargs):
        raise VersionConflict(certain=True)

    storage.write = conflict
    Recorder(store).record("a", running())
    assert "could not be recorded" in caplog.text
    assert caplog.records[-1].job_id == "a"


def test_threads_that_record_over_one_job_lose_no_attempt(store):
    recorder = Recorder(store)
    threads = [
        threading.Thread(target=lambda: [recorder.begin("a", running(), add_attempt) for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("a").attempts == 200


class Minimal:
    """Any object with get and save will do."""

    def __init__(self) -> None:
        self.saved: dict[str, Status] = {}

    def get(self, job_id):
        if job_id not in self.saved:
            raise StatusNotFound(job_id)
        return self.saved[job_id]

    def save(self, job_id, status):
        self.saved[job_id] = status


def test_a_store_with_nothing_but_get_and_save_will_do():
    store = Minimal()
    recorder = Recorder(store)
    recorder.record("a", Status(state=State.QUEUED, title="t"))
    assert recorder.begin("a", Status(state=State.RUNNING), add_attempt) is False
    recorder.record("a", Status(state=State.SUCCEEDED))
    assert recorder.begin("a", Status(state=State.RUNNING)) is True
    assert (store.saved["a"].attempts, store.saved["a"].title) == (1, "t")


def test_an_error_in_a_callback_is_the_callers_and_nothing_is_saved(store, storage):
    def broken(next_, prev):
        raise RuntimeError("in apply")

    with pytest.raises(RuntimeError, match="in apply"):
        Recorder(store).record("a", running(), broken)
    assert storage.files == {}


def test_what_could_not_be_recorded_is_logged_with_the_job_id_and_the_given_logger(store, caplog):
    Recorder(store, logger=logging.getLogger("mine")).record("a", running(title="\ud800"))
    assert [(record.name, record.job_id) for record in caplog.records] == [("mine", "a")]


def test_an_id_with_control_characters_is_logged_escaped(store, caplog):
    Recorder(store).record("a\nERROR forged", running())
    assert "\nERROR" not in caplog.text.replace("\nWARNING", "").replace("\\n", "")


# --- leases -----------------------------------------------------------------------------------------------------


def test_while_a_lease_is_alive_another_worker_is_told_that_the_job_is_busy(store, storage, clock):
    assert Recorder(store, lease=60).begin("a", running(), add_attempt) is False
    before = dict(storage.files)

    clock.now += timedelta(seconds=59)
    with pytest.raises(JobBusy):
        Recorder(store, lease=60).begin("a", running(), add_attempt)
    assert storage.files == before

    clock.now += timedelta(seconds=1)
    assert Recorder(store, lease=60).begin("a", running(), add_attempt) is False
    assert store.get("a").attempts == 2


def test_even_the_same_recorder_is_kept_out_while_its_lease_lives(store):
    recorder = Recorder(store, lease=60)
    recorder.begin("a", running())
    with pytest.raises(JobBusy):
        recorder.begin("a", running())


def test_a_worker_whose_lease_was_taken_over_can_no_longer_record(store, clock, caplog):
    old, new = Recorder(store, lease=60), Recorder(store, lease=60)
    old.begin("a", running())
    clock.now += timedelta(seconds=61)
    new.begin("a", running())

    old.record("a", JobStatus(state=State.FAILED))
    old.record("a", running(progress_current=5))
    assert store.get("a") == running(
        job_id="a", updated_at=clock.now, lease_id=new._held["a"], lease_expires_at=clock.now + timedelta(seconds=60)
    )
    assert caplog.text.count("another worker has taken the job over") == 2

    new.record("a", JobStatus(state=State.FAILED, error="mine"))
    old.record("a", JobStatus(state=State.SUCCEEDED))
    assert store.get("a").state == State.FAILED


def test_a_worker_whose_lease_ran_out_but_was_not_taken_may_still_record(store, clock):
    recorder = Recorder(store, lease=60)
    recorder.begin("a", running())
    clock.now += timedelta(seconds=600)
    recorder.record("a", JobStatus(state=State.SUCCEEDED))
    assert store.get("a").state == State.SUCCEEDED


def test_the_end_frees_the_lease(store):
    Recorder(store, lease=60).begin("a", running())
    recorder = Recorder(store, lease=60)
    recorder.begin("b", running())
    recorder.record("b", JobStatus(state=State.FAILED))
    assert store.get("b").lease_id == ""
    assert recorder._held == {}
    assert Recorder(store, lease=60).begin("b", running()) is False


def test_recording_progress_keeps_and_prolongs_the_lease(store, clock):
    recorder = Recorder(store, lease=60)
    recorder.begin("a", running())
    clock.now += timedelta(seconds=30)
    recorder.record("a", running(progress_current=1))
    assert store.get("a").lease_expires_at == clock.now + timedelta(seconds=60)


def test_one_who_did_not_begin_the_job_records_only_a_new_request_over_a_live_lease(store):
    Recorder(store, lease=60).begin("a", running())
    bystander = Recorder(store, lease=60)
    bystander.record("a", JobStatus(state=State.FAILED))
    assert store.get("a").state == State.RUNNING
    bystander.record("a", JobStatus(state=State.QUEUED))
    assert store.get("a").state == State.QUEUED


def test_a_lease_is_renewed_until_it_is_lost(store, clock):
    recorder = Recorder(store, lease=60)
    assert recorder.renew("a") is False
    recorder.begin("a", running(title="t"))
    clock.now += timedelta(seconds=50)
    assert recorder.renew("a") is True
    assert store.get("a").lease_expires_at == clock.now + timedelta(seconds=60)
    assert store.get("a").title == "t"

    clock.now += timedelta(seconds=61)
    Recorder(store, lease=60).begin("a", running())
    assert recorder.renew("a") is False


def test_a_job_deleted_while_it_ran_under_a_lease_stays_deleted(store, storage):
    recorder = Recorder(store, lease=60)
    recorder.begin("a", running())
    store.delete("a")
    recorder.record("a", JobStatus(state=State.SUCCEEDED))
    assert recorder.renew("a") is False
    assert storage.files == {}


def test_a_lease_that_cannot_be_written_is_an_error(store, storage):
    storage.write_fails = True
    with pytest.raises(StatusUnavailable):
        Recorder(store, lease=60).begin("a", running())
    storage.write_fails = False
    with pytest.raises(StatusNotEncodable):
        Recorder(store, lease=60).begin("a", running(title="\ud800"))


def test_with_an_unreadable_record_the_holder_of_a_lease_records_its_success_only(store, storage, caplog):
    recorder = Recorder(store, lease=60)
    recorder.begin("a", running())
    storage.read_fails = True
    recorder.record("a", JobStatus(state=State.FAILED))
    recorder.record("a", JobStatus(state=State.SUCCEEDED))
    storage.read_fails = False
    assert store.get("a").state == State.SUCCEEDED


def test_a_lease_needs_a_status_class_that_can_hold_it(storage):
    with pytest.raises(TypeError, match="OutputDirStatus inherit from JobStatus"):
        Recorder(StatusStore(storage, OutputDirStatus), lease=60).begin("a", OutputDirStatus(state=State.RUNNING))


@pytest.mark.parametrize("lease", [0, -1])
def test_a_lease_is_positive(store, lease):
    with pytest.raises(ValueError, match="positive"):
        Recorder(store, lease=lease)
