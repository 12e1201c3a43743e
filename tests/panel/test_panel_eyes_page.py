"""The view through the eyes, in a browser: it shows what the rays hit, at its full size."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
from browser_page import Browser, needs_chromium
from panel_server import PanelUnderTest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.scenes.editing import Placement
from aimbot_lab.panel.server.games.actors import Actor, playable_settings
from aimbot_lab.panel.server.games.scene_game import SceneGame
from aimbot_lab.worlds.registry import type_of

pytestmark = needs_chromium

SCENES = 200
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
