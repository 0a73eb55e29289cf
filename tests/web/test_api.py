"""The JSON that machines read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pytest
from django.test import override_settings
from django.urls import reverse

from django_jobkit.jobs.paging import PageMeta
from tests.web.conftest import JOB_ID, in_a_dict, put


@dataclass
class Recipe:
    job_id: str
    cooked_on: date


def recipe_row(job_id: str):
    return Recipe(job_id, date(2026, 8, 31))


def dict_row(job_id: str):
    return {"job_id": job_id, "at": datetime(2026, 8, 31, tzinfo=UTC), "title": "月"}


def path(name: str, job_id: str = JOB_ID) -> str:
    return reverse(f"jobkit:{name}", args=[] if name == "api-list" else [job_id])


@pytest.mark.parametrize("name", ["status", "api-job"])
class TestOneJob:
    @pytest.mark.parametrize(
        "data",
        [
            b"{}",
            b' {"job_id": "x", "state": "running",\n "big": 1e999, "n": 1.50, "lease_id": "abc"} \n',
            '{"queued_at":"2026-08-31T10:20:30.123456789Z","title":"月 \\u003cb\\u003e"}'.encode(),
        ],
    )
    def test_it_is_the_record_byte_for_byte(self, staff, kit, name, data):
        put(kit, data=data)
        response = staff.get(path(name))
        assert response.content == data
        assert response["Content-Type"] == "application/json"
        assert response["Cache-Control"] == "private, no-store"
        assert response["X-Content-Type-Options"] == "nosniff"

    def test_it_has_a_strong_etag_of_its_own_for_each_content(self, staff, kit, name):
        tags = []
        for data in (b"{}", b"{ }", b"{}"):
            put(kit, data=data)
            tags.append(staff.get(path(name))["ETag"])
        assert tags[0] == tags[2] != tags[1]
        assert all(tag.startswith('"') and tag.endswith('"') for tag in tags)

    @pytest.mark.parametrize("header", ["{tag}", "W/{tag}", '"other", {tag}', "*"])
    def test_an_unchanged_record_is_304(self, staff, job, name, header):
        tag = staff.get(path(name))["ETag"]
        response = staff.get(path(name), headers={"If-None-Match": header.format(tag=tag)})
        assert (response.status_code, response.content) == (304, b"")
        assert response["ETag"] == tag
        assert response["Cache-Control"] == "private, no-store"

    def test_a_changed_record_is_sent(self, staff, kit, name):
        put(kit, data=b"{}")
        tag = staff.get(path(name))["ETag"]
        put(kit, data=b'{"state":"running"}')
        response = staff.get(path(name), headers={"If-None-Match": tag})
        assert (response.status_code, response.json()) == (200, {"state": "running"})

    def test_an_error_is_never_304(self, staff, kit, name):
        put(kit, data=b"{")
        assert staff.get(path(name), headers={"If-None-Match": "*"}).status_code == 500
        assert staff.get(path(name, "nothing"), headers={"If-None-Match": "*"}).status_code == 404

    def test_head_has_the_same_headers(self, staff, job, name):
        get, head = staff.get(path(name)), staff.head(path(name))
        assert (head.status_code, head.content) == (200, b"")
        assert head["ETag"] == get["ETag"]


class TestDeleting:
    def test_a_job_is_deleted_with_all_its_files(self, staff, kit, job):
        kit.storage.write(f"jobs/{JOB_ID}/charts/a.svg", b"<svg/>")
        response = staff.delete(path("api-job"))
        assert (response.status_code, response.content) == (204, b"")
        assert response["Cache-Control"].endswith("no-store")
        assert not kit.storage.files

    def test_a_second_time_it_is_404(self, staff, kit, job):
        assert staff.delete(path("api-job")).status_code == 204
        assert staff.delete(path("api-job")).status_code == 404


class TestHistory:
    def test_items_stand_beside_the_pages_ten_numbers(self, staff, kit):
        for n in range(5):
            put(kit, f"job-2026080{n + 1}-000000-0123456789ab", title=f"Day {n + 1}", attempts=1)
        found = staff.get(path("api-list") + "?page=2&per_page=2").json()
        items = found.pop("items")
        assert [item["title"] for item in items] == ["Day 3", "Day 2"]
        assert found == {
            "page": 2,
            "per_page": 2,
            "total": 5,
            "total_pages": 3,
            "has_prev": True,
            "has_next": True,
            "prev_page": 1,
            "next_page": 3,
            "from": 3,
            "to": 4,
        }
        assert len(found) == len(PageMeta.__dataclass_fields__)

    def test_an_item_is_what_is_stored(self, staff, kit, job):
        [item] = staff.get(path("api-list")).json()["items"]
        assert item == json.loads(kit.storage.files[f"jobs/{JOB_ID}/status.json"].data)

    def test_warm_it_is_the_same(self, staff, kit, job):
        put(kit, "deep", data=b'{"job_id":"deep","x":' + b"[" * 5000 + b"]" * 5000 + b',"n":1e999,"state":"succeeded"}')
        assert staff.get(path("api-list")).content == staff.get(path("api-list")).content

    def test_what_cannot_be_read_says_why(self, staff, kit):
        put(kit, "c", data=b"{")
        kit.storage.write("jobs/b/x", b"")
        kit.storage.write("jobs/a b/x", b"")
        assert staff.get(path("api-list")).json()["items"] == [
            {"job_id": "c", "problem": "corrupt"},
            {"job_id": "b", "problem": "missing"},
            {"job_id": "a b", "problem": "invalid"},
        ]

    @pytest.mark.parametrize(
        ("query", "page", "per_page"),
        [
            ("", 1, 20),
            ("?page=0", 1, 20),
            ("?page=-1", 1, 20),
            ("?page=99", 2, 20),
            ("?page=1000000000", 2, 20),
            ("?per_page=100000", 1, 200),
            ("?per_page=0", 1, 20),
            ("?per_page=-7", 1, 20),
            ("?page=&per_page=", 1, 20),
        ],
    )
    def test_every_number_has_an_answer(self, staff, kit, query, page, per_page):
        for n in range(25):
            put(kit, f"job-{n}")
        found = staff.get(path("api-list") + query).json()
        assert (found["page"], found["per_page"]) == (page, per_page)
        assert len(found["items"]) == min(per_page, 25) - (page - 1) * 15

    def test_an_empty_history_is_an_empty_list(self, staff, kit):
        found = staff.get(path("api-list")).json()
        assert (found["items"], found["total"], found["from"], found["to"]) == ([], 0, 0, 0)

    @pytest.mark.parametrize(
        ("load", "item"),
        [
            ("recipe_row", {"job_id": "abc", "cooked_on": "2026-08-31"}),
            ("dict_row", {"job_id": "abc", "at": "2026-08-31T00:00:00Z", "title": "月"}),
        ],
    )
    def test_rows_of_the_sites_own_are_items_too(self, staff, settings, load, item):
        settings.JOBKIT = {"default": {"LOAD": f"{__name__}.{load}"}}
        put(in_a_dict(), "abc")
        assert staff.get(path("api-list")).json()["items"] == [item]


@override_settings(JOBKIT={"default": {}, "comics": {"PREFIX": "comics"}})
def test_two_kits_do_not_mix(staff, settings):
    settings.ROOT_URLCONF = "tests.web.urls_many"
    put(in_a_dict(), "one")
    put(in_a_dict("comics"), "two")
    assert [item["job_id"] for item in staff.get("/jobs/-/api/").json()["items"]] == ["one"]
    assert [item["job_id"] for item in staff.get("/comics/-/api/").json()["items"]] == ["two"]
    assert staff.delete("/comics/-/api/one/").status_code == 404
