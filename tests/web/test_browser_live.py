"""Pages that keep themselves up to date, in a real browser, over local files, under a strict policy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django
import pytest
from django.test import Client

import django_jobkit
from django_jobkit.jobs import JobStatus, State, json_field
from django_jobkit.kit import jobkits
from django_jobkit.web.display import cut, visible
from tests.components import require, require_program
from tests.web.browser import Visit, look_at
from tests.web.conftest import JOB_ID, user
from tests.web.payloads import PAYLOADS
from tests.web.tab import Tab

pytestmark = [pytest.mark.component, pytest.mark.slow]

ARTIFACTS = Path(__file__).parent.parent / "artifacts" / "web" / f"django-{django.VERSION[0]}.{django.VERSION[1]}"
QUEUED = datetime(2026, 8, 31, 8, 0, tzinfo=UTC)
BADGE = ".jobkit-job [data-jobkit=state]"

# The script takes the time from the server's answers.
AN_HOUR_LATER = """(() => {
    const { parse } = Date;
    Date.parse = (text) => parse(text) + (/GMT$/.test(text) ? 36e5 : 0);
})()"""


@dataclass(kw_only=True)
class ComicStatus(JobStatus):
    cover: str = json_field("", omit="never")
    pages: float = json_field(0.0)
    code: int = json_field(0)


def retry(job_id, status, request):
    """The hook of a site, for its button."""


@pytest.fixture
def site(settings, tmp_path):
    """The kit of a site over local files, whose pages have a look of their own and a strict policy."""
    settings.ROOT_URLCONF = "tests.web.urls_live"
    settings.MEDIA_ROOT = str(tmp_path)
    settings.MEDIA_URL = "/media/"
    settings.TIME_ZONE = "Europe/Berlin"
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    }
    return jobkits["default"]


@pytest.fixture
def chromium() -> str:
    require("playwright", "pip install playwright")
    return require_program("chromium", "apt-get install chromium")


@pytest.fixture
def cookies(transactional_db) -> dict[str, str]:
    """Of somebody who may see, delete and retry."""
    client = Client()
    client.force_login(user("ann", "view_job", "delete_job", "retry_job", is_staff=True))
    return {name: morsel.value for name, morsel in client.cookies.items()}


@pytest.fixture
def tab(site, live_server, chromium, cookies):
    """Opens the job's page in a tab."""
    tabs = []

    def opened(path: str = f"/jobs/{JOB_ID}/", **options) -> Tab:
        tab = Tab(chromium, cookies=cookies, url=live_server.url, **options)
        tabs.append(tab)
        tab.open(live_server.url + path)
        return tab

    yield opened
    for tab in tabs:
        tab.__exit__()


def save(site, **fields) -> None:
    site.store.save(JOB_ID, JobStatus(**{"queued_at": QUEUED, "title": "Sales by region", **fields}))


def quiet(tab) -> None:
    """Nothing went wrong that the browser knows of; it calls answers of 4xx and 5xx errors."""
    assert [fault for fault in tab.faults() if "server responded with a status of" not in fault] == []


def reach(tab, text: str) -> None:
    """Go to what has this text by the Tab key alone."""
    for _ in range(30):
        tab.press("Tab")
        if tab.js("document.activeElement.textContent.trim()") == text:
            return
    raise AssertionError(f"the Tab key doesn't reach {text!r}")


def test_numbers_are_written_as_the_server_writes_them(site, tab, settings):
    settings.USE_THOUSAND_SEPARATOR = True
    numbers = {"progress_current": 1_234, "progress_total": 1_200_000}
    save(site, state=State.RUNNING, attempts=1_000, **numbers)
    page = tab()
    before = [page.text(f"[data-jobkit={name}]") for name in ("count", "attempts")]
    assert before == ["1,234 of 1,200,000", "1,000"]
    save(site, state=State.RUNNING, attempts=1_001, **numbers, progress_message="Now")
    page.until("document.querySelector('[data-jobkit=message]').textContent === 'Now'")
    assert [page.text(f"[data-jobkit={name}]") for name in ("count", "attempts")] == ["1,234 of 1,200,000", "1,001"]
    save(site, state=State.RUNNING, progress_current=999_999)
    page.until("document.querySelector('[data-jobkit=count]').textContent === '999,999'")
    quiet(page)


