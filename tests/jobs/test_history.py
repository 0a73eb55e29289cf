from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.core.cache.backends.locmem import LocMemCache

from django_jobkit.exceptions import InvalidJobID, PageLoadTimeout, StorageUnavailable
from django_jobkit.jobs.caching import IDListCache, TTLCache
from django_jobkit.jobs.history import HistoryRow, JobHistory
from django_jobkit.jobs.status import JobStatus, State, json_field
from django_jobkit.jobs.store import StatusStore
from tests.jobs.fakes import DictStorage

NEW = "job-20260103-000000-c"
MIDDLE = "zine-20260102-000000-b"
OLD = "atlas-20260101-000000-a"


@pytest.fixture
def storage():
    return DictStorage()


@pytest.fixture
def store(storage):
    store = StatusStore(storage)
    for job_id in (MIDDLE, OLD, NEW):
        store.save(job_id, JobStatus(state=State.SUCCEEDED, title=job_id[:3]))
    storage.calls.clear()
    return store


@pytest.fixture
def cache(request):
    cache = LocMemCache(request.node.nodeid, {})
    cache.clear()
    return cache


@pytest.fixture
def history(store, cache):
    return JobHistory(store, "jobs", ids_cache=IDListCache(cache), metadata_cache=TTLCache(cache))


def ids_of(rows: list[HistoryRow]) -> list[str]:
    return [row.job_id for row in rows]


def test_rows_are_the_statuses_newest_first_whatever_their_prefix(history):
    items, meta = history.page(1, 2)
    assert ids_of(items) == [NEW, MIDDLE]
    assert [row.status.title for row in items] == ["job", "zin"]
    assert (meta.total, meta.start_index, meta.end_index, meta.has_next) == (3, 1, 2, True)


def test_a_cold_page_is_one_listing_and_a_read_a_row_and_a_warm_one_none(history, storage):
    first = history.page(1, 20)
    assert storage.calls == {"list_dirs": 1, "read": 3}
    assert history.page(1, 20) == first
    assert storage.calls == {"list_dirs": 1, "read": 3}


def test_a_cold_page_of_20_among_1000_jobs_reads_at_most_10_files_at_a_time(cache):
    class Counting(DictStorage):
        at_once = highest = 0
        lock = threading.Lock()

        def read(self, name):
            with self.lock:
                self.at_once += 1
                self.highest = max(self.highest, self.at_once)
            try:
                return super().read(name)
            finally:
                with self.lock:
                    self.at_once -= 1

    storage = Counting({f"jobs/job-{n:04}/status.json": b'{"state":"succeeded"}' for n in range(1000)})
    history = JobHistory(StatusStore(storage), "jobs", ids_cache=IDListCache(cache), metadata_cache=TTLCache(cache))
    assert len(history.page(1, 20).items) == 20
    assert storage.calls == {"list_dirs": 1, "read": 20}
    assert storage.highest <= 10


def test_a_row_of_an_unfinished_job_is_kept_for_seconds_only(history, store, storage, cache):
    ttls = {}

    class Watching(LocMemCache):
        def set_many(self, data, timeout=None, version=None):
            ttls.update(dict.fromkeys((key.rpartition(":")[2] for key in data), timeout))
            return super().set_many(data, timeout=timeout, version=version)

    store.save(NEW, JobStatus(state=State.RUNNING))
    store.save(OLD, JobStatus(state=State.FAILED))  # an engine may retry it
    history.metadata_cache = TTLCache(Watching("watching", {}), 600)
    history.page(1, 20)
    assert ttls == {NEW: 5.0, OLD: 5.0, MIDDLE: 600}


@pytest.mark.parametrize(
    ("break_", "problem"),
    [
        (lambda storage, name: storage.files.pop(name), "missing"),
        (lambda storage, name: storage._put(name, b"{ broken"), "corrupt"),
    ],
)
def test_a_job_whose_status_cannot_be_read_stays_as_a_row_that_says_why(history, storage, break_, problem):
    storage._put(f"jobs/{MIDDLE}/chart.svg", b"")
    break_(storage, f"jobs/{MIDDLE}/status.json")
    items, meta = history.page(1, 20)
    assert [(row.job_id, row.problem) for row in items] == [(NEW, ""), (MIDDLE, problem), (OLD, "")]
    assert items[1].status is None
    assert meta.end_index == 3


def test_rows_say_so_when_the_storage_fails_and_are_not_kept(history, storage, caplog):
    storage.read_fails = True
    with caplog.at_level(logging.WARNING):
        assert [row.problem for row in history.page(1, 20).items] == ["unreadable"] * 3
    assert {record.job_id for record in caplog.records} == {NEW, MIDDLE, OLD}
    storage.read_fails = False
    assert [row.problem for row in history.page(1, 20).items] == [""] * 3


