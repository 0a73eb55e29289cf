"""Drives a headless browser, as a script: reads steps from standard input, a line of JSON each, and answers each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from playwright.sync_api import sync_playwright

# As root in a container, and without asking any host outside.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE_MS = 20_000
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
AXE = "axe.run(document, { reporter: 'no-passes' }).then((found) => found.violations)"

# A test may say when the tab is hidden; nothing else tells a headless browser. And while time stands still, it is to
# be known whether an answer is on its way. One that is given to the page is here as a whole.
PREPARED = """
    let hidden = false;
    Object.defineProperty(document, "hidden", { get: () => hidden });
    window.setHidden = (value) => {
        hidden = value;
        document.dispatchEvent(new Event("visibilitychange"));
    };
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
    window.asking = 0;
    const { fetch } = window;
    window.fetch = async (...args) => {
        window.asking += 1;
        try {
            const response = await fetch(...args);
            if (response.type !== "opaqueredirect") await response.clone().arrayBuffer();
            return response;
        } finally {
            window.asking -= 1;
        }
    };
"""


class Windows:
    """Windows to look at one page after the other. Those that differ in more than their size are separate."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.pages: dict[str, Any] = {}
        self.faults: list[str] = []

    def page(self, scripts: bool, url: str, cookies: dict[str, str]) -> Any:
        key = json.dumps([scripts, cookies])
        if key not in self.pages:
            context = self.browser.new_context(java_script_enabled=scripts)
            site = urljoin(url, "/")  # of another path, the cookies would be sent below that only
            context.add_cookies([{"name": n, "value": v, "url": site} for n, v in cookies.items()])
            page = self.pages[key] = context.new_page()
            page.on("console", lambda message: message.type == "error" and self.faults.append(message.text))
            page.on("pageerror", lambda error: self.faults.append(str(error)))
        return self.pages[key]

    def visit(self, visit: dict[str, Any]) -> dict[str, Any]:
        page = self.page(visit["scripts"], visit["url"], visit["cookies"])
        page.set_viewport_size({"width": visit["width"], "height": 800})
        page.emulate_media(color_scheme="dark" if visit["dark"] else "light")
        self.faults.clear()
        page.goto(visit["url"])
        seen = list(self.faults)  # axe has styles of its own, which the policy forbids
        violations, overflow = [], 0
        if visit["scripts"]:
            violations = violations_on(page)
            overflow = page.evaluate(OVERFLOW)
        if visit["screenshot"]:
            save_screenshot(page, visit["screenshot"])
        return {
            "url": visit["url"],
            "title": page.title(),
            "faults": seen,
            "overflow": overflow,
            "violations": violations,
        }

    def close(self) -> None:
        for page in self.pages.values():
            page.context.close()


def violations_on(page: Any) -> list[str]:
    """What axe finds on the page as it stands, one line for each element."""
    page.evaluate(axe_script())
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:300]} {node.get('failureSummary', '')}"
        for violation in page.evaluate(AXE)
        for node in violation["nodes"]
    ]


def axe_script() -> str:
    from axe_playwright_python.base import AXE_SCRIPT

    return str(AXE_SCRIPT)


def save_screenshot(page: Any, path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=True)


class Tab:
    """A tab that a test drives step by step; see ``tests/web/tab.py`` for what the steps are."""

    def __init__(self, browser: Any, given: dict[str, Any]) -> None:
        self.context = browser.new_context(
            viewport={"width": given["width"], "height": 800},
            color_scheme="dark" if given["dark"] else "light",
            java_script_enabled=given["scripts"],
            timezone_id="Asia/Tokyo",
            locale="fr-FR",
        )
        site = given["url"]
        self.context.add_cookies([{"name": n, "value": v, "url": site} for n, v in given["cookies"].items()])
        self.page = self.context.new_page()
        self.scripts = given["scripts"]
        self.found: list[str] = []
        self.asked: list[dict[str, Any]] = []
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
            self.page.add_init_script(PREPARED)
        if given["frozen"]:
            self.page.clock.install()

    def close(self) -> None:
        self.context.close()

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
        for _ in range(PATIENCE_MS // 20):
            try:
                if is_so():
                    return
            except Exception as error:  # the page may be about to be replaced by another
                if "context was destroyed" not in str(error):
                    raise
            self.page.wait_for_timeout(20)
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
        for passed in range(0, milliseconds, 15_000):
            self.page.clock.run_for(min(milliseconds - passed, 15_000))
            self._answers_come_in()
        # And for what nobody can wait for: that in minutes the page isn't replaced, say.
        self.page.wait_for_timeout(150 if milliseconds > 60_000 else 20)

    def _answers_come_in(self) -> None:
        for _ in range(200):
            if not self.page.evaluate("window.asking"):
                return
            self.page.wait_for_timeout(10)

    def polls(self) -> list[dict[str, Any]]:
        self.page.wait_for_timeout(50)
        return self.asked

    def faults(self) -> list[str]:
        return self.found + (self.page.evaluate("window.violations") if self.scripts else [])

    def violations(self) -> list[str]:
        return violations_on(self.page)

    def screenshot(self, path: str) -> None:
        save_screenshot(self.page, path)


class Steps:
    """What can be asked of the browser. What is open has a number as its key."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.open: dict[int, Any] = {}
        self.count = 0

    def _keep(self, made: Any) -> int:
        self.count += 1
        self.open[self.count] = made
        return self.count

    def open_windows(self) -> int:
        return self._keep(Windows(self.browser))

    def open_tab(self, given: dict[str, Any]) -> int:
        return self._keep(Tab(self.browser, given))

    def visit(self, key: int, visit: dict[str, Any]) -> Any:
        return self.open[key].visit(visit)

    def in_tab(self, key: int, step: str, *args: Any) -> Any:
        return getattr(self.open[key], step)(*args)

    def close(self, key: int) -> int:
        """How many are still open."""
        self.open.pop(key).close()
        return len(self.open)


def main(executable: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        steps = Steps(browser)
        for line in sys.stdin:
            step, *args = json.loads(line)
            try:
                answer = {"value": getattr(steps, step)(*args)}
            except Exception as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
            if not browser.is_connected():
                return  # whoever comes next starts another
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
