"""The pages in a real browser, over local files and under a strict policy: wide and narrow, light and dark, with
scripts and without. Screenshots are left in ``tests/artifacts/web``.

``JOBKIT_SCREENSHOTS=all`` takes those of the other two windows, too.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django
import pytest
from django.test import Client
from django.urls import reverse

from django_jobkit.jobs import State
from django_jobkit.kit import JobKit, jobkits
from tests.components import require, require_program
from tests.web.browser import Visit, look_at
from tests.web.conftest import put, user

ARTIFACTS = Path(__file__).parent.parent / "artifacts" / "web" / f"django-{django.VERSION[0]}.{django.VERSION[1]}"
BEGIN = datetime(2026, 8, 31, 8, 0, tzinfo=UTC)
WINDOWS = [(1280, False), (390, True)]
if os.environ.get("JOBKIT_SCREENSHOTS") == "all":
    WINDOWS += [(1280, True), (390, False)]

RUNNING, FAILED, DONE, BROKEN = (f"job-20260831-0{hour}0000-0123456789ab" for hour in (9, 8, 7, 6))


@pytest.fixture
def kit(settings, tmp_path) -> JobKit:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path), "base_url": "/media/"},
        },
    }
    return jobkits["default"]


def fill(kit) -> None:
    put(
        kit,
        RUNNING,
        state=State.RUNNING,
        title="Sales by region, third quarter",
        command="report",
        attempts=1,
        started_at=BEGIN,
        progress_current=37,
        progress_total=120,
        progress_message="Reading rows 3,700 to 3,800",
        owner="ann",
    )
    put(
        kit,
        FAILED,
        state=State.FAILED,
        title="Word counts of a long book whose title goes on and on, so that it takes more than one line of the table",
        command="words",
        attempts=3,
        error="Traceback (most recent call last):\n"
        + "\n".join(f'  File "/srv/app/steps/step_{n}.py", line {n * 7}, in step_{n}' for n in range(12))
        + "\nUnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 4096: invalid start byte",
        started_at=BEGIN,
        finished_at=BEGIN + timedelta(minutes=4),
    )
    put(
        kit,
        DONE,
        title="月次レポート",
        command="report",
        attempts=1,
        started_at=BEGIN,
        finished_at=BEGIN + timedelta(seconds=41),
        progress_current=4,
        progress_total=4,
        outputs=["summary.json", "charts/regions.svg", "../../etc/passwd"],
        result={"rows": 1234, "regions": ["north", "south"]},
        retry_of=FAILED,
    )
    put(kit, BROKEN, data=b'{"job_id": "x", "job_id": "y"}')
    kit.storage.write("jobs/job-20260831-050000-0123456789ab/summary.json", b"{}")
    put(kit, "without-a-time", state="paused", title="", command="a_command_with_quite_a_long_name")
    for n in range(60):
        put(kit, f"job-20260830-{n:06}-0123456789ab", title=f"Chart {n}", command="draw", attempts=1)


@pytest.fixture
def chromium() -> str:
    require("playwright", "pip install playwright")
    require("axe_playwright_python", "pip install axe-playwright-python")
    return require_program("chromium", "apt-get install chromium fonts-ipafont-gothic")


def visits(live_server, paths: dict[str, str], cookies: dict[str, str], look: str) -> list[Visit]:
    without_scripts = [
        Visit(
            url=live_server.url + path,
            cookies=cookies,
            scripts=False,
            screenshot=str(ARTIFACTS / look / f"{name}-without-scripts.png"),
        )
        for name, path in paths.items()
    ]
    return without_scripts + [
        Visit(
            url=live_server.url + path,
            width=width,
            dark=dark,
            cookies=cookies,
            screenshot=str(ARTIFACTS / look / f"{name}-{width}-{'dark' if dark else 'light'}.png"),
        )
        for name, path in paths.items()
        for width, dark in WINDOWS
    ]


def pages() -> dict[str, str]:
    return {
        "history": reverse("jobkit:history"),
        "history-middle": reverse("jobkit:history") + "?page=4&per_page=8",
        "running": reverse("jobkit:detail", args=[RUNNING]),
        "failed": reverse("jobkit:detail", args=[FAILED]),
        "succeeded": reverse("jobkit:detail", args=[DONE]),
        "delete": reverse("jobkit:delete", args=[RUNNING]),
        "corrupt": reverse("jobkit:detail", args=[BROKEN]),
        "corrupt-delete": reverse("jobkit:delete", args=[BROKEN]),
        "not-found": reverse("jobkit:detail", args=["nothing"]),
        "bad-id": reverse("jobkit:detail", args=["no id"]),
    }


def check(sights) -> None:
    wrong = []
    for sight in sights:
        # The browser reports a page's own status code as an error of the console.
        faults = [fault for fault in sight.faults if "server responded with a status of" not in fault]
        wrong += [f"{sight.url}: {fault}" for fault in [*faults, *sight.violations]]
        if sight.overflow:
            wrong.append(f"{sight.url}: {sight.overflow} pixels stand out of the window")
    assert not wrong, "\n".join(wrong)


@pytest.mark.component
@pytest.mark.slow
@pytest.mark.parametrize("look", ["admin", "standalone"])
def test_pages_are_readable_in_every_window(chromium, live_server, kit, settings, tmp_path, look):
    if look == "standalone":
        settings.ROOT_URLCONF = "tests.web.urls_without_admin"
    fill(kit)
    client = Client()
    client.force_login(user("ann", "view_job", "delete_job", is_staff=True))
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    found = look_at(chromium, visits(live_server, pages(), cookies, look))

    shutil.rmtree(tmp_path / "jobs")
    kit.ids_cache.invalidate(kit.prefix)
    found += look_at(chromium, visits(live_server, {"empty": reverse("jobkit:history")}, cookies, look))
    (tmp_path / "jobs").write_text("no directory")
    kit.ids_cache.invalidate(kit.prefix)
    found += look_at(chromium, visits(live_server, {"outage": reverse("jobkit:history")}, cookies, look))
    client.force_login(user("bob", is_staff=True))
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    found += look_at(chromium, visits(live_server, {"forbidden": reverse("jobkit:history")}, cookies, look))
    check(found)