def test_a_directory_whose_name_is_no_id_is_shown_as_such(history, storage):
    storage._put("jobs/lost+found/x", b"")
    assert [(row.job_id, row.problem) for row in history.page(1, 20).items][-1] == ("lost+found", "invalid")


def test_an_outage_of_the_listing_is_an_error_and_never_an_empty_page(history, storage):
    storage.list_fails = True
    with pytest.raises(StorageUnavailable):
        history.page(1, 20)


def test_rows_that_do_not_come_in_time_are_an_error(history, storage):
    released = threading.Event()
    storage.read = lambda name: released.wait(30)
    history.timeout = 0.05
    try:
        with pytest.raises(PageLoadTimeout):
            history.page(1, 20)
    finally:
        released.set()


def test_an_empty_history_is_an_empty_page():
    items, meta = JobHistory(StatusStore(DictStorage()), "jobs").page(1, 20)
    assert (items, meta.total) == ([], 0)


def test_without_caches_every_page_is_read_from_the_storage(store, storage):
    history = JobHistory(store, "jobs")
    history.page(1, 20)
    history.page(1, 20)
    assert storage.calls == {"list_dirs": 2, "read": 6}


def test_latest_gives_the_newest_rows(history):
    assert ids_of(history.latest(2)) == [NEW, MIDDLE]
    assert history.latest(0) == history.latest(-1) == []


def test_deleting_removes_the_whole_directory_and_the_job_from_both_caches(history, storage):
    storage._put(f"jobs/{NEW}/out/chart.svg", b"")
    history.page(1, 20)
    assert history.delete("x/" + NEW) == 2
    assert ids_of(history.page(1, 20).items) == [MIDDLE, OLD]
    assert history.metadata_cache.get(NEW) is None
    assert not [name for name in storage.files if NEW in name]
    assert history.delete(NEW) == 0


def test_a_delete_that_broke_off_is_an_error_and_leaves_no_stale_row(history, storage):
    history.page(1, 20)

    def break_off(prefix):
        del storage.files[f"jobs/{NEW}/status.json"]
        storage._put(f"jobs/{NEW}/left.txt", b"")
        raise StorageUnavailable("no network")

    storage.delete_tree = break_off
    with pytest.raises(StorageUnavailable):
        history.delete(NEW)
    assert history.page(1, 1).items == [HistoryRow(NEW, None, "missing")]


@pytest.mark.parametrize("job_id", ["", "..", "a b", "../.."])
def test_deleting_an_invalid_id_deletes_nothing(history, storage, job_id):
    with pytest.raises(InvalidJobID):
        history.delete(job_id)
    assert storage.calls == {}


def test_keep_leaves_jobs_out_of_the_whole_history(store):
    history = JobHistory(store, "jobs", keep=lambda job_id: not job_id.startswith("zine"))
    assert history.page(1, 20).meta.total == 2


def test_a_cached_row_of_another_version_of_the_class_is_read_again_or_understood(history, store, storage, cache):
    @dataclass(kw_only=True)
    class Newer(JobStatus):
        pages: int = json_field(0)

    history.page(1, 20)
    cache.set(history.metadata_cache._key(OLD), "{ broken")
    cache.set(history.metadata_cache._key(MIDDLE), 7)
    newer = JobHistory(
        StatusStore(storage, Newer), "jobs", ids_cache=history.ids_cache, metadata_cache=history.metadata_cache
    )
    assert [type(row.status) for row in newer.page(1, 20).items] == [Newer] * 3


def test_created_at_is_what_the_id_tells():
    assert HistoryRow(NEW, None).created_at.isoformat() == "2026-01-03T00:00:00+00:00"
    assert HistoryRow("legacy", None).created_at is None


# --- rows of the site's own -------------------------------------------------------------------------------------


def test_a_site_can_make_rows_of_a_file_of_its_own_and_leave_some_out(store, storage, cache):
    for job_id, pages in ((NEW, 3), (OLD, 5)):
        storage._put(f"jobs/{job_id}/recipe.json", json.dumps({"pages": pages}).encode())

    def load(job_id):
        try:
            return json.loads(storage.read(f"jobs/{job_id}/recipe.json").data)
        except FileNotFoundError:
            return None

    history = JobHistory(store, "jobs", ids_cache=IDListCache(cache), metadata_cache=TTLCache(cache), load=load)
    items, meta = history.page(1, 20)
    assert items == [{"pages": 3}, {"pages": 5}]
    assert (meta.total, meta.start_index, meta.end_index) == (3, 1, 2)
    storage.calls.clear()
    assert history.page(1, 20) == (items, meta)
    assert storage.calls == {}  # even the one that was left out


