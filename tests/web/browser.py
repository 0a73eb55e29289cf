"""A headless browser that visits pages in a process of its own: Playwright's event loop and Django's database don't
go together in one.

As a script, reads a list of visits as JSON from standard input and prints what it found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

# As root in a container, and without asking any host outside.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass
class Visit:
    """One page, in one window."""

    url: str
    width: int = 1280
    dark: bool = False
    cookies: dict[str, str] = field(default_factory=dict)
    screenshot: str = ""
    scripts: bool = True


@dataclass
class Sight:
    """What the browser saw: ``faults`` are console errors, also of the Content-Security-Policy, ``overflow`` is how
    many pixels stand out of the window, ``violations`` are axe's, one line each. Without scripts, there are no
    ``violations`` and no ``overflow``: both are found by scripts."""

    url: str
    title: str
    faults: list[str]
    overflow: int
    violations: list[str]


def look_at(executable: str, visits: list[Visit], timeout: float = 120) -> list[Sight]:
    """Visit all these pages, one after the other."""
    done = subprocess.run(
        [sys.executable, __file__, executable],
        input=json.dumps([asdict(visit) for visit in visits]),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Sight(**sight) for sight in json.loads(done.stdout)]


def main(executable: str) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    axe = Axe()
    sights = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        for visit in (Visit(**visit) for visit in json.load(sys.stdin)):
            context = browser.new_context(
                viewport={"width": visit.width, "height": 800},
                color_scheme="dark" if visit.dark else "light",
                java_script_enabled=visit.scripts,
            )
            context.add_cookies([{"name": n, "value": v, "url": visit.url} for n, v in visit.cookies.items()])
            page = context.new_page()
            faults: list[str] = []
            page.on("console", lambda message, faults=faults: message.type == "error" and faults.append(message.text))
            page.on("pageerror", lambda error, faults=faults: faults.append(str(error)))
            page.goto(visit.url)
            seen = list(faults)  # axe has styles of its own, which the policy forbids
            found = (
                axe.run(page, options={"resultTypes": ["violations"]}).response["violations"] if visit.scripts else []
            )
            violations = [
                f"{violation['id']}: {violation['help']}: {node['html'][:300]} {node.get('failureSummary', '')}"
                for violation in found
                for node in violation["nodes"]
            ]
            overflow = page.evaluate(OVERFLOW) if visit.scripts else 0
            if visit.screenshot:
                Path(visit.screenshot).parent.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=visit.screenshot, full_page=True)
            sights.append(Sight(visit.url, page.title(), seen, overflow, violations))
            context.close()
        browser.close()
    print(json.dumps([asdict(sight) for sight in sights]))


if __name__ == "__main__":
    main(sys.argv[1])
