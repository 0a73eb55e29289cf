"""One tab of a headless browser that a test drives step by step, in a process of its own as in `browser`.

The test writes a line of JSON for each step and reads one back.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_MS = 20_000

# A test may say when the tab is hidden; nothing else tells a headless browser.
HIDEABLE = """
    let hidden = false;
    Object.defineProperty(document, "hidden", { get: () => hidden });
    window.setHidden = (value) => {
        hidden = value;
        document.dispatchEvent(new Event("visibilitychange"));
    };
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


class Tab:
    """Every method waits until the browser has done it. ``frozen``: time passes by `wait` only."""

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
        self._process = subprocess.Popen(
            [sys.executable, __file__, executable, json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _do(self, step: str, *args: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([step, *args]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser has gone"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

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
        """Let this much time pass in a ``frozen`` tab, with all timers that are due."""
        self._do("pass_time", int(seconds * 1000))

    def polls(self) -> list[dict[str, Any]]:
        """Requests for a status so far: ``etag`` is what was asked with, ``status`` is 0 where none came."""
        return list(self._do("polls"))

    def faults(self) -> list[str]:
        """What the console said, dialogs, requests to other sites, and breaches of the policy."""
        return list(self._do("faults"))

    def screenshot(self, path: Path) -> None:
        self._do("screenshot", str(path))


class _Driver:
    def __init__(self, context: Any, given: dict[str, Any]) -> None:
        self.page = context.new_page()
        self.scripts = given["scripts"]
        self.found: list[str] = []
        self.asked: list[dict[str, Any]] = []
        site = given["url"]
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.found.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.found.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on(
            "request", lambda request: request.url.startswith(site) or self.found.append(f"asks {request.url}")
        )
        self.page.on("response", lambda response: self._note(response.request, response.status))
        self.page.on("requestfailed", lambda request: request.existing_response or self._note(request, 0))
        if self.scripts:
            self.page.add_init_script(HIDEABLE)
        if given["frozen"]:
            self.page.clock.install()

    def _dialog(self, dialog: Any) -> None:
        self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: Any, status: int) -> None:
        if "/status/" in request.url and request.resource_type == "fetch":
            self.asked.append({"etag": request.headers.get("if-none-match", ""), "status": status})

    def open(self, url: str) -> None:
        self.page.goto(url)

    def js(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def until(self, expression: str) -> None:
        # Asked from here, since timers of the page may be frozen.
        self._until(lambda: self.page.evaluate(expression), expression)

    def _until(self, is_so: Callable[[], Any], what: str) -> None:
        for _ in range(PATIENCE_MS // 50):
            try:
                if is_so():
                    return
            except Exception as error:  # the page may be about to be replaced by another
                if "context was destroyed" not in str(error):
                    raise
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never so: {what}; on the page: {self.page.inner_text('body')[:2000]}; {self.found}")

    def text(self, selector: str) -> str:
        return str(self.page.text_content(selector, timeout=PATIENCE_MS))

    def shown(self, selector: str) -> bool:
        return bool(self.page.locator(selector).first.is_visible())

    def until_shown(self, selector: str) -> None:
        self._until(lambda: self.shown(selector), selector)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def pass_time(self, milliseconds: int) -> None:
        # In steps, so that an answer can come in before the page's own patience is over, which passes as well.
        while milliseconds > 0:
            self.page.clock.run_for(min(milliseconds, 15_000))
            self.page.wait_for_timeout(150)
            milliseconds -= 15_000

    def polls(self) -> list[dict[str, Any]]:
        self.page.wait_for_timeout(50)
        return self.asked

    def faults(self) -> list[str]:
        return self.found + (self.page.evaluate("window.violations") if self.scripts else [])

    def screenshot(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path, full_page=True)


def main(executable: str, given: dict[str, Any]) -> None:
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.web.browser import ARGUMENTS

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        context = browser.new_context(
            viewport={"width": given["width"], "height": 800},
            color_scheme="dark" if given["dark"] else "light",
            java_script_enabled=given["scripts"],
            timezone_id="Asia/Tokyo",
            locale="fr-FR",
        )
        context.add_cookies([{"name": n, "value": v, "url": given["url"]} for n, v in given["cookies"].items()])
        driver = _Driver(context, given)
        for line in sys.stdin:
            step, *args = json.loads(line)
            try:
                answer = {"value": getattr(driver, step)(*args)}
            except Exception as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
