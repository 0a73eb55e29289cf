"""The history with filters: as a page and as JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings
from django.urls import reverse

from django_jobkit.jobs import State
from tests.web.conftest import client_of, in_a_dict, put, user

NOON = datetime(2026, 8, 31, 12, 0, tzinfo=UTC)


def job_id(day: int) -> str:
    return f"job-202608{day:02}-120000-0123456789ab"


@pytest.fixture
def jobs(kit):
    for day, (state, command, title) in enumerate(
        [
            (State.SUCCEEDED, "draw", "Chart"),
            (State.FAILED, "draw", "Second chart"),
            (State.RUNNING, "count", "Words"),
            (State.SUCCEEDED, "count", "<b>bold</b>"),
        ],
        1,
    ):
        put(kit, job_id(day), state=state, command=command, title=title)
    put(kit, job_id(5), data=b"{")
    return kit


def html(client, query: str = "") -> str:
    response = client.get(reverse("jobkit:history") + query)
    assert response.status_code == 200
    return response.content.decode()


def days(page: str) -> list[int]:
    """The days of the jobs in the table, in its order."""
    return [int(row[:2]) for row in page.partition("<tbody>")[2].split('name="job" value="job-202608')[1:]]


def items(client, query: str) -> dict:
    response = client.get(reverse("jobkit:api-list") + query)
    assert response.status_code == 200
    return response.json()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [5, 4, 3, 2, 1]),
        ("?order=oldest", [1, 2, 3, 4, 5]),
        ("?state=succeeded", [4, 1]),
        ("?state=succeeded&order=oldest", [1, 4]),
        ("?command=count", [4, 3]),
        ("?q=CHART", [2, 1]),
        ("?q=job-20260803", [3]),
        ("?prefix=job-2026080", [5, 4, 3, 2, 1]),
        ("?prefix=job-20260802", [2]),
        ("?since=2026-08-04", [5, 4]),
        ("?until=2026-08-02", [2, 1]),
        ("?since=2026-08-02&until=2026-08-03&state=failed", [2]),
        ("?state=queued", []),
        ("?state=", [5, 4, 3, 2, 1]),
    ],
)
def test_people_and_programs_find_the_same_jobs(staff, jobs, query, found):
    assert days(html(staff, query)) == found
    assert [item["job_id"] for item in items(staff, query)["items"]] == [job_id(day) for day in found]


def test_the_form_shows_what_was_asked_for(staff, jobs):
    page = html(staff, "?state=succeeded&q=ch%22art&since=2026-08-01&order=oldest")
    assert '<option value="succeeded" selected>' in page
    assert '<option value="oldest" selected>' in page
    assert 'value="ch&quot;art"' in page
    assert 'type="date" name="since" value="2026-08-01"' in page
    assert '<option value="count">' not in page  # commands are those of the rows shown
    assert '<option value="draw">' in html(staff)


def test_a_time_is_shown_in_a_field_that_can_hold_it(staff, jobs):
    assert 'type="text" name="since" value="2026-08-04T00:00Z"' in html(staff, "?since=2026-08-04T00:00Z")


def test_page_links_keep_the_filters_and_the_form_starts_at_the_first_page(staff, jobs):
    page = html(staff, "?state=succeeded&per_page=1&page=2")
    assert 'href="?state=succeeded&amp;per_page=1&amp;page=1"' in page
    form = page.partition('role="search"')[2].partition("</form>")[0]
    assert '<input type="hidden" name="per_page" value="1">' in form
    assert 'name="page"' not in form
    assert 'href="?per_page=1">Clear</a>' in form


def test_a_day_is_one_of_the_readers_zone(staff, jobs):
    from django.utils import timezone

    with timezone.override("Pacific/Auckland"):  # noon in UTC is midnight there
        assert days(html(staff, "?since=2026-08-05&until=2026-08-05")) == [4]


@pytest.mark.parametrize(
    ("query", "name", "shown"),
    [
        ("?state=paused", "state", "There is no such state."),
        ("?since=yesterday", "since", "Write a date as in 2026-08-31."),
        ("?order=up", "order", "The order is “newest” or “oldest”."),
        ("?since=2026-08-02&until=2026-08-01", "until", "This is before the beginning."),
    ],
)
def test_nonsense_is_a_message_for_people_and_400_for_programs(staff, jobs, query, name, shown):
    page = html(staff, query)
    assert shown in page
    assert f'id="jobkit-filter-{name}_error"' in page
    assert days(page)
    jobs.storage.calls.clear()
    response = staff.get(reverse("jobkit:api-list") + query)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["parameter"], error["message"]) == ("invalid_parameter", name, shown)
    assert not jobs.storage.calls


class TestEmptiness:
    def test_no_job_at_all(self, staff, kit):
        page = html(staff)
        assert "There are no jobs yet." in page
        assert 'role="search"' not in page

    def test_no_job_that_fits(self, staff, jobs):
        page = html(staff, "?state=queued&per_page=5")
        assert "No job matches these filters." in page
        assert '<a href="?per_page=5">Show all jobs</a>' in page
        assert "no jobs yet" not in page
        assert 'role="search"' in page

    def test_an_outage(self, staff, jobs):
        jobs.storage.list_fails = True
        jobs.ids_cache.invalidate(jobs.prefix)
        response = staff.get(reverse("jobkit:history") + "?state=queued")
        assert response.status_code == 503
        page = response.content.decode()
        assert "can’t be read just now" in page
        assert 'href="/jobs/?state=queued">Try again</a>' in page


class TestSearched:
    @pytest.fixture
    def many(self, settings):
        settings.JOBKIT = {"default": {"SEARCH_LIMIT": 3}}
        kit = in_a_dict()
        for n in range(1234):
            kit.storage.write(f"jobs/job-20260801-{n:06}-0123456789ab/status.json", b'{"state":"failed"}')
        return kit

    def test_the_page_says_when_not_all_were_looked_at(self, staff, many):
        assert "Searched the newest 3 of 1,234 jobs." in html(staff, "?state=failed")
        assert "Searched the oldest 3 of 1,234 jobs." in html(staff, "?state=failed&order=oldest")
        assert "Searched the newest 3 of 1,234 jobs." in html(staff, "?state=queued")

    def test_it_says_nothing_when_all_were_or_ids_told(self, staff, many):
        assert "Searched" not in html(staff, "?since=2026-08-01")
        assert "Searched" not in html(staff, "?state=failed&prefix=job-20260801-000001")

    def test_programs_are_told_the_numbers(self, staff, many):
        assert items(staff, "?state=failed")["searched"] == {
            "limit": 3,
            "complete": False,
            "looked_at": 3,
            "of": 1234,
        }
        assert items(staff, "?q=000001")["searched"]["complete"] is False
        assert "searched" not in items(staff, "?since=2026-08-01")

    def test_who_sees_their_own_jobs_only_learns_no_count_of_others(self, db, many, settings):
        settings.JOBKIT = {"default": {"SEARCH_LIMIT": 3, "ACCESS": "django_jobkit.access.OwnerAccess"}}
        kit = in_a_dict()
        kit.storage.files.update(many.storage.files)
        client = client_of(user("ann"))
        page = html(client, "?state=failed")
        assert "Only your jobs among the newest 3 jobs of this site are looked for." in page
        assert "1,234" not in page
        assert items(client, "?state=failed")["searched"] == {"limit": 3, "complete": False}


class TestRows:
    def test_states_of_the_rows_are_counted_and_lead_to_such_jobs(self, staff, jobs):
        put(jobs, job_id(6), state="paused")
        page = html(staff, "?per_page=50&order=oldest")
        counts = page.partition('class="jobkit-counts"')[2].partition("</ul>")[0]
        assert counts.count("<li>") == 4
        assert 'href="?per_page=50&amp;order=oldest&amp;state=succeeded"' in counts
        assert [int(n) for n in re.findall(r"</span>\s+(\d+)", counts)] == [1, 2, 1, 1]
        assert "paused" in counts
        assert "state=paused" not in counts

    def test_a_duration_stands_beside_the_times(self, staff, kit):
        put(kit, job_id(1), started_at=NOON, finished_at=NOON + timedelta(seconds=65))
        put(kit, job_id(2), state=State.RUNNING, started_at=datetime.now(UTC) - timedelta(minutes=5, seconds=1))
        page = html(staff)
        assert '<time datetime="PT65S"><bdi>1 min 5 s</bdi></time>' in page
        assert "5 min 1 s so far" in page

    def test_only_what_one_may_delete_can_be_selected(self, viewer, jobs, settings):
        assert 'type="checkbox"' not in html(viewer)
        settings.JOBKIT = {"default": {"ACCESS": "django_jobkit.access.OwnerAccess"}}
        kit = in_a_dict()
        put(kit, job_id(1), owner="viewer")
        put(kit, job_id(2), owner="ann")
        kit.storage.write("jobs/no id/x", b"")
        page = html(viewer)
        assert f'value="{job_id(1)}"' in page
        assert f'value="{job_id(2)}"' not in page
        assert 'value="no id"' not in page

    @override_settings(JOBKIT={"default": {"LOAD": "tests.web.test_views.comic_row"}})
    def test_rows_of_the_sites_own_are_filtered_too(self, staff):
        kit = in_a_dict()
        for n in (8, 9):
            put(kit, f"comic-{n}")
        assert [item["job_id"] for item in items(staff, "?q=comic+9")["items"]] == []
        assert [item["job_id"] for item in items(staff, "?q=comic+comic-9")["items"]] == ["comic-9"]
