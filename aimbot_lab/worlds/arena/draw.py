"""Rows of the arena and target blocks as pictures from above: x to the right, z up."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.foundation.display import Scene
from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds import canvas as paint
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import TARGETS, ArenaState, Floats
from aimbot_lab.worlds.arena.presets import RADIUS, Preset
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import FIRED, NAMES, clock
from aimbot_lab.worlds.canvas import Canvas, Colour, Opaque

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


def draw_row(
    state: ArenaState,
    row: int,
    settings: ArenaSettings,
    *,
    size: int = 480,
    trail: Sequence[Floats] = (),
    fired: bool = False,
    hit: int = -1,
) -> Picture:
    """Row `row` from above, [size, size, 3]: floor, block, FireBase, enemies, agent and rays.

    Bystanders are purple, enemies that are down crosses. A dot ends each ray that hits something
    within range; those that hit an enemy are red. The outer wall carries target, difficulty and
    time left.
    A blue line is the agent's way so far, its `trail` [N, 2] in m, an orange one the shot that the
    last decision `fired`, which ends at the enemy `hit` (-1: none).
    """
    floor = state.parameters[row, core.AT.floor_size]
    canvas = Canvas(-OUTER_WALL, floor + OUTER_WALL, size=size)
    _draw_floor(canvas, floor)
    _draw_block(canvas, state, row)
    _draw_view(canvas, state, row, settings.rays.count)
    if len(trail) > 1:
        canvas.line(trail, TRAIL, width=1.5)
    _draw_enemies(canvas, state, row)
    if fired:
        end = _shot_end(state, row, settings.rays.count, hit)
        canvas.line([state.position[row], end], SHOT, width=2.0)
        canvas.disc(end, SHOT_MARK, fill=None, edge=SHOT)
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
    what = NAMES[target] + (f", difficulty {difficulty}" if difficulty else "")
    if target == core.TARGET.stay:
        return what, ""
    return what, f"{clock(state, row)[1]:.1f} s"


COLOURS = (
    *(paint.FLOOR, paint.GRID, paint.BLOCK, paint.BLOCK_EDGE, paint.WALL, paint.OBSTACLE),
    *(paint.ENEMY, paint.ENEMY_DOWN, paint.AGENT, paint.DARK, paint.FIRE_BASE_EDGE, SHOT),
    paint.blended(paint.BLOCK, paint.FIRE_BASE),
    paint.blended(paint.BLOCK, paint.FIRE_BASE, VIEW),
    paint.blended(paint.BLOCK, VIEW),
    paint.blended(paint.FLOOR, VIEW),
    paint.blended(paint.FLOOR, VIEW, RAY),
    paint.blended(paint.FLOOR, VIEW, ENEMY_RAY),
    paint.blended(paint.FLOOR, TRAIL),
)
GROWN = 1.8  # how much larger the agent and its enemies are drawn, to be seen at all


class ArenaRenderer:
    """Draws the scenes of one episode; knows where the agent was."""

    def __init__(self, settings: ArenaSettings) -> None:
        self._settings = settings
        self._trail: list[Floats] = []

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """The arena from above, [size, size, 3]; with `coarse` agent and enemies are larger."""
        state, hit = scene.state
        self._trail.append(state.position[0].copy())
        if coarse:
            numbers = state.parameters.copy()
            numbers[:, [core.AT.agent_radius, core.AT.enemy_radius]] *= GROWN
            state = state._replace(parameters=numbers)
        fired = bool(scene.events[FIRED])
        return draw_row(
            state, 0, self._settings, size=size, trail=self._trail, fired=fired, hit=hit
        )


COLUMNS = 8  # blocks in a line of a sheet before the next one begins
MARGIN = 0.75  # m of floor around a block
HEAD, SIDE = 30, 90  # pixels above the blocks of a sheet, and left of them
SIGN, LARGE = 14, 15  # pixels of a sign in the legend, and of the large letters
LEGEND: tuple[tuple[str, Colour, Colour], ...] = (
    ("FireBase", paint.FIRE_BASE, paint.FIRE_BASE_EDGE),
    ("obstacle", paint.OBSTACLE, paint.WALL),
    ("enemy", paint.ENEMY, paint.DARK),
)


def draw_preset_sheet(presets: Sequence[Preset], *, cell: int = 132) -> Image.Image:
    """The blocks of `presets`, `cell` pixels wide each, sorted by target and difficulty."""
    lines = _lines(presets)
    drawn = [[(one.name, draw_preset(one, size=cell)) for one in line] for line in lines]
    whole = paint.sheet(drawn, cell=cell, head=HEAD, side=SIDE)
    write = ImageDraw.Draw(whole)
    _write_legend(whole, write, f"{len(presets)} presets")
    small, large = (ImageFont.load_default(size) for size in (paint.LETTERS, LARGE))
    for number, line in enumerate(lines):
        top, first = HEAD + number * (cell + paint.NAME + paint.GAP), line[0]
        if number == 0 or _kind(first) != _kind(lines[number - 1][0]):
            level = f"difficulty {first.difficulty}"
            write.text((paint.GAP, top), first.target, fill=paint.INK, font=large)
            write.text((paint.GAP, top + paint.NAME), level, fill=paint.INK, font=small)
    return whole


def draw_preset(preset: Preset, *, size: int) -> Image.Image:
    """One block in its own frame, `size` x `size` pixels."""
    canvas = Canvas(-MARGIN, core.BLOCK_SIZE + MARGIN, size=size)
    canvas.box(
        np.array([0.0, 0.0, core.BLOCK_SIZE, core.BLOCK_SIZE]), paint.BLOCK, edge=paint.BLOCK_EDGE
    )
    x, z, diameter = preset.fire_base
    centre = np.array([x, z])
    canvas.disc(centre, diameter / 2, fill=paint.FIRE_BASE, edge=paint.FIRE_BASE_EDGE)
    for box in preset.obstacles:
        canvas.box(np.array(box), paint.OBSTACLE, edge=paint.WALL)
    for enemy in preset.enemies:
        canvas.disc(np.array(enemy), RADIUS, fill=paint.ENEMY, edge=paint.DARK)
    return canvas.picture()


def _lines(presets: Sequence[Preset]) -> list[list[Preset]]:
    """Presets of one target and difficulty each, at most COLUMNS of them."""
    ordered = sorted(presets, key=_kind)
    lines = []
    for _, group in groupby(ordered, key=_kind):
        alike = list(group)
        lines += [alike[first : first + COLUMNS] for first in range(0, len(alike), COLUMNS)]
    return lines


def _kind(preset: Preset) -> tuple[int, int]:
    return TARGETS[preset.target], preset.difficulty


def _write_legend(sheet: Image.Image, write: ImageDraw.ImageDraw, title: str) -> None:
    """The first line: how many presets there are, and what the signs mean."""
    write.text(
        (paint.GAP, HEAD / 2),
        title,
        fill=paint.INK,
        font=ImageFont.load_default(LARGE),
        anchor="lm",
    )
    small = ImageFont.load_default(paint.LETTERS)
    left = SIDE + SIDE // 2
    for words, fill, edge in LEGEND:
        sign = Canvas(-1.0, 1.0, size=SIGN)
        if words == "obstacle":
            sign.box(np.array([-0.8, -0.8, 0.8, 0.8]), fill, edge=edge)
        else:
            sign.disc(np.zeros(2), 0.9, fill=fill, edge=edge)
        sheet.paste(sign.picture(), (left, (HEAD - SIGN) // 2))
        write.text((left + SIGN + 4, HEAD / 2), words, fill=paint.INK, font=small, anchor="lm")
        left += SIGN + 4 + round(small.getlength(words)) + 2 * paint.GAP
