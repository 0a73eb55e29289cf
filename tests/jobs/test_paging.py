from __future__ import annotations

import logging
import random
import threading
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobkit.exceptions import PageLoadTimeout
from django_jobkit.jobs import ids, paging
from django_jobkit.jobs.paging import PageMeta, adjust_item_count, load_page, select_ids
from tests.vectors import cases

NAMES = {"from": "start_index", "to": "end_index"}
SORT_KEYS = {None: None, "jobid": ids.sort_key}


def meta_of(document: dict) -> PageMeta:
    return PageMeta(**{NAMES.get(name, name): value for name, value in document.items()})


@pytest.mark.parametrize(("given_", "expected"), cases("select_ids.json"))
def test_selecting_agrees_with_the_go_reference(given_, expected):
    before = list(given_["ids"])

    found, meta = select_ids(given_["ids"], given_["page"], given_["per_page"], SORT_KEYS[given_["sort_key"]])

    assert given_["ids"] == before
    if "crash" in expected:
        # 64-bit arithmetic overflows in the reference. Python's doesn't: the last page, as for any page past the end.
        assert found == sorted(before, reverse=True)
        assert (meta.total, meta.total_pages) == (len(before), 1 if before else 0)
        return
    assert found == expected["ids"]
    wanted = expected["meta"]
    if wanted["next_page"] == -(2**63):
        wanted = wanted | {"next_page": 2**63}  # wrapped around in the reference; here it is the next number
    assert meta.as_dict() == wanted
    assert meta == meta_of(wanted)


@pytest.mark.parametrize(("given_", "expected"), cases("adjust_item_count.json"))
def test_adjusting_agrees_with_the_go_reference(given_, expected):
    assert adjust_item_count(meta_of(given_["meta"]), given_["item_count"]).as_dict() == expected["meta"]


def test_as_dict_has_the_ten_members_in_the_order_of_the_fields():
    _, meta = select_ids(["a"], 1, 10, None)
    assert list(meta.as_dict()) == [*[field.name for field in fields(PageMeta)][:8], "from", "to"]


