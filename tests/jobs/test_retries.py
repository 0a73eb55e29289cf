"""An ended job is retried once for each time that somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from django_jobkit.exceptions import StatusNotFound, StatusUnavailable
from django_jobkit.jobs import JobStatus, State, Status, StatusStore, codec, retries
from django_jobkit.jobs.swap import Saved
from tests.jobs.fakes import DictStorage

NOW = datetime(2026, 8, 31, 10, tzinfo=UTC)
LATER = NOW + timedelta(seconds=retries.CLAIM_SECONDS + 1)


@dataclass(kw_only=True)
class Plain(Status):
    """A class without a field for what the job was retried as."""


@pytest.fixture(params=[JobStatus, Plain])
def store(request) -> StatusStore:
    store = StatusStore(DictStorage(), request.param, clock=lambda: NOW)
    store.save("a", request.param(state=State.FAILED, queued_at=NOW, error="disk full"))
    return store


def seen(store) -> str:
    return retries.seen_of(store.get("a"))


def claim(store, seen_before: str | None = None, now: datetime = NOW):
    return retries.claim(store, "a", seen_before, now)


def test_a_claim_keeps_all_others_away_until_it_ends(store):
    before = seen(store)
    held = claim(store, before)
    for brought in (before, seen(store), None):
        with pytest.raises(retries.BeingRetried):
            claim(store, brought)
    retries.release(store, "a", held)
    assert codec.encode(store.get("a")) == codec.encode(held.status)
    claim(store, before)


def test_the_claims_holder_gets_the_record_as_it_was(store):
    before = codec.encode(store.get("a"))
    assert codec.encode(claim(store).status) == before


def test_what_has_been_retried_is_not_retried_for_who_saw_it_before(store):
    before = seen(store)
    retries.settle(store, "a", claim(store, before), "b")
    assert retries.retried_as(store.get("a")) == "b"
    for brought in (before, None):  # None: nobody knows what they saw
        with pytest.raises(retries.AlreadyRetried) as refused:
            claim(store, brought)
        assert refused.value.retried_as == "b"


def test_whoever_has_seen_that_may_retry_it_again(store):
    retries.settle(store, "a", claim(store), "b")
    again = seen(store)
    retries.settle(store, "a", claim(store, again), "c")
    assert retries.retried_as(store.get("a")) == "c"
    with pytest.raises(retries.AlreadyRetried):
        claim(store, again)


def test_a_job_that_was_queued_anew_is_another_one(store):
    before = seen(store)
    held = claim(store, before)
    store.save("a", store.status_class(state=State.FAILED, queued_at=NOW + timedelta(seconds=1)))
    retries.settle(store, "a", held, "a")
    assert retries.NOTES.isdisjoint(store.get("a").extra)
    with pytest.raises(retries.AlreadyRetried) as refused:
        claim(store, before)
    assert refused.value.retried_as == ""
    claim(store, seen(store))


def test_so_is_one_that_a_worker_is_still_to_run_again(store):
    """The function handed the ID over, and recorded nothing: twice, since two of them have to differ."""
    for _ in range(2):
        before = seen(store)
        retries.settle(store, "a", claim(store, before), "a")
        with pytest.raises(retries.AlreadyRetried) as refused:
            claim(store, before)
        assert refused.value.retried_as == ""
        retries.release(store, "a", claim(store, seen(store)))  # a retry that fails makes nobody forget that
        with pytest.raises(retries.AlreadyRetried):
            claim(store, before)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, "paused"])
def test_only_what_has_ended_is_retried(store, state):
    store.save("a", store.status_class(state=state, queued_at=NOW))
    for brought in (seen(store), None):
        with pytest.raises(retries.NotEnded):
            claim(store, brought)


def test_the_claim_of_a_dead_process_ends(store):
    held = claim(store)
    claim(store, seen(store), LATER)
    retries.release(store, "a", held)  # it was only slow: what it doesn't hold any more is not its to end
    with pytest.raises(retries.BeingRetried):
        claim(store, None, LATER)


@pytest.mark.parametrize(
    "found",
    [
        {"id": "x", "until": "9999-01-01T00:00:00Z"},  # by a clock that was wrong
        {"id": "x", "until": "soon"},
        {"id": "x", "until": 5},
        {"until": None},
        {"id": ["x"]},
        "x",
        [],
        None,
    ],
)
def test_a_member_that_no_claim_of_ours_has_written_is_none(store, found):
    status = store.get("a")
    status.extra["retry_claim"] = found
    store.save("a", status)
    claim(store, seen(store))


def test_a_job_that_is_gone_can_neither_be_claimed_nor_noted_on(store):
    held = claim(store)
    store.delete("a")
    with pytest.raises(StatusNotFound):
        claim(store)
    retries.settle(store, "a", held, "b")
    retries.release(store, "a", held)
    assert not store.storage.files


def test_without_the_storage_nothing_is_claimed(store):
    store.storage.write_fails = True
    with pytest.raises(StatusUnavailable):
        claim(store)
    store.storage.read_fails = True
    with pytest.raises(StatusUnavailable):
        claim(store)


def test_it_costs_two_writes_and_no_read_where_the_record_is_known(store):
    known = Saved(*store.read("a"))
    store.storage.calls.clear()
    held = retries.claim(store, "a", None, NOW, known=known)
    retries.settle(store, "a", held, "b")
    assert store.storage.calls == {"write": 2}


def test_a_record_that_has_changed_since_it_was_read_is_looked_at_again(store):
    known = Saved(*store.read("a"))
    retries.settle(store, "a", claim(store), "b")
    with pytest.raises(retries.AlreadyRetried):
        retries.claim(store, "a", retries.seen_of(known.status), NOW, known=known)


def test_a_redelivered_task_takes_the_notes_along():
    """Else a second click, which comes after it, would find a job that was never retried."""
    prev = JobStatus(state=State.FAILED, retried_as="b")
    prev.extra["retry_claim"] = {"id": "x"}
    run = JobStatus(state=State.RUNNING)
    run.carry_over(prev)
    assert (run.retried_as, run.extra) == ("b", {"retry_claim": {"id": "x"}})
    anew = JobStatus(state=State.QUEUED)
    anew.carry_over(prev)
    assert (anew.retried_as, anew.extra) == ("b", {})


def test_the_notes_take_no_byte_of_a_job_that_was_never_retried():
    assert b"retr" not in codec.encode(JobStatus(state=State.FAILED))
