"""Play and Test in a browser: games, placing, modes, and the view through the eyes."""

import json
import math
import re
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browser_page import MS, SMALL, Browser, needs_chromium, wait_for_text
from floor_page import Floor
from panel_server import PanelUnderTest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import Placement
from aimbot_lab.panel.server.actors import GameActor, match_target, playable_settings, set_up
from aimbot_lab.panel.server.game import ChosenEpisode, EpisodeGame, Keys, SceneGame
from aimbot_lab.panel.server.messages import Loader
from aimbot_lab.worlds.registry import type_of

pytestmark = needs_chromium
PIXEL = 0.0025  # rad that a pixel of the mouse turns
TURNS = 40  # at most
MOST, NEAR = 0.3, 0.03  # rad that are turned at once, of 0.4 that a decision can; left at last
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
            turned = len(views) + 3  # decisions, in which that turns the agent
            for _ in range(MS // 50):
                if len(views) >= turned:
                    break
                page.wait_for_timeout(50)
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
    places = [("w", "#target"), ("w", "#seed"), ("q", "body"), ("Space", "#tab-play")]
    places += [("d", ".log"), ("ArrowUp", "canvas.map")]
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
            page.get_by_role("button", name="Take the mouse").wait_for()
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


def test_a_finger_plays_by_the_buttons_below_the_view(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "play", size=SMALL, has_touch=True, is_mobile=True) as page:
        page.locator(".banner", has_text="walk with the buttons").wait_for()
        page.locator(".pad .ahead").tap()
        wait_for_text(page, ".mission .seconds", r"^2\d\.\d s left$")


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
    with browser.page(panel, fresh=True) as page:  # whose faults the fixture looks for
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


NEAREST = 0.1  # m


def centre(plot: list[float]) -> tuple[float, float]:
    return (plot[0] + plot[2]) / 2, (plot[1] + plot[3]) / 2


def test_a_right_click_places_each_thing_where_its_preview_was(
    browser: Browser, panel: PanelUnderTest
) -> None:
    with browser.page(panel, "test") as page:
        floor = Floor(page)
        dice = np.random.default_rng(3)
        for label in ("Enemy", "Goto block 2", "Attack block 5"):
            floor.choose(label)
            x, z = floor.middle(*map(float, dice.uniform(15.0, 38.0, 2)))
            floor.place(x, z)
            view = floor.until(lambda view: bool(view["bodies"] or view["plots"]))
            body = view["bodies"][0] if label == "Enemy" else None
            there = (body["x"], body["z"]) if body else centre(view["plots"][0])
            assert math.dist(there, (x, z)) < NEAREST, label
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


SCENES = 80
SIGHTS = """
async (views) => {
  const { FirstPerson } = await import("/page/scene/first_person.js");
  const { castRays } = await import("/page/scene/casting.js");
  const eyes = new FirstPerson(document.createElement("canvas"));
  return views.map((view) => {
    eyes.draw(view);
    const { wall, bodies } = eyes.columns[eyes.half];
    const met = bodies.filter(({ body }) => view.bodies[body].hits_left > 0).at(-1);
    return [met ? [1, met.distance] : [0, wall.distance], castRays(view)];
  });
}
"""
DRAWN = """
async (pairs) => {
  const { drawFloor } = await import("/page/floor_paint.js");
  const { between } = await import("/page/scene/between.js");
  const recorder = (drawn, path = []) => new Proxy({}, {
    get: (kept, name) => name in kept ? kept[name] : (...at) => {
      if (name === "beginPath") path.length = 0;
      else if (name === "moveTo" || name === "lineTo") path.push(at);
      else if (name === "fill" || name === "stroke") drawn.push([name, [...path]]);
    },
  });
  return pairs.flatMap(([before, now]) => [0.4, 1].map((share) => {
    const scene = { ...between(before, now, share), fired: true }, drawn = [];
    drawFloor(recorder(drawn), scene, { colours: {}, path: [], pixel: 0.05 });
    return { scene, drawn };
  }));
}
"""


def random_views(count: int) -> list[dict[str, Any]]:
    """Scenes with several blocks and enemies, some of them down, each seen from anywhere."""
    return [now for _, now in random_pairs(count)]


def random_pairs(count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The same, each with the scene a decision before it."""
    dice = np.random.default_rng(16)
    test, views = SceneGame(GameActor("person", SETTINGS, None)), []
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
        x, z, yaw = map(float, dice.uniform((0.5, 0.5, -9.0), (46.5, 46.5, 9.0)))
        before_x, before_z, before_yaw = dice.uniform((-0.5, -0.5, -0.4), (0.5, 0.5, 0.4))
        pair = []
        for at, towards in (((x + before_x, z + before_z), yaw + before_yaw), ((x, z), yaw)):
            with suppress(MisuseError):
                test.editor.place_agent(0, at, yaw=towards)
                pair.append(asdict(test.game.scenes.view(test.game.world, 0)))
        if len(pair) == 2:
            views.append(tuple(pair))
    return views


def match_pairs(count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The scenes of a match, each with the one a decision before it."""
    match = set_up(SimpleNamespace(loader=Loader()), "script:greedy")
    chosen = ChosenEpisode(match_target()[0], 5, 3)
    game = EpisodeGame(match.person, chosen, match.rival).game
    views = [asdict(game.view)]
    while len(views) <= count:
        right = len(views) // 9 % 3 - 1
        game.keys = Keys(ahead=1, right=right, attack=False, mouse=2.5 * len(views))
        game.decide()
        views.append(asdict(game.view))
    return [*pairwise(views)]


def test_what_is_seen_ends_at_walls_on_the_way_between_two_decisions(
    browser: Browser, panel: PanelUnderTest
) -> None:
    """The rays, the cone of view and the line of a shot, of both agents in a match."""
    with browser.page(panel, "test") as page:
        page.locator("canvas.eyes").wait_for()
        shown = page.evaluate(DRAWN, [*random_pairs(30), *match_pairs(20)])
    cones = 0
    for one in shown:
        scene = one["scene"]
        eyes = [(scene["x"], scene["z"]), *((f["x"], f["z"]) for f in scene["fighters"])]
        for kind, path in one["drawn"]:
            if not path or not any(math.dist(path[0], eye) < 1e-9 for eye in eyes):
                continue
            if len(path) == 2 and math.dist(*path) == pytest.approx(1.3):
                continue  # where it looks, as a stroke of the agent
            cones += kind == "fill"
            points = spread(np.array(path))
            assert ((points > -0.02) & (points < scene["size"] + 0.02)).all()
            for left, low, right, high in scene["boxes"]:
                inside = (points > (left + 0.02, low + 0.02)) & (
                    points < (right - 0.02, high - 0.02)
                )
                assert not inside.all(axis=1).any(), (kind, path, (left, low, right, high))
    assert cones == 2 * (30 + 2 * 20)


def spread(path: np.ndarray) -> np.ndarray:
    """Points over the triangles between the first of `path` and each two neighbours, or a line."""
    first, rest = path[0], path[1:]
    sides = np.linspace(0.0, 1.0, 4)[:, None, None]
    edges = rest[None, :-1] + sides * (rest[None, 1:] - rest[None, :-1]) if len(rest) > 1 else rest
    lengths = np.linspace(0.0, 1.0, 60)[:, None]
    found: np.ndarray = (first + lengths[..., None] * (edges.reshape(1, -1, 2) - first)).reshape(
        -1, 2
    )
    return found


def test_the_crosshairs_column_and_the_rays_from_above_show_what_the_agents_rays_hit(
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
    for view, (sight, _), (_, length, ray) in zip(views, shown, middle, strict=True):
        kind, distance = sight
        if kind == ray and abs(distance - length) < 0.005:  # places come to a tenth of a millimetre
            continue
        grazing += 1
        assert is_edge(view), (kind, distance, ray, length)
    assert grazing <= 2
    cast = np.array([rays for _, rays in shown])
    off = np.abs(cast - np.array([view["rays"] for view in views])) > (0.0, 0.03, 0.0)
    assert off.any(axis=2).mean() < 0.005  # that meet an edge


def is_edge(view: dict[str, Any]) -> bool:
    """Whether a body's edge lies on the middle ray."""
    sine, cosine = math.sin(view["yaw"]), math.cos(view["yaw"])
    return any(
        abs(abs((b["x"] - view["x"]) * cosine - (b["z"] - view["z"]) * sine) - b["radius"]) < 0.01
        for b in view["bodies"]
    )
