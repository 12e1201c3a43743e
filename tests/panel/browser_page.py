"""A Chromium without a window, and pages of the panel in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from panel_server import PanelUnderTest

NAMES = ("chromium", "chromium-browser", "google-chrome")
MS = 60_000  # that anything may take on a busy machine
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
        self._browser = browser
        self.faults: list[str] = []

    @contextmanager
    def page(
        self, panel: PanelUnderTest, part: str = "start", *, size: tuple[int, int] = LARGE
    ) -> Iterator[Any]:
        """A page of `panel` that shows `part`."""
        width, height = size
        context = self._browser.new_context(viewport={"width": width, "height": height})
        context.set_default_timeout(MS)
        try:
            page = context.new_page()
            page.on("console", self._console)
            page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
            page.on("dialog", self._dialog)
            page.on("request", lambda request: self._request(request.url, panel.host))
            page.goto(f"{panel.entrance}#{part}")
            yield page
        finally:
            context.close()

    def _console(self, message: Any) -> None:
        # Of a panel that is stopped the browser itself says that it can't be reached.
        expected = "WebSocket connection" in message.text or "ERR_CONNECTION" in message.text
        if message.type in ("error", "warning") and not expected:
            self.faults.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, address: str, host: str) -> None:
        if not address.startswith((f"http://{host}/", f"ws://{host}/", "data:", "blob:")):
            self.faults.append(f"request: {address}")
