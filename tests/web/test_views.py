"""The pages: what they show of a job, of the history, and of a deletion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from html import unescape
from html.parser import HTMLParser

import pytest
from django.conf import settings as django_settings
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone as django_timezone

from django_jobkit.jobs import JobStatus, State, json_field
from tests.web.conftest import JOB_ID, in_a_dict, put

NOON = datetime(2026, 8, 31, 12, 0, 0, tzinfo=UTC)


@dataclass(kw_only=True)
class ComicStatus(JobStatus):
    pages: int = json_field(0)
    cover: str = json_field("")


def comic_row(job_id: str):
    """A row made of something else than the status; IDs that end in 0 are left out."""
    return None if job_id.endswith("0") else {"job_id": job_id, "title": f"Comic {job_id}", "pages": 24}


def odd_row(job_id: str):
    return {"title": f"<b>{job_id}", "state": "failed"}


class Text(HTMLParser):
    """What a reader sees, one piece of text after the other."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.feed(html)

    def handle_data(self, data):
        if data.strip():
            self.pieces.append(" ".join(data.split()))


def get(client, name: str = "history", job_id: str = "", query: str = "") -> str:
    response = client.get(reverse(f"jobkit:{name}", args=[job_id] if job_id else []) + query)
    assert response.status_code == 200
    return response.content.decode()


def seen(client, *args, **kwargs) -> list[str]:
    return Text(get(client, *args, **kwargs)).pieces


def rows(html: str) -> list[list[str]]:
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    return [Text(row).pieces for row in body.split("<tr")[1:]]