@given(st.data())
def test_deep_and_shallow_pages_together_are_one_sorted_list(data):
    job_ids = data.draw(st.lists(st.sampled_from(["a", "b-20260101-000000", "c20260101-000000", "d-20260102-000000"])))
    per_page = data.draw(st.integers(1, 4))
    for sort_key in (None, ids.sort_key):
        everything, _ = select_ids(job_ids, 1, 0, sort_key)
        pages = [
            select_ids(job_ids, page, per_page, sort_key)[0] for page in range(1, -(-len(job_ids) // per_page) + 1)
        ]
        assert [job_id for page in pages for job_id in page] == everything
        assert everything == sorted(job_ids, key=lambda job_id: (sort_key(job_id) if sort_key else "", job_id))[::-1]


@pytest.mark.parametrize("page", [1, 50, 51, 100])
def test_picking_and_sorting_give_the_same_page(page):
    job_ids = [f"{prefix}-2026010{n % 9 + 1}-000000-{n:05}" for n in range(1000) for prefix in ("a", "b")]
    random.Random(page).shuffle(job_ids)
    wanted = sorted(job_ids, key=lambda job_id: (ids.sort_key(job_id), job_id), reverse=True)

    assert select_ids(job_ids, page, 20, ids.sort_key)[0] == wanted[(page - 1) * 20 : page * 20]
    assert select_ids(job_ids, page, 20, None)[0] == sorted(job_ids, reverse=True)[(page - 1) * 20 : page * 20]


@pytest.mark.parametrize("page", [1, 30, 51, 60])
@pytest.mark.parametrize("sort_key", [None, ids.sort_key])
def test_oldest_first_is_exactly_the_opposite_order(page, sort_key):
    job_ids = [f"{prefix}-2026010{n % 9 + 1}-000000-{n:05}" for n in range(600) for prefix in ("a", "b")]
    newest, _ = select_ids(job_ids, 1, 0, sort_key)
    found, meta = select_ids(job_ids, page, 20, sort_key, newest_first=False)
    assert found == newest[::-1][(page - 1) * 20 : page * 20]
    assert meta == select_ids(job_ids, page, 20, sort_key)[1]


@pytest.mark.parametrize("page", [1, 80])
def test_each_key_is_computed_once(page):
    job_ids = [f"job-{n}" for n in range(1600)]
    asked: list[str] = []

    select_ids(job_ids, page, 20, lambda job_id: asked.append(job_id) or job_id)

    assert sorted(asked) == sorted(job_ids)


def test_any_iterable_of_ids_will_do():
    assert select_ids(iter(["a", "b"]), 1, 1, None)[0] == ["b"]


# --- load_page --------------------------------------------------------------------------------------------------


def test_rows_keep_the_order_of_the_ids_whichever_is_read_first():
    loaded_first = threading.Event()

    def load(job_id: str) -> str:
        if job_id == "c":
            assert loaded_first.wait(10)
        elif job_id == "a":
            loaded_first.set()
        return job_id.upper()

    items, meta = load_page(["a", "b", "c"], 1, 3, None, load)
    assert items == ["C", "B", "A"]
    assert (meta.start_index, meta.end_index) == (1, 3)


def test_a_row_that_fails_is_left_out_with_a_warning_and_the_numbers_are_adjusted(caplog):
    def load(job_id: str) -> str:
        if job_id == "b":
            raise OSError("broken")
        return job_id

    with caplog.at_level(logging.WARNING):
        items, meta = load_page(["a", "b", "c"], 1, 3, None, load)

    assert items == ["c", "a"]
    assert (meta.start_index, meta.end_index, meta.total) == (1, 2, 3)
    assert [record.job_id for record in caplog.records] == ["b"]


def test_the_warning_goes_to_the_logger_that_was_given(caplog):
    def load(job_id: str) -> str:
        raise OSError("broken")

    load_page(["a"], 1, 1, None, load, logger=logging.getLogger("elsewhere"))
    assert [record.name for record in caplog.records] == ["elsewhere"]


def test_rows_that_do_not_come_in_time_are_an_error_and_never_an_empty_page():
    released = threading.Event()
    begun: list[str] = []

    def load(job_id: str) -> str:
        begun.append(job_id)
        released.wait(30)
        return job_id

    try:
        with pytest.raises(PageLoadTimeout, match=r"5 of the page's 5 rows were not read in 0\.05 s"):
            load_page(list("abcde"), 1, 5, None, load, concurrency=2, timeout=0.05)
        assert sorted(begun) == ["d", "e"]  # none is begun after the time is up
    finally:
        released.set()


@pytest.mark.parametrize(("concurrency", "most"), [(3, 3), (1, 1), (0, 10), (-1, 10)])
def test_at_most_so_many_rows_are_read_at_a_time(concurrency, most):
    at_once = 0
    highest = 0
    lock = threading.Lock()
    full = threading.Barrier(most)

    def load(job_id: str) -> str:
        nonlocal at_once, highest
        with lock:
            at_once += 1
            highest = max(highest, at_once)
        full.wait(10)  # met only if so many run together
        with lock:
            at_once -= 1
        return job_id

    load_page([f"{n:02}" for n in range(most * 2)], 1, most * 2, None, load, concurrency=concurrency)
    assert highest == most


def test_a_page_without_ids_loads_nothing():
    items, meta = load_page([], 3, 20, None, lambda job_id: pytest.fail("nothing to load"))
    assert items == []
    assert meta.as_dict()["from"] == 0


def test_an_interruption_is_not_taken_for_a_broken_row():
    def load(job_id: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_page(["a"], 1, 1, None, load)
    assert paging.DEFAULT_CONCURRENCY == 10
