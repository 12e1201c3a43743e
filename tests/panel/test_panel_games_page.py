"""Test and Play in a browser: the mouse places, keys and mouse play, the eyes see what rays hit."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest
from browser_page import MS, SMALL, Browser, chromium, needs_chromium
from panel_server import PanelUnderTest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.scenes.editing import Placement
from aimbot_lab.panel.server.games.actors import Actor, playable_settings
from aimbot_lab.panel.server.games.episode_game import ChosenEpisode, EpisodeGame
from aimbot_lab.panel.server.games.scene_game import SceneGame
from aimbot_lab.worlds.registry import type_of

pytestmark = needs_chromium

SCENES = 200
PIXEL = 0.0025  # rad that a pixel of the mouse turns
NEAR = 0.1  # m
RIM = 1.5  # m of wall that the picture from above shows
SETTINGS = type_of(playable_settings()).settings(num_envs=1)
SIGHTS = """
async (views) => {
  const { FirstPerson } = await import("/page/scene/first_person.js");
  const eyes = new FirstPerson(document.createElement("canvas"));
  return views.map((view) => {
    eyes.draw(view);
    const { wall, bodies } = eyes.columns[eyes.half];
    const met = bodies.filter(({ body }) => view.bodies[body].hits_left > 0).at(-1);
    return met ? [1, met.distance] : [0, wall.distance];
  });
}
"""
PICTURES = """
async (view) => {
  const { FirstPerson } = await import("/page/scene/first_person.js");
  const eyes = new FirstPerson(document.createElement("canvas"));
  const begin = performance.now();
  for (let k = 0; k < 60; k += 1) eyes.draw({ ...view, yaw: view.yaw + k / 20 });
  eyes.context.getImageData(0, 0, 1, 1);
  return [(performance.now() - begin) / 60, eyes.canvas.width, eyes.canvas.height];
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        found = Browser(window)
        yield found
        window.close()
    assert found.faults == []


def random_views(count: int) -> list[dict[str, Any]]:
    """Scenes with several blocks and enemies, some of them down, each seen from anywhere."""
    dice = np.random.default_rng(16)
    test, views = SceneGame(Actor("person", SETTINGS, None)), []
    while len(views) < count:
        test.press("clear")
        entries = test.editor.menu
        for _ in range(25):
            entry = entries[int(dice.integers(len(entries)))] if dice.random() < 0.5 else entries[0]
            x, z = dice.uniform(0.0, 47.0, 2)
            variant = int(dice.integers(len(entry.outlines)))
            try:
                test.place(Placement(entry.key, variant, float(x), float(z), int(dice.integers(4))))
            except MisuseError:
                continue
        state = test.game.world.state
        state.enemy_hits_left[0, ::5] = 0
        try:
            x, z, yaw = map(float, dice.uniform((0.5, 0.5, -9.0), (46.5, 46.5, 9.0)))
            test.editor.place_agent(0, (x, z), yaw=yaw)
        except MisuseError:
            continue
        views.append(asdict(test.game.scenes.view(test.game.world, 0)))
    return views


def test_the_column_of_the_crosshair_shows_what_the_middle_ray_hits(
    browser: Browser, panel: PanelUnderTest
) -> None:
    views = random_views(SCENES)
    with browser.page(panel, "test") as page:
        page.locator("canvas.eyes").wait_for()
        shown = page.evaluate(SIGHTS, views)
    middle = [view["rays"][len(view["rays"]) // 2] for view in views]
    kinds = {kind for _, _, kind in middle}
    assert kinds == {0, 1}
    grazing = 0
    for view, (kind, distance), (_, length, ray) in zip(views, shown, middle, strict=True):
        if kind == ray and abs(distance - length) < 0.005:  # places come to a tenth of a millimetre
            continue
        grazing += 1
        assert is_edge(view), (kind, distance, ray, length)
    assert grazing <= 2


def is_edge(view: dict[str, Any]) -> bool:
    """Whether a body's edge lies on the middle ray."""
    sine, cosine = math.sin(view["yaw"]), math.cos(view["yaw"])
    return any(
        abs(abs((b["x"] - view["x"]) * cosine - (b["z"] - view["z"]) * sine) - b["radius"]) < 0.01
        for b in view["bodies"]
    )


def test_the_view_through_the_eyes_is_drawn_at_its_full_size(
    browser: Browser, panel: PanelUnderTest
) -> None:
    (view,) = random_views(1)
    with browser.page(panel, "test") as page:
        page.locator("canvas.eyes").wait_for()
        milliseconds, width, height = page.evaluate(PICTURES, view)
    assert (width, height) == (960, 540)
    assert milliseconds > 0


class Floor:
    """The floor of the part Test on a page, and the frames that its page was sent."""

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
        metres = (47.0 + 2 * RIM) / box["width"]
        return box["x"] + (x + RIM) / metres, box["y"] + box["height"] - (z + RIM) / metres

    def middle(self, x: float, z: float) -> tuple[float, float]:
        """The place of the floor that a whole pixel next to it shows."""
        there, (left, top) = self.point(x, z), self.point(0.0, 0.0)
        right, below = (round(part) for part in there)
        metres = (47.0 + 2 * RIM) / self.page.locator("canvas.map").bounding_box()["width"]
        return (right - left) * metres, (top - below) * metres

    def choose(self, label: str) -> None:
        self.page.get_by_label(label, exact=True).check(force=True)

    def place(self, x: float, z: float) -> None:
        self.page.mouse.move(*self.point(x, z))
        self.page.mouse.click(*self.point(x, z), button="right")

    def press(self, button: str) -> None:
        self.page.get_by_role("button", name=button, exact=True).click()


def centre(plot: list[float]) -> tuple[float, float]:
    return (plot[0] + plot[2]) / 2, (plot[1] + plot[3]) / 2


def test_a_right_click_places_each_thing_where_its_preview_was(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "test") as page:
        floor = Floor(page)
        labels = [
            "Enemy",
            *(f"{kind} block {n}" for kind in ("Goto", "Attack") for n in range(1, 6)),
        ]
        dice = np.random.default_rng(3)
        for label in labels:
            floor.choose(label)
            x, z = floor.middle(*map(float, dice.uniform(15.0, 38.0, 2)))
            floor.place(x, z)
            view = floor.until(lambda view: bool(view["bodies"] or view["plots"]))
            body = view["bodies"][0] if label == "Enemy" else None
            there = (body["x"], body["z"]) if body else centre(view["plots"][0])
            assert math.dist(there, (x, z)) < NEAR, label
            wanted = label.replace(" block ", ", difficulty ") if body is None else "Stay"
            page.locator(".mission strong", has_text=wanted).wait_for()
            floor.press("ClearGame")
            floor.until(lambda view: not view["bodies"] and not view["plots"])


def test_keys_turn_a_block_and_go_through_its_presets(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "test") as page:
        floor = Floor(page)
        floor.choose("Goto block 3")
        page.mouse.move(*floor.point(30.0, 30.0))
        first = page.locator(".place-words").text_content()
        page.locator("canvas.map").focus()
        page.keyboard.press("]")
        page.locator(".place-words", has_text="2 of").wait_for()
        assert page.locator(".place-words").text_content() != first
        page.keyboard.press("[")
        page.keyboard.press("Enter")
        plain = floor.until(lambda view: bool(view["plots"]))["boxes"]
        floor.press("ClearGame")
        floor.until(lambda view: not view["plots"])
        page.mouse.move(*floor.point(30.0, 30.0))
        page.keyboard.press("r")  # wherever the keyboard is
        page.locator("canvas.map").focus()
        page.keyboard.press("Enter")
        turned = floor.until(lambda view: bool(view["plots"]))
        x, z = centre(turned["plots"][0])
        wanted = [[x + b - z, z - (c - x), x + d - z, z - (a - x)] for a, b, c, d in plain]
        np.testing.assert_allclose(turned["boxes"], wanted, atol=0.001)


def test_what_can_not_be_is_shown_red_and_refused(browser: Browser, panel: PanelUnderTest) -> None:
    with browser.page(panel, "test") as page:
        floor = Floor(page)
        x, z = floor.view["x"], floor.view["z"]
        for label, place, words in (
            ("Enemy", (x, z), "over the agent"),
            ("Goto block 2", (46.0, 20.0), "outside the floor"),
            ("Attack block 2", (max(x, 6.6), max(z, 6.6)), "over the agent"),
        ):
            floor.choose(label)
            floor.place(*place)
            page.locator(".place-words", has_text=words).wait_for()
            page.locator(".notice", has_text=words).first.wait_for()
        floor.choose("Goto block 1")
        floor.place(20.0, 20.0)
        floor.until(lambda view: bool(view["plots"]))
        floor.place(24.0, 20.0)
        page.locator(".place-words", has_text="over another block").wait_for()
        assert len(floor.view["plots"]) == 1


def test_the_modes_and_undo_do_what_they_say(browser: Browser, panel: PanelUnderTest) -> None:
    with browser.page(panel, "test", size=SMALL) as page:
        floor = Floor(page)
        floor.press("FreeMode")
        floor.until(lambda view: view["target"] == "Stay")
        floor.choose("Enemy")
        floor.place(30.0, 30.0)
        floor.until(lambda view: len(view["bodies"]) == 1 and view["target"] == "Stay")
        floor.press("FreeMode")
        floor.until(lambda view: view["target"] == "Free")
        floor.press("StayMode")
        floor.until(lambda view: view["target"] == "Stay" and len(view["bodies"]) == 1)
        floor.press("ClearGame")
        floor.until(lambda view: not view["bodies"])
        floor.press("Undo")
        floor.until(lambda view: len(view["bodies"]) == 1 and view["target"] == "Stay")
        floor.press("Undo")
        floor.until(lambda view: view["target"] == "Free")
        floor.press("Save agent")
        page.locator(".log code", has_text="Warning|Command").wait_for()


def test_an_agent_wins_what_is_placed_and_the_log_has_the_line(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "test") as page:
        floor = Floor(page)
        page.locator("#actor").select_option("script:greedy")
        page.locator("#actor:not([disabled])").wait_for()
        floor.choose("Goto block 1")
        floor.place(12.0, 12.0)
        floor.until(lambda view: view["target"] == "Goto, difficulty 1")
        page.get_by_role("button", name="Go on").click()
        page.locator(".log .won code", has_text="Warning|Result|Win").wait_for()
        floor.until(lambda view: view["target"] == "Stay" and len(view["plots"]) == 1)


def circle_and_seed() -> tuple[list[float], int]:
    """A seed whose circle is near, with a free way there."""
    person = Actor("person", SETTINGS, None)
    for seed in range(200):
        game = EpisodeGame(person, ChosenEpisode("goto", 1, seed)).game
        x, z, _ = game.view.circle
        if not game.view.boxes and math.hypot(x - 2.0, z - 2.0) < 22.0:
            return [*game.view.circle], seed
    raise AssertionError("no such seed")


def keep_view(views: list[dict[str, Any]], text: str) -> None:
    """Take the scene of a message, of a decision as of a beginning."""
    message = json.loads(text)
    if message["kind"] in ("frame", "begin"):
        views.append(message["body"].get("frame", message["body"])["view"])


def test_a_game_is_won_by_keys_and_mouse(browser: Browser, panel: PanelUnderTest) -> None:
    circle, seed = circle_and_seed()
    with browser.page(panel, "play") as page:
        views: list[dict[str, Any]] = []
        page.on("websocket", lambda socket: socket.on("framereceived", partial(keep_view, views)))
        page.reload()
        page.locator("#level option").nth(5).wait_for(state="attached")
        page.locator("#seed").fill(str(seed))
        page.locator("#seed").press("Enter")
        page.locator("#level").select_option("1")
        wanted = (circle, "Goto, difficulty 1")
        while not views or (views[-1]["circle"], views[-1]["target"]) != wanted:
            page.wait_for_timeout(50)
        page.locator(".mission strong", has_text="Goto, difficulty 1").wait_for()
        page.get_by_role("button", name="Start").click()
        page.wait_for_function("document.pointerLockElement !== null")
        box = page.get_by_role("button", name="Take the mouse").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.wait_for_timeout(500)  # what that turned is seen below
        bearing = math.atan2(circle[0] - 2.0, circle[1] - 2.0)
        turned = views[-1]["yaw"]
        for step in range(1, 21):  # the mouse turns at most 0.4 rad a decision
            page.mouse.move(x + (bearing - turned) / PIXEL * step / 20, y)
            page.wait_for_timeout(60)
        page.keyboard.down("w")
        page.locator(".banner.won").wait_for()
        page.keyboard.up("w")
        page.locator(".scores tbody tr", has_text="you").filter(has_text="1 of 1").wait_for()
        page.locator(".scores tbody tr", has_text="greedy").wait_for()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save replay").click()
        assert download.value.suggested_filename == f"goto-{seed}.json"