def test_a_row_that_fails_to_load_is_left_out_with_a_warning(store, caplog):
    def load(job_id):
        if job_id == MIDDLE:
            raise KeyError("pages")
        return job_id

    items, meta = JobHistory(store, "jobs", load=load).page(1, 20)
    assert items == [NEW, OLD]
    assert meta.end_index == 2
    assert [record.job_id for record in caplog.records] == [MIDDLE]


def test_a_falsy_row_is_a_row(store):
    assert JobHistory(store, "jobs", load=lambda job_id: 0).page(1, 20).items == [0, 0, 0]


# --- filters ----------------------------------------------------------------------------------------------------


@pytest.fixture
def varied(cache):
    storage = DictStorage()
    store = StatusStore(storage)
    for job_id, state, command, title, owner in (
        ("zine-20260101-120000-a", "succeeded", "print", "Summer Zine", "mika"),
        ("zine-20260102-120000-b", "failed", "print", "Winter zine", "rin"),
        ("song-20260103-120000-c", "running", "sing", "海の歌", ""),
        ("song-20260104-120000-d", "succeeded", "sing", "Winter song", "mika"),
        ("legacy", "succeeded", "", "", "mika"),
    ):
        store.save(job_id, JobStatus(state=state, command=command, title=title, owner=owner))
    storage._put("jobs/song-20260105-120000-e/status.json", b"{ broken")
    storage.calls.clear()
    return JobHistory(store, "jobs", ids_cache=IDListCache(cache), metadata_cache=TTLCache(cache))


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "letters"),
    [
        ({}, "edcbay"),
        ({"newest_first": False}, "yabcde"),
        ({"prefix": "zine-"}, "ba"),
        ({"since": day(2)}, "edcb"),
        ({"until": day(2)}, "a"),
        ({"since": day(2), "until": day(4)}, "cb"),
        ({"since": datetime(2026, 1, 2, 12, tzinfo=UTC), "until": datetime(2026, 1, 2, 12, 0, 1, tzinfo=UTC)}, "b"),
        ({"since": day(2).astimezone(timezone(timedelta(hours=-13)))}, "edcb"),
        ({"state": "succeeded"}, "day"),
        ({"state": "succeeded", "newest_first": False}, "yad"),
        ({"command": "sing"}, "dc"),
        ({"text": "ZINE"}, "ba"),  # in a title, or an ID
        ({"text": "winter"}, "db"),
        ({"text": "歌"}, "c"),
        ({"text": "20260105"}, "e"),  # a damaged one is found by its ID
        ({"owner": "mika"}, "day"),
        ({"owner": ""}, "c"),  # not the damaged one: nobody knows whose it is
        ({"owner": "mika", "since": day(2), "state": "succeeded"}, "d"),
        ({"state": "paused"}, ""),
    ],
)
def test_jobs_can_be_asked_for_by_what_their_ids_and_their_files_tell(varied, filters, letters):
    items, meta = varied.page(1, 20, **filters)
    assert "".join(row.job_id[-1] for row in items) == letters
    assert (meta.total, meta.end_index) == (len(letters), len(letters))


def test_what_ids_tell_needs_no_file_of_the_jobs_left_out(varied):
    page = varied.page(1, 20, prefix="zine-", since=day(2))
    assert varied.store.storage.calls["read"] == 1
    assert page.searched is None


def test_what_files_tell_is_looked_for_among_a_bounded_number_of_jobs_and_the_page_says_so(varied):
    page = varied.page(1, 20, state="succeeded")
    assert page.searched == (6, 6)
    assert page.searched.complete
    varied.search_limit = 3
    page = varied.page(1, 20, state="succeeded")
    assert [row.job_id[-1] for row in page.items] == ["d"]
    assert page.searched == (3, 6)
    assert not page.searched.complete
    page = varied.page(1, 20, state="succeeded", newest_first=False)
    assert [row.job_id[-1] for row in page.items] == ["y", "a"]


def test_the_pages_of_a_filter_keep_their_order_and_numbers(varied):
    pages = [varied.page(number, 2, owner="mika") for number in (1, 2, 3)]
    assert [[row.job_id[-1] for row in page.items] for page in pages] == [["d", "a"], ["y"], ["y"]]
    assert [(page.meta.page, page.meta.total, page.meta.start_index) for page in pages] == [
        (1, 3, 1),
        (2, 3, 3),
        (2, 3, 3),
    ]


def test_rows_of_the_sites_own_are_filtered_by_the_members_they_have(varied):
    varied.load = lambda job_id: {"job_id": job_id, "state": "succeeded", "title": "T", "owner": "mika"}
    varied.metadata_cache = TTLCache(None)
    assert varied.page(1, 20, state="succeeded", text="t", owner="mika").meta.total == 6
    varied.load = lambda job_id: job_id
    assert varied.page(1, 20, owner="mika").items == []


def test_an_unknown_filter_is_a_programming_error(varied):
    with pytest.raises(TypeError, match="colour"):
        varied.page(1, 20, colour="red")