class TestHistory:
    def test_a_row_tells_what_there_is_to_know(self, staff, kit):
        put(
            kit,
            title="Draw",
            command="draw",
            state=State.RUNNING,
            attempts=2,
            queued_at=NOON,
            progress_current=3,
            progress_total=12,
            progress_message="Reading",
        )
        updated = kit.store.get(JOB_ID).updated_at
        [row] = rows(get(staff))
        assert row[:-1] == [
            ">",
            "Running",
            "Draw",
            JOB_ID,
            "draw",
            "2",
            "25%",
            "3 of 12",
            "Reading",
            "Aug. 31, 2026 12:00:00",
        ]
        assert row[-1].endswith(f"{updated:%H:%M:%S}")

    def test_the_newest_comes_first(self, staff, kit):
        for day in (3, 1, 2):
            put(kit, f"job-2026080{day}-000000-0123456789ab", title=f"Day {day}")
        assert [row[2] for row in rows(get(staff))] == ["Day 3", "Day 2", "Day 1"]

    def test_a_job_without_a_title_is_called_by_its_id(self, staff, kit):
        put(kit)
        [row] = rows(get(staff))
        assert row[2] == JOB_ID
        assert row.count(JOB_ID) == 1

    def test_times_are_in_the_readers_zone_and_marked_for_machines(self, staff, kit):
        put(kit, queued_at=datetime(2026, 8, 31, 20, 0, 0, tzinfo=timezone(timedelta(hours=9))))
        with django_timezone.override("America/New_York"):
            html = get(staff)
        assert '<time datetime="2026-08-31T20:00:00+09:00" title="2026-08-31 07:00:00-04:00">' in html
        assert "Aug. 31, 2026 07:00:00" in html
        assert "Times are in America/New_York." in html

    def test_a_row_that_cannot_be_read_says_which_and_stays(self, staff, kit):
        put(kit, "d", title="Good")
        put(kit, "c", data=b"{")
        kit.storage.write("jobs/b/summary.json", b"{}")
        kit.storage.write("jobs/no id/status.json", b"{}")
        shown = rows(get(staff))
        assert [row[1] for row in shown] == ["Not a job ID", "Succeeded", "Damaged record", "No status recorded"]
        assert [row[2] for row in shown] == ["no id", "Good", "c", "b"]
        kit.storage.read_fails = True
        kit.metadata_cache.delete("d")
        assert [row[1] for row in rows(get(staff))] == ["Not a job ID", *["Can’t be read just now"] * 3]

    def test_an_unfinished_job_that_looks_lost_says_so(self, staff, kit):
        past = datetime(2026, 1, 1, tzinfo=UTC)
        put(kit, "c", data=b'{"state":"running","lease_expires_at":"2026-01-01T00:00:00Z"}')
        put(kit, "b", data=b'{"state":"queued","queued_at":"2026-01-01T00:00:00Z"}')
        put(kit, "a", state=State.RUNNING, queued_at=past)
        shown = rows(get(staff))
        assert shown[0][1:3] == ["Running", "No sign of life"]
        assert shown[1][1:3] == ["Queued", "Waiting for long"]
        assert shown[2][1:3] == ["Running", "a"]
        for job_id, doubts in [("c", ["lost"]), ("b", ["waiting"]), ("a", [])]:
            html = get(staff, "detail", job_id)
            assert re.findall(r'data-jobkit-when="(lost|waiting)">', html) == doubts
            assert re.findall(r'data-jobkit-when="(lost|waiting)"(?= hidden>)', html) == [
                doubt for doubt in ("lost", "waiting") if doubt not in doubts
            ]

    def test_an_empty_history_says_so(self, staff, kit):
        shown = seen(staff)
        assert any("There are no jobs yet" in piece for piece in shown)
        assert "<table" not in get(staff)

    @pytest.mark.parametrize(
        ("query", "first", "text"),
        [
            ("", 57, "1–20 of 57"),
            ("?page=2", 37, "21–40 of 57"),
            ("?page=3", 17, "41–57 of 57"),
            ("?page=4", 17, "41–57 of 57"),
            ("?page=1000000000", 17, "41–57 of 57"),
            ("?page=0", 57, "1–20 of 57"),
            ("?page=-1", 57, "1–20 of 57"),
            ("?page=abc", 57, "1–20 of 57"),
            ("?page=1e9", 57, "1–20 of 57"),
            ("?page=2&per_page=10", 47, "11–20 of 57"),
            ("?per_page=100000", 57, "1–50 of 57"),
            ("?per_page=0", 57, "1–20 of 57"),
            ("?per_page=abc", 57, "1–20 of 57"),
        ],
    )
    @override_settings(JOBKIT={"default": {"MAX_PER_PAGE": 50}})
    def test_pages_are_cut_and_every_number_has_an_answer(self, staff, query, first, text):
        kit = in_a_dict()
        for n in range(57):
            put(kit, f"job-20260801-{n // 60:04}{n % 60:02}-0123456789ab", title=f"Job {n + 1}")
        html = get(staff, query=query)
        assert rows(html)[0][2] == f"Job {first}"
        assert f">{text}<" in html

    @override_settings(JOBKIT={"default": {"LOAD": f"{__name__}.comic_row"}})
    def test_a_row_can_be_made_of_something_else(self, staff):
        kit = in_a_dict()
        for n in range(8, 12):
            put(kit, f"comic-{n}")
        html = get(staff)
        assert [row[2:4] for row in rows(html)] == [[f"Comic comic-{n}", f"comic-{n}"] for n in (9, 8, 11)]
        assert ">1–3 of 4<" in html
        assert 'href="/jobs/comic-9/"' in html

    @override_settings(JOBKIT={"default": {"LOAD": f"{__name__}.odd_row"}})
    def test_a_row_without_an_id_has_no_link(self, staff):
        put(in_a_dict())
        html = get(staff)
        assert f"&lt;b&gt;{JOB_ID}" in html
        assert "<a" not in html.partition("<tbody>")[2].partition("</tbody>")[0]

    @override_settings(JOBKIT={"default": {"LOAD": f"{__name__}.comic_row"}})
    def test_a_page_all_of_whose_rows_were_left_out_is_not_an_empty_history(self, staff):
        put(in_a_dict(), "comic-10")
        html = get(staff)
        assert "None of the jobs on this page can be shown." in html
        assert "no jobs yet" not in html


