"""Play in a browser: a game is won by keys and mouse."""

import json
import math
import re
from functools import partial
from typing import Any

from browser_page import Browser, needs_chromium
from panel_server import PanelUnderTest

from aimbot_lab.panel.server.actors import GameActor, playable_settings
from aimbot_lab.panel.server.game import ChosenEpisode, EpisodeGame
from aimbot_lab.worlds.registry import type_of

pytestmark = needs_chromium

PIXEL = 0.0025  # rad that a pixel of the mouse turns
TURNS = 40  # at most
MOST, NEAR = (
    0.3,
    0.03,
)  # rad that are turned at once, of 0.4 that a decision can; and left at lastTURNS = 40  # at most
SETTINGS = type_of(playable_settings()).settings(num_envs=1)


def circle_and_seed() -> tuple[list[float], int]:
    """A seed whose circle is near, with a free way there."""
    person = GameActor("person", SETTINGS, None)
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
        bearing = math.atan2(circle[0] - 2.0, circle[1] - 2.0)
        for _ in range(TURNS):
            if abs(missing := bearing - views[-1]["yaw"]) < NEAR:
                break
            x += max(-MOST, min(missing, MOST)) / PIXEL
            page.mouse.move(x, y)
            page.wait_for_timeout(300)  # three decisions, in which that turns the agent
        page.keyboard.down("w")
        page.locator(".banner.won").wait_for()
        page.keyboard.up("w")
        page.locator(".scores tbody tr", has_text="you").filter(has_text="1 of 1").wait_for()
        page.locator(".scores tbody tr", has_text="greedy").wait_for()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save replay").click()
        assert download.value.suggested_filename == f"goto-{seed}.json"


def test_keys_begin_a_game_wherever_the_focus_is_and_then_do_nothing_else(
    browser: Browser, panel: PanelUnderTest
) -> None:
    focus = "#target", "#beside", "#seed", "#tab-play", "#tab-test", ".log", "canvas.map"
    keys = "w", "d", "ArrowUp", "Space", "q"
    places = [("w", place) for place in focus]
    places += [(key, "body") for key in keys] + [
        ("Space", "#tab-play"),
        ("Space", "canvas.map"),
        ("ArrowUp", "canvas.map"),
    ]
    with browser.page(panel, "play", size=(900, 400)) as page:  # which has more than fits
        waits = page.locator(".banner", has_text="walk with WASD")
        for target, (key, place) in [
            ("duel", ("w", "#target")),
            *(("goto", one) for one in places),
        ]:
            page.locator("#target option").nth(3).wait_for(state="attached")
            page.locator("#target").select_option(target)
            page.locator(".mission strong", has_text=re.compile(target, re.IGNORECASE)).wait_for()
            waits.wait_for()
            page.evaluate("document.activeElement.blur()")
            page.locator(place).focus()
            scrolled = page.evaluate("scrollY")
            page.keyboard.down(key)
            page.get_by_role("button", name="Take the mouse").wait_for(timeout=10_000)
            page.keyboard.up(key)
            for other in ("ArrowDown", "Space", "ArrowRight"):  # a list, a button, a tab
                page.keyboard.press(other)
            assert page.evaluate("scrollY") == scrolled, (key, place)
            assert page.locator("#target").input_value() == target
            assert page.evaluate("location.hash") == "#play"
            assert page.get_by_role("button", name="Take the mouse").is_visible()
        page.get_by_role("button", name="Again").click()
        waits.wait_for()
        page.keyboard.press("Space")  # the button has the keyboard no more
        page.get_by_role("button", name="Take the mouse").wait_for()


def test_a_list_and_a_field_keep_their_keys_until_the_game_runs(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "play") as page:
        page.locator("#level option").nth(5).wait_for(state="attached")
        page.locator(".banner", has_text="walk with WASD").wait_for()
        page.locator("#level").focus()
        page.keyboard.press("ArrowDown")
        page.locator(".mission strong", has_text="difficulty 1").wait_for()
        assert page.evaluate("document.activeElement.id") == "level"
        page.locator("#seed").fill("7")
        page.locator("#seed").press("ArrowUp")
        assert page.locator("#seed").input_value() == "8"
        assert page.locator(".banner", has_text="walk with WASD").is_visible()


NO_CANVAS = "HTMLCanvasElement.prototype.getContext = () => null"


def test_a_browser_without_canvas_says_so_and_everything_else_goes_on(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel) as page:  # whose faults the fixture looks for
        page.add_init_script(NO_CANVAS)
        page.reload()
        page.locator("#no-canvas", has_text="draws no canvas").wait_for()
        page.locator("#tab-test").click()
        page.get_by_role("button", name="StayMode").click()
        page.locator(".mission strong", has_text="Stay").wait_for()
        page.locator("#tab-play").click()
        page.locator(".mission strong", has_text="difficulty").wait_for()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.locator("#no-canvas").is_visible()
