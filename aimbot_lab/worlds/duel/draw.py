"""Matches as pictures from above, in the home agent's frame: x to the right, z up."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import atan2, cos, pi, sin

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.foundation.display import Fighter, Scene, SceneView
from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds import canvas as paint
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.core.state import Floats
from aimbot_lab.worlds.arena.display import row_view
from aimbot_lab.worlds.arena.draw import CAPTION, GROWN, GUN_LENGTH, OUTER_WALL, SHOT
from aimbot_lab.worlds.arena.spec import clock
from aimbot_lab.worlds.canvas import Canvas, Colour, Opaque
from aimbot_lab.worlds.duel.core.state import HEALTH, HIT, KINDS, NO_SHOT, TARGET, DuelState
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE, Hall
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.spec import SEATS, goal

GUN_WIDTH = 2.0  # pixels
HIT_MARK = 0.9  # m, radius of the ring about who is hit
AGENT_COLOURS: tuple[Opaque, Opaque] = (paint.AGENT, paint.ENEMY)  # home and away
VIEWS: tuple[Colour, Colour] = ((24, 104, 214, 34), (208, 36, 48, 34))
WAYS: tuple[Colour, Colour] = ((24, 104, 214, 120), (208, 36, 48, 120))
COLOURS = (
    *(paint.FLOOR, paint.WALL, paint.OBSTACLE, paint.AGENT, paint.ENEMY, paint.DARK, SHOT),
    *(paint.blended(paint.FLOOR, view) for view in (*VIEWS, *WAYS)),
)


def draw_match(
    state: DuelState,
    row: int,
    settings: DuelSettings,
    *,
    size: int = 480,
    ways: Sequence[Sequence[Floats]] = (),
) -> Picture:
    """Match `row`, [size, size, 3]: the hall, both agents with what they see, shots and healths.

    Home is blue, away red, who is down a cross. Orange lines are the shots of the last decision, a
    ring is about who was hit. `ways` are places [2] of home and away so far, in home's frame. The
    outer wall carries the healths, the layout's difficulty and the time left.
    """
    canvas = Canvas(-OUTER_WALL, FLOOR_SIZE + OUTER_WALL, size=size)
    low, high = -OUTER_WALL, FLOOR_SIZE + OUTER_WALL
    canvas.box(np.array([low, low, high, high]), paint.WALL)
    canvas.box(np.array([0.0, 0.0, FLOOR_SIZE, FLOOR_SIZE]), paint.FLOOR)
    for box in state.seats.obstacles[row, : state.seats.obstacle_count[row]]:
        canvas.box(box, paint.OBSTACLE, edge=paint.WALL)
    for agent in range(2):
        _draw_view(canvas, state, row, agent=agent, rays=settings.rays.count)
    for way, colour in zip(ways, WAYS, strict=False):
        if len(way) > 1:
            canvas.line(way, colour, width=1.5)
    for agent in range(2):
        _draw_agent(canvas, state, row, agent=agent, rays=settings.rays.count)
    picture = canvas.picture()
    _write(ImageDraw.Draw(picture), state, row, size=size)
    return np.array(picture)


def seat_of(state: DuelState, row: int, agent: int) -> int:
    """Where the arrays of seats hold this agent."""
    return row + agent * len(state.layout)


def in_home_frame(place: Floats, agent: int) -> Floats:
    """A place [..., 2] of the agent's own frame as home sees it."""
    turned: Floats = FLOOR_SIZE - place if agent else place
    return turned


def _draw_view(canvas: Canvas, state: DuelState, row: int, *, agent: int, rays: int) -> None:
    seat, seats = seat_of(state, row, agent), state.seats
    reach = seats.parameters[seat, arena_core.AT.rays_range]
    distance = np.minimum(seats.ray_distance[seat, :rays].astype(np.float64), reach)
    turned = np.arctan2(seats.ray_sin[seat, :rays], seats.ray_cos[seat, :rays])
    bearing = seats.yaw[seat] + turned
    place = seats.position[seat]
    ends = place + distance[:, None] * np.stack([np.sin(bearing), np.cos(bearing)], axis=1)
    canvas.polygon(in_home_frame(np.concatenate([place[None], ends]), agent), VIEWS[agent])


