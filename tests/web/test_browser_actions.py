"""Filtering, selecting, deleting and retrying in a real browser, under a strict policy, with scripts and without."""

from __future__ import annotations

import threading
from pathlib import Path

import django
import pytest
from django.core.signals import request_started
from django.test import Client

from django_jobkit.jobs import JobStatus, State
from django_jobkit.kit import jobkits
from tests.components import require, require_program
from tests.web import csp
from tests.web.conftest import in_a_dict, put, user
from tests.web.tab import Tab
from tests.web.test_browser import FAILED, check, fill, visits

pytestmark = [pytest.mark.component, pytest.mark.slow]

ARTIFACTS = Path(__file__).parent.parent / "artifacts" / "web" / f"django-{django.VERSION[0]}.{django.VERSION[1]}"
ADMIN = "/admin/django_jobkit/job/"


RETRIED: list[str] = []
POSTED = threading.Semaphore(0)
"""Released for each POST that the server has got."""
RUNNING = threading.Event()


def retry(job_id, status, request):
    RETRIED.append(job_id)
    if status.command == "clicked-twice":
        RUNNING.set()
        assert all(POSTED.acquire(timeout=20) for _ in range(2))
    jobkits["default"].store.save("again", JobStatus(state=State.SUCCEEDED, title="Done anew"))
    return "again"


@pytest.fixture
def site(settings, transactional_db):
    settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry", "SEARCH_LIMIT": 40}}
    csp.switch_on(settings)
    return in_a_dict()


@pytest.fixture
def cookies(site) -> dict[str, str]:
    client = Client()
    client.force_login(user("ann", "view_job", "delete_job", "retry_job", is_staff=True))
    return {name: morsel.value for name, morsel in client.cookies.items()}


@pytest.fixture
def chromium() -> str:
    require("playwright", "pip install playwright")
    require("axe_playwright_python", "pip install axe-playwright-python")
    return require_program("chromium", "apt-get install chromium fonts-ipafont-gothic")


@pytest.fixture
def tab(chromium, live_server, cookies):
    tabs = []

    def opened(path: str, **options) -> Tab:
        tab = Tab(chromium, cookies=cookies, url=live_server.url, **options)
        tabs.append(tab)
        tab.open(live_server.url + path)
        return tab

    yield opened
    for tab in tabs:
        tab.__exit__()


def numbered(kit, count: int) -> None:
    for n in range(count):
        put(kit, f"job-20260801-{n:06}-0123456789ab", title=f"Chart {n}", command="draw")


def titles(page: Tab) -> list[str]:
    return page.js("[...document.querySelectorAll('.jobkit-title')].map((link) => link.textContent)")


def quiet(page: Tab) -> None:
    assert [fault for fault in page.faults() if "server responded with a status of" not in fault] == []


def focus(page: Tab, selector: str) -> None:
    page.js(f"document.querySelector({selector!r}).focus()")


@pytest.mark.parametrize("prefix", ["/jobs/", ADMIN])
def test_pages_are_readable_in_every_window(chromium, live_server, site, cookies, prefix):
    from tests.web.browser import look_at

    fill(site)
    pages = {
        "filtered": f"{prefix}?state=succeeded&q=chart&since=2026-08-30&per_page=8",
        "filtered-nothing": f"{prefix}?q=nothing+like+it",
        "filtered-nonsense": f"{prefix}?since=yesterday&state=paused&per_page=8",
        "retriable": f"{prefix}{FAILED}/",
        "queue": f"{prefix}-/queue/",
    }
    if prefix == ADMIN:
        pages |= {"admin-index": "/admin/", "history": prefix}
    check(look_at(chromium, visits(live_server, pages, cookies, "actions" if prefix == "/jobs/" else "in-admin")))


@pytest.mark.parametrize("prefix", ["/jobs/", ADMIN])
def test_all_on_a_page_are_selected_and_deleted_by_keyboard(site, tab, prefix):
    numbered(site, 7)
    page = tab(f"{prefix}?per_page=5&page=2&q=chart")
    assert titles(page) == ["Chart 1", "Chart 0"]
    focus(page, "[data-jobkit-all]")
    page.press("Space")
    assert page.text("output") == "2"
    page.press("Tab")
    page.press("Enter")
    page.until("document.title.startsWith('Delete jobs')")
    assert "these 2 jobs" in page.text(".jobkit")
    page.screenshot(ARTIFACTS / "actions" / "delete-selected.png")
    focus(page, "[name=confirm]")
    page.press("Enter")
    page.until("document.title.startsWith('Jobs')")
    assert "2 jobs have been deleted." in page.js("document.body.innerText")
    assert titles(page) == [f"Chart {n}" for n in (6, 5, 4, 3, 2)]  # the last page that there is
    assert page.js("location.search") == "?per_page=5&page=2&q=chart"
    assert len(site.storage.files) == 5
    quiet(page)


