"""The floor of the part Test on a page: where things are in its window, and what it is sent."""

import json
from collections.abc import Callable
from typing import Any

from browser_page import MS

RIM = 1.5  # m of wall that the picture from above shows
SIZE = 47.0  # m


class Floor:
    """The page, and the frames that it was sent."""

    def __init__(self, page: Any) -> None:
        self.page, self.view = page, {}
        page.on("websocket", lambda socket: socket.on("framereceived", self._received))
        page.reload()
        page.locator(".menu .choice").first.wait_for(timeout=MS)
        page.locator("#actor").select_option("person")
        page.locator("#actor:not([disabled])").wait_for()
        page.get_by_role("button", name="Pause").click()
        self.until(lambda view: True)

    def _received(self, text: str) -> None:
        message = json.loads(text)
        if (message["part"], message["kind"]) == ("test", "frame"):
            self.view = message["body"]["view"]

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first scene that `holds`."""
        for _ in range(MS // 50):
            if self.view and holds(self.view):
                return self.view
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never came: {self.view}")

    def point(self, x: float, z: float) -> tuple[float, float]:
        """Where a place of the floor is in the window, in pixels."""
        self.page.locator("canvas.map").scroll_into_view_if_needed()
        box = self.page.locator("canvas.map").bounding_box()
        metres = (SIZE + 2 * RIM) / box["width"]
        return box["x"] + (x + RIM) / metres, box["y"] + box["height"] - (z + RIM) / metres

    def middle(self, x: float, z: float) -> tuple[float, float]:
        """The place of the floor that a whole pixel next to it shows."""
        there, (left, top) = self.point(x, z), self.point(0.0, 0.0)
        right, below = (round(part) for part in there)
        metres = (SIZE + 2 * RIM) / self.page.locator("canvas.map").bounding_box()["width"]
        return (right - left) * metres, (top - below) * metres

    def choose(self, label: str) -> None:
        self.page.get_by_label(label, exact=True).check(force=True)

    def place(self, x: float, z: float) -> None:
        self.page.mouse.move(*self.point(x, z))
        self.page.mouse.click(*self.point(x, z), button="right")

    def press(self, button: str) -> None:
        self.page.get_by_role("button", name=button, exact=True).click()
