"""Pages in a language that is written from right to left: mirrored as a whole, but for what isn't in that language."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path

import django
import pytest
from django.test import Client

from django_jobkit.jobs import State
from tests.components import require, require_program
from tests.web import csp
from tests.web.conftest import in_a_dict, put, user
from tests.web.tab import Tab
from tests.web.test_browser import DONE, FAILED, RUNNING, fill

pytestmark = [pytest.mark.component, pytest.mark.slow]

ARTIFACTS = Path(__file__).parent.parent / "artifacts" / "web" / f"django-{django.VERSION[0]}.{django.VERSION[1]}"
ADMIN = "/admin/django_jobkit/job/"
DIGITS = "20260831-110000-ab"
"""An ID that turns round where it isn't isolated: numbers are weaker than letters."""

# Where each character of the first line of an element's text stands, from the left.
CHARACTERS = """((selector) => {
    const text = document.createTreeWalker(document.querySelector(selector), NodeFilter.SHOW_TEXT).nextNode();
    const range = document.createRange();
    const boxes = [...text.data].map((_, n) => {
        range.setStart(text, n);
        range.setEnd(text, n + 1);
        return range.getBoundingClientRect();
    }).filter((box) => box.width);
    return boxes.filter((box) => box.top === boxes[0].top).map((box) => box.left);
})"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(params=[("ar", "/jobs/", "admin"), ("he", ADMIN, "in-admin"), ("he", "/jobs/", "standalone")])
def site(request, settings, transactional_db):
    settings.LANGUAGE_CODE, prefix, look = request.param
    if look == "standalone":
        settings.ROOT_URLCONF = "tests.web.urls_without_admin"
    settings.JOBKIT = {"default": {"RETRY": "tests.web.test_browser_actions.retry"}}
    csp.switch_on(settings)
    kit = in_a_dict()
    fill(kit)
    put(kit, DIGITS, state=State.FAILED, title="ויקי: דוח", command="words.count", retried_as=DIGITS, error="שגיאה")
    return prefix, look


@pytest.fixture
def opened(live_server, site):
    require("playwright", "pip install playwright")
    chromium = require_program("chromium", "apt-get install chromium fonts-ipafont-gothic")
    client = Client()
    client.force_login(user("ann", "view_job", "delete_job", "retry_job", is_staff=True))
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    tabs = []

    def open_(path: str, width: int) -> Tab:
        tab = Tab(chromium, cookies=cookies, url=live_server.url, width=width)
        tabs.append(tab)
        tab.open(live_server.url + site[0] + path)
        name = path.strip("/-").replace("/", "-") if "?" not in path else "history"
        tab.screenshot(ARTIFACTS / "rtl" / f"{site[1]}-{name}-{width}.png")
        return tab

    yield open_
    for tab in tabs:
        tab.__exit__()


def box(page: Tab, selector: str) -> dict[str, float]:
    return page.js(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")


def check_frame(page: Tab) -> None:
    assert page.js("document.documentElement.dir") == "rtl"
    assert page.js(OVERFLOW) == 0
    crumbs = page.js("[...document.querySelectorAll('.jobkit-breadcrumbs li')].map((li) => li.getBoundingClientRect())")
    for before, after in pairwise(crumbs):
        assert before["left"] >= after["right"] or before["bottom"] <= after["top"]


def check_left_to_right(page: Tab, selector: str) -> None:
    found = page.js(f"{CHARACTERS}({selector!r})")
    assert len(found) > 4
    assert found == sorted(found), selector


@pytest.mark.parametrize("width", [1280, 390])
def test_the_history_is_mirrored(opened, width):
    page = opened("?per_page=5", width)
    check_frame(page)
    row, badge, job = (box(page, f".jobkit-table tbody tr {part}") for part in ("", ".jobkit-state", ".jobkit-title"))
    assert row["right"] - badge["right"] < 60  # a box to select the row stands there, too
    assert badge["left"] > job["right"] or badge["bottom"] <= job["top"]
    if width == 1280:
        heads = page.js(
            "[...document.querySelectorAll('.jobkit-table thead th')].map((th) => th.getBoundingClientRect().right)"
        )
        assert heads == sorted(heads, reverse=True)
        number = box(page, "tbody .jobkit-number")
        assert page.js("getComputedStyle(document.querySelector('tbody .jobkit-number')).textAlign") == "end"
        assert number["right"] < job["left"] + 1
    fields = page.js("[...document.querySelectorAll('.jobkit-filters div')].map((div) => div.getBoundingClientRect())")
    assert fields[0]["left"] > fields[1]["left"] or fields[0]["top"] < fields[1]["top"]
    check_left_to_right(page, f"tbody tr:has([value='{DIGITS}']) .jobkit-id")
    check_left_to_right(page, f"tbody tr:has([value='{DIGITS}']) .jobkit-command")
    for numbers in (".jobkit-progress span", ".jobkit-range", f"tr:has([value='{FAILED}']) td:last-child time"):
        check_left_to_right(page, numbers)  # "37 of 120" would read as "120 of 37"; there is no other language yet


@pytest.mark.parametrize("width", [1280, 390])
def test_a_jobs_page_is_mirrored(opened, width):
    page = opened(f"{DIGITS}/", width)
    check_frame(page)
    frame, title, delete = (box(page, part) for part in (".jobkit", ".jobkit-head h1", ".jobkit-head a"))
    assert frame["right"] - title["right"] < 2
    assert delete["left"] - frame["left"] < 2
    assert page.js("getComputedStyle(document.querySelector('pre.jobkit-error')).borderRightWidth") == "4px"
    assert page.js("getComputedStyle(document.querySelector('pre.jobkit-error')).textAlign") == "start"
    check_left_to_right(page, ".jobkit-fields dd code")
    check_left_to_right(page, f".jobkit-fields dd a[href$='/{DIGITS}/']")
    page.js("document.querySelector('.jobkit-record').open = true")
    assert page.js("getComputedStyle(document.querySelector('.jobkit-record pre')).direction") == "ltr"
    assert page.js(OVERFLOW) == 0


def test_other_pages_fit_into_the_window(opened):
    for path in (f"{FAILED}/", f"{DONE}/", f"{DIGITS}/delete/", "-/queue/", "nothing/"):
        for width in (1280, 390):
            check_frame(opened(path, width))


def test_how_long_it_took_reads_as_it_is_written(opened):
    check_left_to_right(opened(f"{DONE}/", 1280), ".jobkit-timeline [data-jobkit=ran]")


def test_what_is_asked_about_is_named_as_it_is(opened):
    check_left_to_right(opened(f"{DIGITS}/delete/", 1280), "code")


def test_a_bar_fills_from_the_right(opened, tmp_path):
    page = opened(f"{RUNNING}/", 1280)
    bar = box(page, ".jobkit-progress progress")
    line = bar["top"] + bar["height"] / 2
    ends = [(bar["left"] + 6, line), (bar["right"] - 6, line)]
    page.js("document.documentElement.dir = 'ltr'")
    other = box(page, ".jobkit-progress progress")
    page.js("document.documentElement.dir = 'rtl'")
    page.screenshot(tmp_path / "rtl.png")
    left, right = colours(page, tmp_path / "rtl.png", ends)
    assert left != right
    assert max(right) - min(right) > 40 > max(left) - min(left)  # a colour, and the grey of what is left to do
    assert other["left"] < bar["left"]


def colours(page: Tab, screenshot: Path, points: list[tuple[float, float]]) -> list[list[int]]:
    """Red, green and blue there."""
    data = base64.b64encode(screenshot.read_bytes()).decode()
    page.open("about:blank")
    return page.js(
        f"""(async () => {{
            const image = new Image();
            image.src = "data:image/png;base64,{data}";
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
            canvas.drawImage(image, 0, 0);
            return {[list(point) for point in points]}.map(([x, y]) => {{
                return [...canvas.getImageData(x, y, 1, 1).data].slice(0, 3);
            }});
        }})()"""
    )