def test_the_box_for_all_says_whether_some_are_selected(site, tab):
    numbered(site, 2)
    page = tab("/jobs/")
    everything = "document.querySelector('[data-jobkit-all]')"
    for key, expected in [("[name=job]", [False, True]), ("tr:nth-child(2) [name=job]", [True, False])]:
        focus(page, f"tbody {key}")
        page.press("Space")
        assert page.js(f"[{everything}.checked, {everything}.indeterminate]") == expected
    focus(page, "[data-jobkit-all]")
    page.press("Space")
    assert page.js("document.querySelectorAll('[name=job]:checked').length") == 0


def test_a_filter_is_in_the_url_without_what_nobody_asked_for_and_back_undoes_it(site, tab):
    numbered(site, 3)
    put(site, "other", title="Words", command="count", state=State.FAILED)
    page = tab("/jobs/?per_page=50")
    focus(page, "#jobkit-filter-state")
    page.press("F")  # Failed
    focus(page, "#jobkit-filter-q")
    page.press("o")
    page.press("Enter")
    page.until("location.search.includes('state')")
    assert page.js("location.search") == "?per_page=50&q=o&state=failed"
    assert titles(page) == ["Words"]
    page.js("void history.back()")
    page.until("location.search === '?per_page=50'")
    page.until("document.querySelectorAll('.jobkit-title').length === 4")
    quiet(page)


def test_without_scripts_all_of_it_works_too(site, tab):
    numbered(site, 3)
    page = tab("/jobs/?per_page=2", scripts=False)
    assert not page.shown("[data-jobkit-all]")
    focus(page, "tbody [name=job]")
    page.press("Space")
    focus(page, ".jobkit-bar button")
    page.press("Enter")
    page.until_shown("[name=confirm]")
    focus(page, "[name=confirm]")
    page.press("Enter")
    page.until_shown(".jobkit-table")
    assert "Job job-20260801-000002-0123456789ab has been deleted." in page.js("document.body.innerText")
    focus(page, "#jobkit-filter-q")
    page.press("0")
    page.press("Enter")
    page.until("location.search.includes('q=0')")
    page.until_shown(".jobkit-table")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_failed_job_is_retried_by_keyboard(site, tab, scripts):
    put(site, FAILED, state=State.FAILED, title="Draw")
    page = tab(f"/jobs/{FAILED}/", scripts=scripts)
    focus(page, ".jobkit-head button")
    page.press("Enter")
    page.until("location.pathname === '/jobs/again/'")
    page.until_shown(".jobkit-head")
    assert f"This job is a retry of {FAILED}." in page.js("document.body.innerText")
    focus(page, f"a[href='/jobs/{FAILED}/']")
    page.press("Enter")
    page.until(f"location.pathname === '/jobs/{FAILED}/'")


@pytest.mark.parametrize(("prefix", "scripts"), [("/jobs/", True), ("/jobs/", False), (ADMIN, True)])
def test_a_job_is_deleted_from_its_page_and_one_is_back_on_the_filtered_list(site, tab, prefix, scripts):
    numbered(site, 7)
    query = "?q=chart&page=2&per_page=3"
    page = tab(prefix + query, scripts=scripts)
    for link, then in [(".jobkit-title", ".jobkit-job"), (".jobkit-head a", ".jobkit-actions")]:
        focus(page, link)
        page.press("Enter")
        page.until_shown(then)
    focus(page, ".jobkit-actions button")
    page.press("Enter")
    page.until_shown(".jobkit-table")
    assert page.js("location.search") == query
    assert titles(page) == ["Chart 2", "Chart 1", "Chart 0"]
    quiet(page)


@pytest.fixture
def posts():
    """Counts POSTs."""
    while POSTED.acquire(blocking=False):
        pass
    RETRIED.clear()
    RUNNING.clear()

    def note(environ, **kwargs):
        if environ["REQUEST_METHOD"] == "POST":
            POSTED.release()

    request_started.connect(note)
    yield
    request_started.disconnect(note)


@pytest.mark.usefixtures("posts")
@pytest.mark.parametrize("scripts", [True, False])
def test_two_clicks_on_retry_make_one_job_which_is_shown(site, tab, scripts):
    put(site, FAILED, state=State.FAILED, title="Draw", command="clicked-twice")
    page = tab(f"/jobs/{FAILED}/", scripts=scripts)
    focus(page, ".jobkit-head button")
    page.press("Enter")
    assert RUNNING.wait(20)
    page.press("Enter")
    page.until("location.pathname === '/jobs/again/'")
    page.until_shown(".jobkit-head")
    assert "has been retried already, as this job." in page.js("document.body.innerText")
    assert RETRIED == [FAILED]
    page.open(page.js(f"document.querySelector(\"a[href='/jobs/{FAILED}/']\").href"))
    assert page.text(".jobkit-head button") == "Retry again"
    assert page.js("document.querySelector(\"dd a[href='/jobs/again/']\").textContent") == "again"
    page.screenshot(ARTIFACTS / "actions" / "retried.png")
    quiet(page)