def _draw_agent(canvas: Canvas, state: DuelState, row: int, *, agent: int, rays: int) -> None:
    seat, seats = seat_of(state, row, agent), state.seats
    ahead = np.array([np.sin(seats.yaw[seat]), np.cos(seats.yaw[seat])])
    place = seats.position[seat]
    radius = float(seats.parameters[seat, arena_core.AT.agent_radius])
    at = in_home_frame(place, agent)
    if state.shot[seat] != NO_SHOT:
        met = float(seats.ray_distance[seat, rays // 2])
        end = seats.enemies[seat, 0] if state.shot[seat] == HIT else place + met * ahead
        canvas.line([at, in_home_frame(end, agent)], SHOT, width=GUN_WIDTH)
        if state.shot[seat] == HIT:
            canvas.disc(in_home_frame(end, agent), HIT_MARK, fill=None, edge=SHOT)
    if state.health[seat] <= 0:
        canvas.cross(at, radius, AGENT_COLOURS[agent])
        return
    muzzle = in_home_frame(place + GUN_LENGTH * ahead, agent)
    canvas.line([at, muzzle], paint.DARK, width=GUN_WIDTH)
    canvas.disc(at, radius, fill=AGENT_COLOURS[agent], edge=paint.DARK)


def _write(write: ImageDraw.ImageDraw, state: DuelState, row: int, *, size: int) -> None:
    """Healths of both, the difficulty, and the time left."""
    wall = OUTER_WALL * size / (FLOOR_SIZE + 2 * OUTER_WALL)  # pixels
    font = ImageFont.load_default(max(wall * 0.8, 8.0))
    for agent, (x, y) in enumerate(((wall, size - wall / 2), (wall, wall / 2))):
        seat = seat_of(state, row, agent)
        health = f"{SEATS[agent]} {state.health[seat]}/{state.traits[seat, HEALTH]:g}"
        write.text((x, y), health, fill=CAPTION, font=font, anchor="lm")
    _, left = clock(state.seats, row)
    when = f"difficulty {int(state.difficulty[row])}   {left:.1f} s left"
    write.text((size - wall, wall / 2), when, fill=CAPTION, font=font, anchor="rm")


class MatchRenderer:
    """Draws the scenes of one match; knows where both were."""

    def __init__(self, settings: DuelSettings) -> None:
        self._settings = settings
        self._ways: tuple[list[Floats], ...] = ([], [])

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """The hall from above, [size, size, 3]; with `coarse` agents are larger."""
        state: DuelState = scene.state
        for agent, way in enumerate(self._ways):
            way.append(np.array(in_home_frame(state.seats.position[agent].copy(), agent)))
        if coarse:
            numbers = state.seats.parameters.copy()
            numbers[:, [arena_core.AT.agent_radius, arena_core.AT.enemy_radius]] *= GROWN
            state = state._replace(seats=state.seats._replace(parameters=numbers))
        return draw_match(state, 0, self._settings, size=size, ways=self._ways)


DIGITS = 6  # of metres and radians


def match_view(state: DuelState, match: int, *, rays: int) -> SceneView:
    """Match `match`: what home sees, both agents, and the shots of the last decision."""
    views = [row_view(state.seats, seat_of(state, match, agent), rays=rays) for agent in range(2)]
    home, away = (
        _fighter(state, seat_of(state, match, agent), seen=views[agent], agent=agent)
        for agent in range(2)
    )
    kind = KINDS[int(state.kind[match])]
    what = "Duel" if kind == TARGET else f"Against {kind}"
    return replace(
        views[0],
        target=f"{what}, difficulty {int(state.difficulty[match])}",
        goal=goal(state, match),
        fired=home.fired,
        hit=0 if home.hit else -1,
        fighters=(home, away),
    )


def _fighter(state: DuelState, seat: int, *, seen: SceneView, agent: int) -> Fighter:
    """The agent of `seat`, which sees `seen` in a frame of its own."""
    numbers, shot = state.seats.parameters[seat], int(state.shot[seat])
    x, z, yaw = (
        (FLOOR_SIZE - seen.x, FLOOR_SIZE - seen.z, _wrapped(seen.yaw + pi))
        if agent
        else (seen.x, seen.z, seen.yaw)
    )
    return Fighter(
        x=round(x, DIGITS),
        z=round(z, DIGITS),
        yaw=round(yaw, DIGITS),
        radius=seen.radius,
        view_angle=seen.view_angle,
        health=int(state.health[seat]),
        max_health=int(state.traits[seat, HEALTH]),
        ready=seen.ready,
        reload_seconds=round(
            float(state.seats.gun_ticks[seat] * numbers[arena_core.AT.fixed_timestep]), DIGITS
        ),
        fired=shot != NO_SHOT,
        hit=shot == HIT,
        rays=seen.rays,
    )


def _wrapped(angle: float) -> float:
    return atan2(sin(angle), cos(angle))


def draw_layout_sheet(layouts: Sequence[Hall], *, cell: int = 160) -> Image.Image:
    """`layouts`, sorted by difficulty, `cell` pixels wide each: a line for each difficulty."""
    lines = [list(line) for _, line in groupby(layouts, key=lambda one: one.difficulty)]
    return paint.sheet(
        [
            [(f"{one.difficulty} {one.name}", draw_layout(one, size=cell)) for one in line]
            for line in lines
        ],
        cell=cell,
    )


def draw_layout(layout: Hall, *, size: int) -> Image.Image:
    """One hall from above, `size` x `size` pixels."""
    canvas = Canvas(0.0, FLOOR_SIZE, size=size)
    for box in layout.all_boxes:
        canvas.box(np.array(box), paint.OBSTACLE, edge=paint.WALL)
    return canvas.picture()
