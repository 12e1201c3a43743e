"""The view through the eyes, in a browser: it shows what the rays hit, at its full size."""

import math
from contextlib import suppress
from dataclasses import asdict
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browser_page import Browser, needs_chromium
from panel_server import PanelUnderTest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.scenes import Placement
from aimbot_lab.panel.server.actors import GameActor, match_target, playable_settings, set_up
from aimbot_lab.panel.server.game import ChosenEpisode, EpisodeGame, Keys, SceneGame
from aimbot_lab.panel.server.loading import Loader
from aimbot_lab.worlds.registry import type_of

pytestmark = needs_chromium

SCENES = 200
SETTINGS = type_of(playable_settings()).settings(num_envs=1)
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
        game.keys = Keys(ahead=1, right=len(views) // 9 % 3 - 1, mouse=2.5 * len(views))
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


def test_the_view_through_the_eyes_is_drawn_at_its_full_size(
    browser: Browser, panel: PanelUnderTest
) -> None:
    (view,) = random_views(1)
    with browser.page(panel, "test") as page:
        page.locator("canvas.eyes").wait_for()
        milliseconds, width, height = page.evaluate(PICTURES, view)
    assert (width, height) == (960, 540)
    assert milliseconds > 0
