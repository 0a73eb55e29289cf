"""One tab of the browser that a test drives step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.web.browser import running


class Tab:
    """Every method waits until the browser has done it. ``frozen``: time passes by `pass_time` only."""

    def __init__(
        self,
        executable: str,
        *,
        cookies: dict[str, str],
        url: str,
        scripts: bool = True,
        frozen: bool = False,
        dark: bool = False,
        width: int = 1280,
    ) -> None:
        given = {"cookies": cookies, "url": url, "scripts": scripts, "frozen": frozen, "dark": dark, "width": width}
        self._browser = running(executable)
        self._key = self._browser.do("open_tab", given)

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        if self._browser.runs:
            self._browser.close_windows(self._key)

    def _do(self, step: str, *args: Any) -> Any:
        return self._browser.do("in_tab", self._key, step, *args)

    def open(self, url: str) -> None:
        self._do("open", url)

    def js(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self._do("js", expression)

    def until(self, expression: str) -> None:
        """Wait for the expression to be true."""
        self._do("until", expression)

    def text(self, selector: str) -> str:
        """The text of the first such element, hidden or not."""
        return str(self._do("text", selector))

    def shown(self, selector: str) -> bool:
        return bool(self._do("shown", selector))

    def until_shown(self, selector: str) -> None:
        self._do("until_shown", selector)

    def press(self, key: str) -> None:
        self._do("press", key)

    def pass_time(self, seconds: float) -> None:
        """Let this much time pass in a ``frozen`` tab, with all timers that are due, and all answers come in."""
        self._do("pass_time", int(seconds * 1000))

    def polls(self) -> list[dict[str, Any]]:
        """Requests for a status so far: ``etag`` is what was asked with, ``status`` is 0 where none came."""
        return list(self._do("polls"))

    def faults(self) -> list[str]:
        """What the console said, dialogs, requests to other sites, and breaches of the policy."""
        return list(self._do("faults"))

    def violations(self) -> list[str]:
        """What axe finds on the page as it stands, one line for each element. It has styles that the policy forbids."""
        return list(self._do("violations"))

    def screenshot(self, path: Path) -> None:
        self._do("screenshot", str(path))
