"""Test in a browser: the mouse places, keys turn, buttons give modes, agents win."""

import math

import numpy as np
from browser_page import SMALL, Browser, needs_chromium
from floor_page import Floor
from panel_server import PanelUnderTest

pytestmark = needs_chromium

NEAR = 0.1  # m


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
            page.locator(".place-words", has_text=f"{label}: placed.").wait_for()
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


def test_the_persons_keys_walk_wherever_the_focus_is(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "test") as page:
        floor = Floor(page)
        before = floor.view["z"]
        floor.press("Go on")  # which has the focus now
        page.keyboard.down("w")
        floor.until(lambda view: view["z"] > before)
        page.keyboard.up("w")
        floor.press("Pause")
        floor.choose("Enemy")
        page.locator("canvas.map").focus()
        page.keyboard.press("ArrowUp")  # which moves what is to be placed
        page.keyboard.press("Enter")
        floor.until(lambda view: len(view["bodies"]) == 1)


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