def test_a_job_is_followed_to_its_outputs(site, tab):
    save(site, state=State.QUEUED)
    page = tab()
    page.js("window.marker = 1")
    assert page.text(BADGE) == "Queued"
    assert not page.shown(".jobkit-progress")
    assert not page.shown("#jobkit-error")

    running = {"state": State.RUNNING, "attempts": 1, "started_at": QUEUED + timedelta(seconds=3), "owner": "ann"}
    save(site, **running, progress_current=30, progress_total=120, progress_message="Reading <b>rows")
    page.until_shown("progress")
    assert page.text(BADGE) == "Running"
    assert page.js(f"document.querySelector('{BADGE}').className") == "jobkit-state jobkit-state-running"
    assert page.js("document.querySelector('progress').value") == 25
    assert page.text("[data-jobkit=count]") == "30 of 120"
    assert page.text("[data-jobkit=message]") == "Reading <b>rows"
    assert page.text("[data-jobkit=attempts]") == "1"
    assert page.text("[data-jobkit-when=started_at] time").endswith("10:00:03")  # the server's time zone, not the tab's
    assert page.text("[data-jobkit=waited]") == "after 3 s"
    assert page.text("[data-jobkit=running]").startswith("for ")
    assert page.text("[data-jobkit=news]") == "Sales by region: Running"
    assert page.js("document.querySelector('[data-jobkit=news]').getAttribute('role')") == "status"

    save(site, **running, title="Sales of 2026", progress_current=60, progress_total=120, error="one row was odd")
    page.until("document.querySelector('progress').value === 50")
    assert page.text("h1") == "Sales of 2026"
    assert page.js("document.title").startswith("Sales of 2026")
    assert page.text(".jobkit-breadcrumbs [aria-current]") == "Sales of 2026"
    assert page.text("[data-jobkit=news]") == "Sales of 2026: 50 %"
    assert page.shown("#jobkit-error")
    assert page.text("#jobkit-error") == "Last error"
    assert page.text(".jobkit-error [data-jobkit=error]") == "one row was odd"
    assert page.js("window.marker") == 1  # all this without loading the page again

    site.storage.write(f"jobs/{JOB_ID}/summary.txt", b"all is well")
    save(
        site,
        **{**running, "state": State.SUCCEEDED},
        finished_at=QUEUED + timedelta(seconds=44),
        outputs=["summary.txt"],
    )
    page.until_shown(".jobkit-outputs a")
    assert page.text(BADGE) == "Succeeded"
    assert page.text(".jobkit-timeline li:last-child i") == "after 41 s"
    asked = len(page.polls())
    quiet(page)
    page.screenshot(ARTIFACTS / "live" / "followed.png")
    page.js("document.querySelector('.jobkit-outputs a').focus()")
    page.press("Enter")
    page.until("document.body.innerText.includes('all is well')")
    assert len(page.polls()) == asked


