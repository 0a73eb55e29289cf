"""A headless browser that all tests of a run share, each with windows of its own: no cookie and no file of another.

It is driven from a process of its own (`browser_process`): Playwright's event loop and Django's database don't go
together in one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import select
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("browser_process.py")
LONGEST_STEP = 120.0


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


class Browser:
    """A running browser. Takes one step after the other, each a line of JSON that is answered by another."""

    def __init__(self, executable: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self.close)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def do(self, step: str, *args: Any) -> Any:
        """What came of the step; an AssertionError says what went wrong in it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([step, *args]) + "\n")
        stdin.flush()
        ready, _, _ = select.select([stdout], [], [], LONGEST_STEP)
        line = stdout.readline() if ready else ""
        if not line:
            self.close()
            raise AssertionError(f"the browser has {'gone' if ready else 'not answered'}: {step} {args}")
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def close_windows(self, key: int) -> None:
        """Close what was opened. After the last, no server has a connection to the browser any more."""
        if self.do("close", key) == 0:
            for thread in threading.enumerate():
                # A live server's, which uses this thread's database until its connection is closed.
                if thread.name.endswith("(process_request_thread)"):
                    thread.join(5)

    def close(self) -> None:
        atexit.unregister(self.close)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # is its end
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


_browsers: dict[str, Browser] = {}


def running(executable: str) -> Browser:
    """The browser of this program, started by whoever needs it first, and again where it has crashed."""
    browser = _browsers.get(executable)
    if browser is None or not browser.runs:
        browser = _browsers[executable] = Browser(executable)
    return browser


def look_at(executable: str, visits: list[Visit]) -> list[Sight]:
    """Visit all these pages, one after the other."""
    browser = running(executable)
    key = browser.do("open_windows")
    try:
        return [Sight(**browser.do("visit", key, asdict(visit))) for visit in visits]
    finally:
        if browser.runs:
            browser.close_windows(key)