class TestDetail:
    def test_all_fields_are_shown(self, staff, kit):
        put(
            kit,
            title="Draw the charts",
            command="draw",
            state=State.FAILED,
            attempts=3,
            error="Traceback:\n  line 1\nValueError: no",
            queued_at=NOON,
            started_at=NOON + timedelta(seconds=1),
            finished_at=NOON + timedelta(seconds=2),
            progress_current=1,
            progress_total=3,
            progress_message="Reading",
            outputs=["summary.json"],
            owner="ann",
            retry_of="job-1",
            result={"rows": 7},
            lease_expires_at=NOON + timedelta(hours=1),
        )
        html = get(staff, "detail", JOB_ID)
        shown = Text(html).pieces
        for label, value in [
            ("ID", JOB_ID),
            ("Command", "draw"),
            ("Attempts", "3"),
            ("Owner", "ann"),
            ("Retry of", "job-1"),
            ("Queued", "Aug. 31, 2026 12:00:00"),
            ("Started", "Aug. 31, 2026 12:00:01"),
            ("Finished", "Aug. 31, 2026 12:00:02"),
            ("result", '{"rows":7}'),
            ("lease_expires_at", "Aug. 31, 2026 13:00:00"),
            ("Outputs", "summary.json"),
        ]:
            assert shown[shown.index(label) + 1] == value
        assert {"Draw the charts", "Failed", "33%", "1 of 3", "Reading"} <= set(shown)
        assert "Traceback:\n  line 1\nValueError: no" in html
        assert f'href="/jobs/{JOB_ID}/outputs/summary.json"' in html
        assert 'href="/jobs/job-1/"' in html
        assert f'href="/jobs/{JOB_ID}/status/"' in html

    def test_the_record_is_shown_as_it_is_stored(self, staff, kit):
        put(kit, data=b'{"job_id":"x","state":"succeeded","unknown":[1.50]}')
        record = get(staff, "detail", JOB_ID).partition("<pre tabindex")[2].partition(">")[2].partition("</pre>")[0]
        assert unescape(record) == '{\n  "job_id": "x",\n  "state": "succeeded",\n  "unknown": [\n    1.50\n  ]\n}'

    def test_a_minimal_record_is_shown_too(self, staff, kit):
        put(kit, data=b"{}")
        shown = seen(staff, "detail", JOB_ID)
        assert "Unknown" in shown
        assert shown[shown.index("Updated") + 1] == "–"
        assert '<li data-jobkit-when="queued_at" hidden>' in get(staff, "detail", JOB_ID)

    @override_settings(JOBKIT={"default": {"STATUS_CLASS": f"{__name__}.ComicStatus"}})
    def test_the_sites_own_fields_and_unknown_members_are_shown(self, staff):
        kit = in_a_dict()
        put(kit, data=b'{"job_id":"x","pages":24,"cover":"cover.png","printer":"A4"}')
        shown = seen(staff, "detail", JOB_ID)
        assert [shown[shown.index(name) + 1] for name in ("pages", "cover", "printer")] == ["24", "cover.png", "A4"]

    @override_settings(JOBKIT={"default": {"STATUS_CLASS": "django_jobkit.jobs.Status"}})
    def test_the_smallest_class_is_enough(self, staff):
        put(in_a_dict(), title="Small", attempts=1)
        assert "Small" in seen(staff, "detail", JOB_ID)

    def test_times_at_the_end_of_the_calendar_are_shown_as_they_are(self, staff, kit):
        put(kit, data=b'{"queued_at":"9999-12-31T23:59:59-01:00","updated_at":"0001-01-01T00:30:00+01:00"}')
        for name, job_id in [("detail", JOB_ID), ("history", "")]:
            shown = seen(staff, name, job_id)
            assert "9999-12-31T23:59:59-01:00" in shown
            assert "0001-01-01T00:30:00+01:00" in shown

    @pytest.mark.parametrize(
        ("state", "seconds"),
        [("queued", "5"), ("running", "5"), ("failed", "30"), ("paused", "30"), ("succeeded", None)],
    )
    def test_without_scripts_the_page_of_an_unfinished_job_loads_itself_again(self, staff, kit, state, seconds):
        put(kit, state=state)
        response = staff.get(reverse("jobkit:detail", args=[JOB_ID]))
        assert "Refresh" not in response  # it would reload the page under those who have scripts, too
        html = response.content.decode()
        head = html[: html.index("</head>")]
        found = re.findall('<noscript><meta http-equiv="refresh" content="(.*?)"></noscript>', head)
        assert found == ([seconds] if seconds else [])
        assert ("keeps itself up to date" in html) == (seconds is not None)
        assert ("data-jobkit-live" in html) == ("jobkit.js" in html) == (seconds is not None)

    def test_loading_again_can_be_stopped_and_taken_up(self, staff, kit):
        put(kit, state="running")
        path = reverse("jobkit:detail", args=[JOB_ID])
        assert 'href="?reload=off"' in get(staff, "detail", JOB_ID)
        html = staff.get(path + "?reload=off").content.decode()
        assert "http-equiv" not in html
        assert "data-jobkit-live" not in html
        assert "jobkit.js" not in html
        assert 'href="?"' in html

    def test_a_long_error_is_cut(self, staff, kit):
        put(kit, state="failed", error="x" * 1_000_000)
        assert len(get(staff, "detail", JOB_ID)) < 200_000