def test_what_has_not_changed_is_asked_for_less_and_less(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.pass_time(2.6)
    [poll] = page.polls()
    assert (poll["etag"], poll["status"]) == ("", 200)
    for _ in range(12):
        page.pass_time(5)
    settled = len(page.polls())
    assert 5 <= settled <= 14
    assert {(poll["etag"] != "", poll["status"]) for poll in page.polls()[1:]} == {(True, 304)}
    page.pass_time(100)
    page.until("true")
    quiet(page)


def test_a_hidden_tab_asks_for_nothing(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.js("setHidden(true)")
    page.pass_time(600)
    assert page.polls() == []
    save(site, state=State.RUNNING, progress_message="meanwhile")
    page.js("setHidden(false)")
    page.pass_time(0.1)
    page.until_shown("[data-jobkit=message]")
    assert len(page.polls()) == 1
    quiet(page)


@pytest.mark.parametrize("path", [f"/jobs/{JOB_ID}/", f"/order/{JOB_ID}/"])
@pytest.mark.parametrize("doubt", ["lost", "waiting"])
def test_time_passes_on_the_page_of_a_job_that_writes_nothing(site, tab, path, doubt):
    now = datetime.now(UTC)
    if doubt == "lost":
        soon = now + timedelta(minutes=30)
        save(site, state=State.RUNNING, started_at=now, lease_id="a", lease_expires_at=soon)
    else:
        save(site, state=State.QUEUED, queued_at=now)
    page = tab(path, frozen=True)
    assert not page.shown(f"[data-jobkit-when={doubt}]")
    page.js(AN_HOUR_LATER)
    page.pass_time(3)
    page.until_shown(f"[data-jobkit-when={doubt}]")
    if doubt == "lost" and "order" not in path:
        page.until("document.querySelector('[data-jobkit=running]').textContent.startsWith('for 1 h')")
        page.js(AN_HOUR_LATER)
        page.pass_time(5)
        page.until("document.querySelector('[data-jobkit=running]').textContent.startsWith('for 2 h')")
    assert [poll["status"] for poll in page.polls()].count(200) == 1
    quiet(page)


def test_a_job_that_fails_is_shown_with_what_can_be_done_now(site, tab, settings):
    settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry"}}
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.js("window.marker = 1")
    site.storage.write(f"jobs/{JOB_ID}/log.txt", b"no space left")
    save(site, state=State.FAILED, error="OSError: disk full", outputs=["log.txt"])
    page.pass_time(4)
    page.until("window.marker === undefined")
    page.until_shown(".jobkit-outputs a")
    assert page.shown("form[action$='/retry/'] button")
    assert page.text(BADGE) == "Failed"
    page.js("window.marker = 2")
    asked = len(page.polls())
    page.pass_time(600)
    assert page.js("window.marker") == 2  # once is enough
    assert len(page.polls()) > asked
    save(site, state=State.RUNNING, attempts=2)
    page.pass_time(160)
    page.until(f"document.querySelector('{BADGE}').textContent === 'Running'")
    assert page.js("window.marker") == 2
    quiet(page)


def test_a_page_that_does_not_say_its_state_is_not_loaded_again_and_again(site, tab, settings, tmp_path):
    own = Path(django_jobkit.__file__).parent / "templates/django_jobkit/job.html"
    (tmp_path / "django_jobkit").mkdir()
    text = own.read_text("utf-8").replace(' data-jobkit-state="{{ job.state|cut:40|visible }}"', "")
    (tmp_path / "django_jobkit" / "job.html").write_text(text, "utf-8")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    save(site, state=State.FAILED)
    page = tab(frozen=True)
    page.js("window.marker = 1")
    assert page.js("document.querySelector('[data-jobkit-live]').dataset.jobkitState") is None
    page.pass_time(100)
    assert page.polls()
    assert page.js("window.marker") == 1


def test_a_job_in_a_state_that_the_kit_does_not_know_is_watched_slowly(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.js("window.marker = 1")
    save(site, state="paused")
    page.pass_time(2.6)
    page.until(f"document.querySelector('{BADGE}').textContent === 'paused'")
    before = len(page.polls())
    page.pass_time(10)
    assert len(page.polls()) == before
    page.pass_time(10)
    assert len(page.polls()) == before + 1
    assert page.js("window.marker") == 1
    page = tab(frozen=True)  # as is that of somebody who comes now
    page.pass_time(10)
    assert page.polls() == []
    page.pass_time(10)
    assert len(page.polls()) == 1


def test_a_server_that_wants_to_be_left_alone_for_years_is_asked_every_hour(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.js(
        """window.count = 0;
        window.fetch = async () => {
            window.count += 1;
            return new Response("", { status: 503, headers: { "Retry-After": "99999999" } });
        };
        true"""
    )
    page.pass_time(3)
    assert page.js("window.count") == 1
    page.pass_time(3500)
    assert page.js("window.count") == 1
    page.pass_time(150)
    assert page.js("window.count") == 2


def test_fields_of_the_sites_own_are_written_as_the_server_writes_them(site, tab, settings):
    settings.JOBKIT = {"default": {"STATUS_CLASS": f"{__name__}.ComicStatus"}}
    site = jobkits["default"]
    numbers = {"pages": 2.0, "code": 2**53 + 1}
    status = ComicStatus(state=State.RUNNING, result={"a": [1, "é"]}, **numbers)
    site.store.save(JOB_ID, status)
    page = tab()
    fields = "[...document.querySelectorAll('[data-jobkit-field]')].map((e) => [e.dataset.jobkitField, e.textContent])"
    before = dict(page.js(fields))
    assert before == {"cover": "", "pages": "2.0", "code": "9007199254740993", "result": '{"a":[1,"é"]}'}
    status.progress_message = "Now"
    site.store.save(JOB_ID, status)
    page.until("document.querySelector('[data-jobkit=message]').textContent === 'Now'")
    assert dict(page.js(fields)) == before
    status.cover, status.pages, status.result = "<red>", 2.5, "done"
    site.store.save(JOB_ID, status)
    page.until("document.querySelector('[data-jobkit-field=cover]').textContent === '<red>'")
    assert dict(page.js(fields)) == before | {"cover": "<red>", "pages": "2.5", "result": "done"}
    status.cover = ""
    site.store.save(JOB_ID, status)
    page.until("document.querySelector('[data-jobkit-field=cover]').textContent === ''")
    quiet(page)


def test_a_failed_job_is_watched_slowly_since_it_may_be_retried(site, tab):
    save(site, state=State.RUNNING, attempts=1)
    page = tab(frozen=True)
    page.js("document.querySelector('.jobkit-record summary').focus()")  # somebody reads it
    error = "\n".join(f"line {n} <script>" for n in range(30))
    save(site, state=State.FAILED, attempts=1, error=error)
    page.pass_time(2.6)
    page.until_shown("details.jobkit-error")
    assert page.text("#jobkit-error") == "Error"
    assert page.text("details.jobkit-error summary") == "line 0 <script>"
    assert page.text("details.jobkit-error pre") == error
    assert not page.shown("pre.jobkit-error")
    assert page.text("[data-jobkit=done]") == "It has finished. Load the page again"
    assert page.shown("[data-jobkit=done] a")
    page.screenshot(ARTIFACTS / "live" / "failed.png")
    before = len(page.polls())
    page.pass_time(10)
    assert len(page.polls()) == before
    page.pass_time(10)
    assert len(page.polls()) == before + 1
    save(site, state=State.RUNNING, attempts=2)
    page.pass_time(40)
    page.until(f"document.querySelector('{BADGE}').textContent === 'Running'")
    assert not page.shown("#jobkit-error")
    assert not page.shown("[data-jobkit=done]")
    quiet(page)


def test_an_outage_is_survived_and_said(site, tab, monkeypatch):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.pass_time(3)
    record = Path(site.django_storage.path(f"jobs/{JOB_ID}/status.json"))
    record.rename(record.with_name("aside"))
    record.mkdir()  # cannot be read: 503 with Retry-After
    page.pass_time(30)
    page.pass_time(60)
    page.until_shown("[data-jobkit=stale]")
    assert page.text("[data-jobkit=stale]").startswith("The site doesn’t answer. What you see is as of ")
    assert {poll["status"] for poll in page.polls()} - {304} == {200, 503}
    page.screenshot(ARTIFACTS / "live" / "outage.png")
    record.rmdir()
    record.with_name("aside").rename(record)
    page.pass_time(60)
    page.pass_time(60)
    page.until("document.querySelector('[data-jobkit=stale]').hidden")
    quiet(page)


def test_a_deleted_job_is_said_to_be_gone_and_left_alone(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    site.history.delete(JOB_ID)
    page.pass_time(3)
    page.until_shown("[data-jobkit=stale]")
    assert page.text("[data-jobkit=stale]") == "This job is no longer there."
    page.pass_time(600)
    assert len(page.polls()) == 1


def test_after_logging_out_the_page_says_so_and_stops(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    from django.contrib.sessions.models import Session

    Session.objects.all().delete()
    page.pass_time(3)
    page.until_shown("[data-jobkit=stale]")
    assert "Load the page again" in page.text("[data-jobkit=stale]")
    page.pass_time(600)
    assert [poll["status"] for poll in page.polls()] == [401]


def test_a_page_that_is_being_read_is_not_taken_away(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.js("window.marker = 1")
    page.js("document.querySelector('.jobkit-record summary').focus()")
    page.press("Enter")
    save(site, state=State.SUCCEEDED)
    page.pass_time(3)
    page.until_shown("[data-jobkit=done]")
    page.pass_time(600)
    assert page.js("window.marker") == 1
    assert page.text(BADGE) == "Succeeded"
    page.js("document.querySelector('[data-jobkit=done] a').focus()")
    page.press("Enter")
    page.until("window.marker === undefined")
    assert not page.shown("[data-jobkit=done]")


def test_it_can_be_stopped_by_keyboard(site, tab):
    save(site, state=State.RUNNING)
    page = tab()
    reach(page, "Stop that")
    page.press("Enter")
    page.until("location.search === '?reload=off'")
    assert not page.js("!!document.querySelector('[data-jobkit-live]')")


def test_a_job_is_deleted_by_keyboard(site, tab):
    save(site, state=State.RUNNING)
    page = tab()
    reach(page, "Delete…")
    page.press("Enter")
    page.until("location.pathname.endsWith('/delete/')")
    reach(page, "Yes, delete")
    page.press("Enter")
    page.until("location.pathname === '/jobs/'")
    assert "has been deleted" in page.text(".messages")
    quiet(page)


def test_the_progress_bar_has_a_name_and_says_a_value(site, tab):
    save(site, state=State.RUNNING, progress_current=1, progress_total=4)
    page = tab()
    bar = "document.querySelector('progress')"
    assert page.js(f"[{bar}.position, {bar}.getAttribute('aria-label')]") == [0.25, "Progress"]


def test_without_scripts_the_page_is_loaded_again(site, tab):
    save(site, state=State.RUNNING)
    page = tab(scripts=False)
    assert page.text(BADGE) == "Running"
    site.storage.write(f"jobs/{JOB_ID}/summary.txt", b"all is well")
    save(site, state=State.SUCCEEDED, outputs=["summary.txt"])
    page.until_shown(".jobkit-outputs a")
    assert page.text(BADGE) == "Succeeded"
    page.screenshot(ARTIFACTS / "live" / "without-scripts.png")


FIELDS = (
    "title",
    "error",
    "progress_message",
    "state",
    "command",
    "owner",
    "retry_of",
    "retried_as",
    "result",
    "a_member",
)


def test_hostile_texts_stay_texts_when_they_arrive_live(site, tab):
    save(site, state=State.RUNNING)
    page = tab(frozen=True)
    page.pass_time(3)
    elements = "[...document.querySelectorAll('*')].filter((e) => e.tagName !== 'TIME').length"
    count = page.js(elements)
    for payload in PAYLOADS:
        document = {
            "attempts": 1,
            "progress_total": 5,
            **dict.fromkeys(FIELDS, payload),
            "outputs": [payload],
            payload: payload,
        }
        site.storage.write(f"jobs/{JOB_ID}/status.json", json.dumps(document).encode())
        page.pass_time(20)
        title = visible(cut(" ".join(payload.split()), 200)) or JOB_ID
        page.until(
            f"document.querySelector('[data-jobkit=message]').textContent === {json.dumps(visible(cut(payload, 200)))}"
        )
        if (
            "\ufeff" not in payload and "\x1b" not in payload and "\x85" not in payload
        ):  # what else Python calls a space
            assert page.text("h1") == title
        assert page.text(BADGE) == visible(cut(payload, 40))
        assert page.text(".jobkit-error [data-jobkit=error]") == visible(cut(payload, 20_000))
        assert page.js(elements) == count, payload
    quiet(page)


class TestOnAPageOfTheSite:
    def test_one_tag_and_one_script_show_a_live_job(self, site, tab):
        save(site, state=State.QUEUED, title="Sales <by> region")
        page = tab(f"/order/{JOB_ID}/", frozen=True)
        page.js("window.heard = []; addEventListener('jobkit:change', (event) => heard.push(event.detail.state))")
        page.js("window.marker = 1")
        assert page.text(".jobkit-live a") == "Sales <by> region"
        save(site, state=State.RUNNING, progress_current=1, progress_total=2)
        page.pass_time(3)
        page.until_shown(".jobkit-live progress")
        assert page.text(".jobkit-live .jobkit-state") == "Running"
        assert page.text("h1") == "Your order"
        save(site, state=State.FAILED, error="OSError: disk full\nline 2")
        page.pass_time(4)
        page.until_shown(".jobkit-error-line")
        assert page.text(".jobkit-error-line") == "OSError: disk full"
        page.screenshot(ARTIFACTS / "live" / "tag.png")
        save(site, state=State.SUCCEEDED)
        page.pass_time(40)
        page.until("document.querySelector('.jobkit-live .jobkit-state').textContent === 'Succeeded'")
        page.pass_time(600)
        assert page.js("window.heard") == ["running", "failed", "succeeded"]
        assert page.js("window.marker") == 1
        quiet(page)

    def test_it_is_there_without_scripts_too(self, site, tab):
        save(site, state=State.RUNNING)
        page = tab(f"/order/{JOB_ID}/", scripts=False)
        assert page.text(".jobkit-live .jobkit-state") == "Running"

    @pytest.mark.parametrize("dark", [False, True])
    def test_axe_finds_nothing(self, site, live_server, cookies, chromium, dark):
        require("axe_playwright_python", "pip install axe-playwright-python")
        save(site, state=State.RUNNING, progress_current=1, progress_total=2, progress_message="Rows", error="an error")
        [sight] = look_at(chromium, [Visit(f"{live_server.url}/order/{JOB_ID}/", dark=dark, cookies=cookies)])
        assert sight.violations == []
