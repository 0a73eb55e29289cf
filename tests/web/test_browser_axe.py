"""Every page there is, also those that one only gets by sending a form, as axe sees it: light and dark, wide and
narrow, in the admin, beside it and without it.
"""

from __future__ import annotations

from pathlib import Path

import django
import pytest
from django.test import Client
from django.urls import include, path

from django_jobkit.web.links import ROUTES
from tests.components import require, require_program
from tests.web import csp
from tests.web.conftest import client_of, in_a_dict, put, user
from tests.web.submit_site import HandOverView, SummaryView
from tests.web.tab import Tab
from tests.web.test_browser import BROKEN, DONE, FAILED, RUNNING, WINDOWS, fill

pytestmark = [pytest.mark.component, pytest.mark.slow]

ARTIFACTS = Path(__file__).parent.parent / "artifacts" / "web" / f"django-{django.VERSION[0]}.{django.VERSION[1]}"
ADMIN = "/admin/django_jobkit/job/"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
STATUS = "performance.getEntriesByType('navigation')[0].responseStatus"

urlpatterns = [
    path("jobs/", include("django_jobkit.urls")),
    path("new/", SummaryView.as_view()),
    path("hand-over/", HandOverView.as_view()),
]

ROUTES_SEEN = {"history", "detail", "delete", "queue"}
ROUTES_BY_FORM = {"delete-selected", "retry"}
NO_PAGES = {"api-list", "api-queue", "api-job", "openapi", "status", "output"}

PAGES = {
    "history": ("", 200),
    "history-with-errors": ("?since=yesterday&state=paused", 200),
    "nothing-found": ("?q=nothing+like+it", 200),
    "running": (f"{RUNNING}/", 200),
    "failed": (f"{FAILED}/", 200),
    "succeeded": (f"{DONE}/", 200),
    "delete": (f"{RUNNING}/delete/", 200),
    "damaged": (f"{BROKEN}/", 500),
    "delete-damaged": (f"{BROKEN}/delete/", 500),
    "not-found": ("nothing/", 404),
    "bad-id": ("no%20id/", 400),
    "queue": ("-/queue/", 200),
}


def test_no_page_is_left_out():
    assert set(ROUTES) == ROUTES_SEEN | ROUTES_BY_FORM | NO_PAGES


@pytest.fixture
def site(settings, transactional_db):
    settings.JOBKIT = {"default": {"RETRY": "tests.web.test_browser_actions.retry"}}
    csp.switch_on(settings)
    kit = in_a_dict()
    fill(kit)
    put(kit, FAILED, state="failed", title="Word counts", error="disk full", retried_as=DONE)
    return kit


@pytest.fixture(params=WINDOWS)
def page(request, site, live_server):
    require("playwright", "pip install playwright")
    require("axe_playwright_python", "pip install axe-playwright-python")
    chromium = require_program("chromium", "apt-get install chromium fonts-ipafont-gothic")
    width, dark = request.param
    client = client_of(user("ann", "view_job", "add_job", "delete_job", "retry_job", is_staff=True))
    with Tab(chromium, cookies=cookies_of(client), url=live_server.url, width=width, dark=dark) as tab:
        tab.window = f"{width}-{'dark' if dark else 'light'}"
        tab.site = live_server.url
        yield tab


def cookies_of(client: Client) -> dict[str, str]:
    return {name: morsel.value for name, morsel in client.cookies.items()}


def check(page: Tab, name: str, status: int = 200) -> None:
    page.until("document.readyState === 'complete'")
    page.screenshot(ARTIFACTS / "axe" / f"{name}-{page.window}.png")
    assert page.js(STATUS) == status, name
    assert page.js(OVERFLOW) == 0, name
    assert page.violations() == [], name


def send(page: Tab, selector: str, then: str) -> None:
    page.js(f"document.querySelector({selector!r}).focus()")
    page.press("Enter")
    page.until_shown(then)


def check_pages_of_forms(page: Tab, site, prefix: str, look: str) -> None:
    page.open(f"{page.site}{prefix}?per_page=5")
    page.js("document.querySelectorAll('[name=job]').forEach((box) => { box.checked = true; })")
    site.history.delete(DONE)  # one that is gone meanwhile
    send(page, ".jobkit-bar button", "[name=confirm]")
    check(page, f"{look}-delete-selected")
    page.open(f"{page.site}{prefix}{RUNNING}/")
    put(site, RUNNING, state="failed", title="Ran before", retried_as=FAILED)
    page.open(f"{page.site}{prefix}{RUNNING}/")
    put(site, RUNNING, state="running", title="Runs again")
    send(page, ".jobkit-head form button", ".messagelist, .messages")
    check(page, f"{look}-not-retried")


def test_pages_in_the_admin(page, site):
    for name, (below, status) in PAGES.items():
        page.open(page.site + ADMIN + below)
        check(page, f"in-admin-{name}", status)
    check_pages_of_forms(page, site, ADMIN, "in-admin")
    site.storage.list_fails = site.storage.read_fails = True
    site.ids_cache.invalidate(site.prefix)
    page.open(page.site + ADMIN)
    check(page, "in-admin-outage", 503)


@pytest.mark.parametrize("look", ["beside-admin", "standalone"])
def test_pages_of_forms_beside_the_admin_and_without_it(page, site, settings, look):
    settings.ROOT_URLCONF = "tests.web.submit_site" if look == "beside-admin" else __name__
    check_pages_of_forms(page, site, "/jobs/", look)
    page.open(page.site + "/new/")
    check(page, f"{look}-submit")
    page.js("document.querySelector('.jobkit-form').noValidate = true")
    send(page, ".jobkit-form [type=submit]", ".errorlist")
    check(page, f"{look}-submit-with-errors", 400)
    page.open(page.site + "/hand-over/")
    site.storage.write_fails = True
    send(page, ".jobkit-form [type=submit]", "[role=alert]")
    check(page, f"{look}-submit-outage", 503)
