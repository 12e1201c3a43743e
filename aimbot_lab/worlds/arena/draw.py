"""Rows of the arena as pictures from above: x to the right, z up."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import ImageDraw, ImageFont

from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena.canvas import Canvas, Colour, Opaque
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import TARGETS, ArenaState, Floats
from aimbot_lab.worlds.arena.settings import ArenaSettings

OUTER_WALL = 1.5  # m of wall that is shown around the floor
GRID_STEP = 5.0  # m between the floor's lines
GUN_LENGTH = 1.0  # m
HIT_MARK = 0.22  # m
SHOT_MARK = 0.9  # m
VIEW: Colour = (24, 104, 214, 34)
RAY: Colour = (24, 104, 214, 80)
WALL_MARK: Colour = (24, 104, 214)
ENEMY_RAY: Colour = (208, 36, 48, 170)
TRAIL: Colour = (24, 104, 214, 120)
SHOT: Opaque = (255, 120, 0)
CAPTION: Colour = (255, 255, 255)
TARGET_NAMES = {code: name for name, code in TARGETS.items()}


class Doings(NamedTuple):
    """What the state itself does not show."""

    trail: Sequence[Floats] = ()  # [N, 2] m, where the agent was
    fired: bool = False  # whether the last decision fired
    hit: int = -1  # the enemy that this hit, -1: none


NOTHING = Doings()


def draw_row(
    state: ArenaState,
    row: int,
    settings: ArenaSettings,
    *,
    size: int = 480,
    doings: Doings = NOTHING,
) -> Picture:
    """Row `row` from above, [size, size, 3]: floor, block, FireBase, enemies, agent and rays.

    Bystanders are purple, enemies that are down crosses. A dot ends each ray that hits something
    within range; those that hit an enemy are red. The outer wall carries target, difficulty and
    time left.
    A blue line is the agent's way so far, an orange one a shot.
    """
    floor = state.parameters[row, core.AT.floor_size]
    canvas = Canvas(-OUTER_WALL, floor + OUTER_WALL, size=size)
    _draw_floor(canvas, floor)
    _draw_block(canvas, state, row)
    _draw_view(canvas, state, row, settings.rays.count)
    if len(doings.trail) > 1:
        canvas.line(doings.trail, TRAIL, width=1.5)
    _draw_enemies(canvas, state, row)
    if doings.fired:
        _draw_shot(canvas, state, row, _shot_end(state, row, settings.rays.count, doings.hit))
    _draw_agent(canvas, state, row)
    picture = canvas.picture()
    wall = OUTER_WALL * size / (floor + 2 * OUTER_WALL)  # pixels
    write = ImageDraw.Draw(picture)
    font = ImageFont.load_default(max(wall * 0.8, 8.0))
    what, when = _captions(state, row)
    write.text((wall, wall / 2), what, fill=CAPTION, font=font, anchor="lm")
    write.text((size - wall, wall / 2), when, fill=CAPTION, font=font, anchor="rm")
    return np.array(picture)


def _draw_floor(canvas: Canvas, floor: float) -> None:
    for at in np.arange(GRID_STEP, floor, GRID_STEP):
        canvas.line([np.array([at, 0.0]), np.array([at, floor])], paint.GRID)
        canvas.line([np.array([0.0, at]), np.array([floor, at])], paint.GRID)
    low, high = -OUTER_WALL, floor + OUTER_WALL
    for wall in (
        (low, low, 0.0, high),
        (floor, low, high, high),
        (low, low, high, 0.0),
        (low, floor, high, high),
    ):
        canvas.box(np.array(wall), paint.WALL)


def _draw_block(canvas: Canvas, state: ArenaState, row: int) -> None:
    if state.preset[row] >= 0:
        corner = state.block[row]
        outline = np.concatenate([corner, corner + core.BLOCK_SIZE])
        canvas.box(outline, paint.BLOCK, edge=paint.BLOCK_EDGE)
    x, z, diameter = state.fire_base[row]
    if diameter > 0:
        canvas.disc(np.array([x, z]), diameter / 2, fill=paint.FIRE_BASE, edge=paint.FIRE_BASE_EDGE)
    for box in state.obstacles[row, : state.obstacle_count[row]]:
        canvas.box(box, paint.OBSTACLE, edge=paint.WALL)


def _draw_view(canvas: Canvas, state: ArenaState, row: int, rays: int) -> None:
    reach = state.parameters[row, core.AT.rays_range]
    distance = state.ray_distance[row, :rays].astype(np.float64)
    hit = state.ray_hit[row, :rays]
    bearing = state.yaw[row] + np.arctan2(state.ray_sin[row, :rays], state.ray_cos[row, :rays])
    along = np.stack([np.sin(bearing), np.cos(bearing)], axis=1)
    agent = state.position[row]
    ends = agent + np.minimum(distance, reach)[:, None] * along
    canvas.polygon(np.concatenate([agent[None], ends]), VIEW)
    for end, enemy, seen in zip(ends, hit >= 0, distance <= reach, strict=True):
        canvas.line([agent, end], ENEMY_RAY if enemy and seen else RAY)
        if seen:
            canvas.disc(end, HIT_MARK, fill=paint.ENEMY if enemy else WALL_MARK)


def _shot_end(state: ArenaState, row: int, rays: int, hit: int) -> Floats:
    """Where a shot of the last decision ended."""
    agent = state.position[row]
    if hit >= 0:  # if it is down, the rays pass it already
        enemy: Floats = state.enemies[row, hit]
        return enemy
    # The gun's line is that of the middle ray.
    reach = min(float(state.ray_distance[row, rays // 2]), state.parameters[row, core.AT.gun_range])
    end: Floats = agent + reach * np.array([np.sin(state.yaw[row]), np.cos(state.yaw[row])])
    return end


def _draw_shot(canvas: Canvas, state: ArenaState, row: int, end: Floats) -> None:
    canvas.line([state.position[row], end], SHOT, width=2.0)
    canvas.disc(end, SHOT_MARK, fill=None, edge=SHOT)


def _draw_enemies(canvas: Canvas, state: ArenaState, row: int) -> None:
    radius = state.parameters[row, core.AT.enemy_radius]
    for k in range(state.enemy_count[row]):
        place = state.enemies[row, k]
        counts = state.target[row] == core.TARGET.free or state.enemy_is_target[row, k]
        if state.enemy_hits_left[row, k] > 0:
            fill = paint.ENEMY if counts else paint.BYSTANDER
            canvas.disc(place, radius, fill=fill, edge=paint.DARK)
        else:
            canvas.cross(place, radius, paint.ENEMY_DOWN if counts else paint.BYSTANDER_DOWN)


def _draw_agent(canvas: Canvas, state: ArenaState, row: int) -> None:
    place, yaw = state.position[row], state.yaw[row]
    muzzle = place + GUN_LENGTH * np.array([np.sin(yaw), np.cos(yaw)])
    canvas.line([place, muzzle], paint.DARK, width=2.0)
    canvas.disc(
        place, state.parameters[row, core.AT.agent_radius], fill=paint.AGENT, edge=paint.DARK
    )


def _captions(state: ArenaState, row: int) -> tuple[str, str]:
    """Target with its difficulty, and the time left."""
    target, difficulty = int(state.target[row]), int(state.difficulty[row])
    what = TARGET_NAMES[target] + (f", difficulty {difficulty}" if difficulty else "")
    if target == core.TARGET.stay:
        return what, ""
    numbers = state.parameters[row]
    period = numbers[core.AT.decision_period] * numbers[core.AT.fixed_timestep]
    left = max(numbers[core.AT.time_limit] - state.decisions[row] * period, 0.0)
    return what, f"{left:.1f} s"
