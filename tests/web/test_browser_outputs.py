"""Outputs in a real browser, on a site that has no policy of its own: shown, played, saved, and never run."""

from __future__ import annotations

import io
import wave

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from django_jobkit.kit import jobkits
from django_jobkit.web import output_view
from tests.components import require, require_program
from tests.web.conftest import JOB_ID, put, user
from tests.web.tab import Tab

pytestmark = [pytest.mark.component, pytest.mark.slow]

RUN = "document.documentElement.dataset.run"
SCRIPT = "document.documentElement.dataset.run = 'yes'; fetch('/jobs/')"
SVG = f"""<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50" onload="{SCRIPT}">
<style>rect {{ fill: rgb(0, 128, 0) }}</style><rect width="50" height="50"/><script>{SCRIPT}</script>
<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="{SCRIPT}"/></body></foreignObject>
</svg>"""
HTML = f"""<!DOCTYPE html><html lang="en"><title>Report</title><style>p {{ color: rgb(0, 128, 0) }}</style><p>Hello</p>
<script>{SCRIPT}</script><img src="x" onerror="{SCRIPT}"></html>"""


def tone(seconds: int = 60) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(44_100)
        sound.writeframes(bytes(4 * 44_100 * seconds))
    return file.getvalue()


OUTPUTS = {
    "charts/by region.svg": SVG.encode(),
    "report.html": HTML.encode(),
    "script.js": SCRIPT.encode(),
    "notes.txt": b"<script>" + SCRIPT.encode() + b"</script>",
    "tone.wav": b"",
}


@pytest.fixture
def live_server(transactional_db):
    """Without the strict policy that the other tests' pages have: that would keep scripts from running, too."""
    server = LiveServer("localhost")
    yield server
    server.stop()


@pytest.fixture
def site(settings, tmp_path):
    settings.ROOT_URLCONF = "tests.web.urls_live"
    settings.MEDIA_ROOT = str(tmp_path)
    settings.MEDIA_URL = "/media/"
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    }
    settings.JOBKIT = {"default": {"ACCESS": "django_jobkit.access.OwnerAccess"}}
    kit = jobkits["default"]
    put(kit, outputs=list(OUTPUTS), owner="ann", title="Sales by region")
    for name, data in OUTPUTS.items():
        kit.storage.write(kit.output_name(JOB_ID, name), data or tone())
    return kit


@pytest.fixture
def tab(site, live_server):
    """Opens a path in a tab of somebody who is logged in."""
    require("playwright", "pip install playwright")
    chromium = require_program("chromium", "apt-get install chromium")
    tabs = []

    def opened(path: str, name: str = "ann") -> Tab:
        client = Client()
        client.force_login(user(name))
        cookies = {name: morsel.value for name, morsel in client.cookies.items()}
        tab = Tab(chromium, cookies=cookies, url=live_server.url)
        tabs.append(tab)
        tab.open(live_server.url + path)
        return tab

    yield opened
    for tab in tabs:
        tab.__exit__()


def follow(page: Tab, ending: str) -> None:
    """Click the link to the output whose name ends so."""
    page.js(f"document.querySelector('.jobkit-outputs a[href$=\"{ending}\"]').click()")


def test_a_chart_is_shown_and_its_scripts_are_not_run(tab):
    page = tab(f"/jobs/{JOB_ID}/")
    follow(page, ".svg")
    page.until("document.documentElement.nodeName == 'svg'")
    page.until("document.readyState == 'complete'")
    assert page.js("getComputedStyle(document.querySelector('rect')).fill") == "rgb(0, 128, 0)"
    assert page.js("location.pathname") == f"/jobs/{JOB_ID}/outputs/charts/by%20region.svg"
    assert page.js(RUN) is None
    assert any("Blocked script execution" in fault for fault in page.faults())


def test_a_public_link_would_have_it_run(tab):
    """What the test above would find if the kit did nothing."""
    page = tab(f"/media/jobs/{JOB_ID}/charts/by region.svg")
    page.until(f"{RUN} == 'yes'")


def test_a_page_is_saved_and_not_opened(tab, live_server):
    page = tab(f"/jobs/{JOB_ID}/")
    with pytest.raises(AssertionError, match=r"Download is starting|ERR_ABORTED"):
        page.open(f"{live_server.url}/jobs/{JOB_ID}/outputs/report.html")
    assert page.js("location.pathname") == f"/jobs/{JOB_ID}/"


def test_even_if_it_were_opened_it_would_run_nothing(tab, monkeypatch):
    monkeypatch.setattr(output_view, "_SHOWN_TYPES", {"text/html"})
    page = tab(f"/jobs/{JOB_ID}/outputs/report.html")
    page.until("document.readyState == 'complete'")
    assert page.js("getComputedStyle(document.querySelector('p')).color") == "rgb(0, 128, 0)"
    assert page.js(RUN) is None


def test_a_text_is_a_text(tab):
    page = tab(f"/jobs/{JOB_ID}/outputs/notes.txt")
    assert page.text("pre").startswith("<script>")
    assert page.js(RUN) is None


@pytest.mark.parametrize(("path", "runs"), [("outputs/script.js", False), ("/media/jobs/{}/script.js", True)])
def test_a_script_is_none_for_other_pages(tab, path, runs):
    page = tab(f"/jobs/{JOB_ID}/")
    page.js(
        f"""new Promise((done) => {{
            const script = document.createElement("script");
            script.src = "{path.format(JOB_ID)}";
            script.onload = script.onerror = (event) => done(event.type);
            document.head.append(script);
        }})"""
    )
    assert page.js(RUN) == ("yes" if runs else None)


def test_a_sound_is_played_from_where_one_likes(tab):
    page = tab(f"/jobs/{JOB_ID}/")
    follow(page, "tone.wav")
    page.until("document.querySelector('video, audio')?.readyState > 0")
    player = "document.querySelector('video, audio')"
    assert page.js(f"{player}.duration") == 60
    assert page.js(f"{player}.seekable.end(0)") == 60
    page.js(f"{player}.currentTime = 55")
    page.until(f"!{player}.seeking && {player}.currentTime >= 55 && {player}.readyState > 1")


@pytest.mark.parametrize("name", ["charts/by region.svg", "nothing.txt"])
def test_for_strangers_there_is_no_such_job(tab, name):
    page = tab(f"/jobs/{JOB_ID}/outputs/{name}", "bob")
    assert page.text("h1") == "No such job"
    assert not page.js("document.querySelector('.jobkit a[href*=\"" + JOB_ID + "\"]')")