class TestDelete:
    def test_it_asks_and_names_the_job(self, staff, kit, job):
        shown = seen(staff, "delete", JOB_ID)
        assert {"Draw the charts", JOB_ID, "Yes, delete", "No, go back"} <= set(shown)
        assert kit.storage.files

    def test_it_says_that_an_unfinished_job_goes_on(self, staff, kit):
        for state, expected in [("running", True), ("queued", True), ("succeeded", False), ("failed", False)]:
            put(kit, state=state)
            assert ("doesn’t stop it" in unescape(get(staff, "delete", JOB_ID))) == expected

    def test_it_deletes_the_whole_directory_and_tells(self, staff, kit, job):
        kit.storage.write(f"jobs/{JOB_ID}/charts/a.svg", b"<svg/>")
        put(kit, "other")
        response = staff.post(reverse("jobkit:delete", args=[JOB_ID]), follow=True)
        assert response.redirect_chain == [("/jobs/", 302)]
        html = response.content.decode()
        assert f"Job {JOB_ID} has been deleted." in html
        assert [row[2] for row in rows(html)] == ["other"]
        assert list(kit.storage.files) == ["jobs/other/status.json"]

    def test_after_the_last_row_of_the_last_page_one_lands_on_a_real_page(self, staff, kit, job):
        response = staff.post(reverse("jobkit:delete", args=[JOB_ID]), follow=True)
        assert response.status_code == 200
        assert "There are no jobs yet" in response.content.decode()

    def test_without_djangos_messages_it_still_deletes(self, staff, kit, job, settings):
        settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "messages" not in name]
        assert staff.post(reverse("jobkit:delete", args=[JOB_ID])).status_code == 302
        assert not kit.storage.files


class TestEveryPage:
    PAGES = [("history", ""), ("detail", JOB_ID), ("delete", JOB_ID)]

    @pytest.mark.parametrize(("name", "job_id"), PAGES)
    def test_nothing_is_kept_by_caches(self, staff, job, name, job_id):
        response = staff.get(reverse(f"jobkit:{name}", args=[job_id] if job_id else []))
        assert response["Cache-Control"] == "private, no-store"

    @pytest.mark.parametrize(("name", "job_id"), PAGES)
    def test_there_is_no_inline_script_or_style_of_ours(self, staff, job, settings, name, job_id):
        settings.ROOT_URLCONF = "tests.web.urls_without_admin"
        html = get(staff, name, job_id)
        assert not re.search(r"<script(?! [^>]*src=)|<style|\sstyle=|\son\w+=", html)

    @pytest.mark.parametrize(("name", "job_id"), PAGES)
    def test_there_is_one_heading_and_one_main(self, staff, job, name, job_id):
        html = get(staff, name, job_id)
        assert (html.count("<h1"), html.count("<main")) == (1, 1)

    @pytest.mark.parametrize(("name", "job_id"), PAGES)
    def test_the_tab_says_what_it_is(self, staff, job, name, job_id):
        title = get(staff, name, job_id).partition("<title>")[2].partition("</title>")[0]
        expected = {"history": "Jobs", "detail": "Draw the charts", "delete": "Delete job"}[name]
        assert title.split(" | ")[0] == expected

    @pytest.mark.parametrize(("name", "job_id"), PAGES)
    def test_head_is_answered_as_get_without_a_body(self, staff, job, name, job_id):
        path = reverse(f"jobkit:{name}", args=[job_id] if job_id else [])
        response = staff.head(path)
        assert (response.status_code, response.content) == (200, b"")

    def test_every_text_goes_through_gettext(self):
        """Texts between the tags of a template, and in attributes that are read out, are translated."""
        from pathlib import Path

        import django_jobkit

        for path in (Path(django_jobkit.__file__).parent / "templates").rglob("*.html"):
            source = re.sub(r"{% comment %}.*?{% endcomment %}", "", path.read_text(), flags=re.DOTALL)
            translated = r"{% blocktranslate.*?{% endblocktranslate %}"
            source = re.sub(translated, "", source, flags=re.DOTALL)
            rest = re.sub(r"{%.*?%}|{{.*?}}|<[^>]*>|&\w+;", "", source, flags=re.DOTALL)
            assert not re.search(r"[A-Za-z]{2}", rest), (path.name, rest)


def test_debug_is_off():
    """What these tests show of errors is what a site in production shows."""
    assert not django_settings.DEBUG
