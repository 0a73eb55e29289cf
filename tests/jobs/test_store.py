from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest

from django_jobkit.exceptions import (
    EmptyJobID,
    InvalidJobID,
    StatusCorrupt,
    StatusNotFound,
    StatusUnavailable,
    VersionConflict,
)
from django_jobkit.jobs.files import ABSENT
from django_jobkit.jobs.status import JobStatus, State
from django_jobkit.jobs.store import StatusStore, under_job_dir
from tests.jobs.fakes import Clock, DictStorage


@pytest.fixture
def storage():
    return DictStorage()


@pytest.fixture
def store(storage):
    return StatusStore(storage, clock=Clock())


def test_a_status_is_stored_beside_the_jobs_outputs_stamped_with_id_and_time(storage, store):
    status = JobStatus(state=State.QUEUED, job_id="other", updated_at=datetime(2001, 1, 1, tzinfo=UTC))
    store.save("dir/abc", status)
    assert json.loads(storage.files["jobs/abc/status.json"].data) == {
        "job_id": "abc",
        "state": "queued",
        "updated_at": "2026-08-31T10:20:30Z",
    }
    assert (status.job_id, status.updated_at) == ("other", datetime(2001, 1, 1, tzinfo=UTC))


def test_without_a_clock_of_its_own_the_store_stamps_the_present(storage):
    before = datetime.now(UTC)
    StatusStore(storage).save("a", JobStatus())
    assert before <= StatusStore(storage).get("a").updated_at <= datetime.now(UTC)


def test_a_read_is_one_request_and_so_is_a_write_and_a_delete(storage, store):
    store.save("a", JobStatus())
    store.get("a")
    store.delete("a")
    assert storage.calls == {"write": 1, "read": 1, "delete": 1}


def test_a_job_never_recorded_is_not_found_and_the_cause_is_chained(store):
    with pytest.raises(StatusNotFound, match="No status is recorded for job a") as caught:
        store.get("a")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize("call", ["get", "save", "delete"])
def test_an_outage_is_unavailable_and_never_not_found(storage, store, call):
    storage.read_fails = storage.write_fails = True
    with pytest.raises(StatusUnavailable) as caught:
        getattr(store, call)("a", *([JobStatus()] if call == "save" else []))
    assert caught.value.__cause__ is not None


def test_a_damaged_file_is_corrupt_and_carries_its_version(storage, store):
    version = storage._put("jobs/a/status.json", b"{ broken")
    with pytest.raises(StatusCorrupt, match="job a") as caught:
        store.get("a")
    assert (caught.value.kind, caught.value.version) == ("not_json", version)


def test_a_file_without_an_id_has_it_filled_in_and_another_id_is_kept(storage, store):
    storage._put("jobs/a/status.json", b'{"state":"queued"}')
    storage._put("jobs/b/status.json", b'{"job_id":"x","state":"queued"}')
    assert store.get("jobs/a").job_id == "a"
    assert store.get("b").job_id == "x"


@pytest.mark.parametrize("job_id", ["", "..", "a b", "%2e%2e", "a" * 129, "ａ", "a\x00"])
@pytest.mark.parametrize("call", ["get", "save", "delete"])
def test_an_invalid_id_never_reaches_the_storage(storage, store, call, job_id):
    with pytest.raises(InvalidJobID):
        getattr(store, call)(job_id, *([JobStatus()] if call == "save" else []))
    assert storage.calls == {}


def test_deleting_twice_is_no_error(storage, store):
    store.save("a", JobStatus())
    store.delete("a")
    store.delete("a")
    with pytest.raises(StatusNotFound):
        store.get("a")


def test_compare_and_swap_on_the_version_that_was_read(store):
    first = store.save("a", JobStatus(title="1"), if_version=ABSENT)
    status, version = store.read("a")
    assert version == first
    store.save("a", status, if_version=version)
    with pytest.raises(VersionConflict):
        store.save("a", status, if_version=version)
    with pytest.raises(VersionConflict):
        store.save("a", status, if_version=ABSENT)


def test_a_conflict_that_turns_out_to_be_our_own_write_counts_as_saved(storage, store):
    storage.answer_lost = True
    version = store.save("a", JobStatus(title="1"), if_version=ABSENT)
    assert store.read("a")[1] == version


def test_a_conflict_with_anothers_bytes_or_with_a_deleted_file_stays_one(storage, store):
    def refuse(name, data, *, if_version):
        raise VersionConflict(name)

    storage._put("jobs/a/status.json", b"{}")
    storage.write = refuse
    for job_id in ("a", "b"):
        with pytest.raises(VersionConflict):
            store.save(job_id, JobStatus(), if_version="1")


def test_the_files_can_live_elsewhere(storage):
    store = StatusStore(storage, locate=lambda job_id: f"state/{job_id[:1]}/{job_id}.json")
    store.save("abc", JobStatus())
    assert list(storage.files) == ["state/a/abc.json"]


@pytest.mark.parametrize("prefix", ["jobs", " jobs/ ", "/jobs//"])
def test_slashes_around_the_prefix_do_not_matter(prefix):
    assert under_job_dir(prefix)("a") == "jobs/a/status.json"


def test_an_empty_prefix_is_refused():
    with pytest.raises(ValueError, match="prefix"):
        under_job_dir(" / ")


def test_the_async_methods_do_the_same(store):
    async def life():
        await store.asave("a", JobStatus(title="t"))
        found = await store.aget("a")
        await store.adelete("a")
        return found

    assert asyncio.run(life()).title == "t"
    with pytest.raises(StatusNotFound):
        asyncio.run(store.aget("a"))
    with pytest.raises(EmptyJobID):
        asyncio.run(store.aget(" "))


def test_a_subclass_is_told_what_was_saved_and_deleted(storage):
    told = []

    class Telling(StatusStore):
        def saved(self, job_id, status):
            told.append(("saved", job_id, status.title))

        def deleted(self, job_id):
            told.append(("deleted", job_id))

    store = Telling(storage)
    store.save("x/a", JobStatus(title="t"))
    store.delete("x/a")
    storage.write_fails = True
    with pytest.raises(StatusUnavailable):
        store.save("a", JobStatus())
    assert told == [("saved", "a", "t"), ("deleted", "a")]
