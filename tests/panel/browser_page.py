"""A Chromium without a window, and pages of the panel in it."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from panel_server import PanelUnderTest

NAMES = ("chromium", "chromium-browser", "google-chrome")
MS = 300_000  # that anything may take on a busy machine
LARGE, SMALL = (1400, 900), (390, 844)


def chromium() -> str | None:
    """Where a Chromium is; None: there is none on this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


needs_chromium = pytest.mark.skipif(
    chromium() is None, reason="no Chromium on this machine: tests of the page in a browser"
)


class Browser:
    """Pages in it, and what none of them may do."""

    def __init__(self, browser: Any) -> None:
        self._browser, self._kept, self._host = browser, None, ""
        self.faults: list[str] = []

    @contextmanager
    def page(
        self,
        panel: PanelUnderTest,
        part: str = "start",
        *,
        size: tuple[int, int] = LARGE,
        fresh: bool = False,
        **options: Any,
    ) -> Iterator[Any]:
        """A page of `panel` that shows `part`, in a context with the `options` of Playwright.

        Without options it is the page used before, emptied, unless a `fresh` one is wanted: a
        new process of the browser takes three times as long to load it.
        """
        is_fresh = fresh or bool(options)
        page, self._kept = (None, self._kept) if is_fresh else (self._kept, None)
        page, self._host = page or self._new_page(options), panel.host
        try:
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.goto(f"{panel.entrance}#{part}")
            yield page
            if is_fresh or self._kept is not None:
                page.context.close()
            else:
                page.evaluate("localStorage.clear(); sessionStorage.clear()")
                page.goto(f"{panel.origin}/page/style.css")  # another site has another process
                self._kept = page
        except BaseException:
            page.context.close()
            raise

    def _new_page(self, options: dict[str, Any]) -> Any:
        context = self._browser.new_context(**options)
        context.set_default_timeout(MS)
        page = context.new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url))
        return page

    def _console(self, message: Any) -> None:
        # Of a panel that is stopped the browser itself says that it can't be reached, and for a
        # style sheet that is opened by itself it looks for an icon.
        expected = "WebSocket connection" in message.text or "ERR_CONNECTION" in message.text
        expected |= message.location["url"].endswith("/favicon.ico")
        if message.type in ("error", "warning") and not expected:
            self.faults.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, address: str) -> None:
        ours = f"http://{self._host}/", f"ws://{self._host}/", "data:", "blob:"
        if not address.startswith(ours):
            self.faults.append(f"request: {address}")


class Stage(NamedTuple):
    """What the tests of a file share: a browser, a panel and the folder in which it was started."""

    browser: Browser
    panel: PanelUnderTest
    here: Path


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A Chromium as long as the block is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield Browser(window)
        window.close()


def wait_for_text(page: Any, selector: str, text: str) -> None:
    """Until one that `selector` finds has a text in which the pattern `text` is found."""
    page.locator(selector).filter(has_text=re.compile(text)).first.wait_for(timeout=MS)
