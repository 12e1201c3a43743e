"""The arena's scenes, as the web page shows them."""

from dataclasses import replace
from math import atan2
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.display import (
    ENEMY,
    NOTHING,
    WALL,
    Body,
    Mouse,
    SceneEditor,
    SceneView,
    WorldScenes,
)
from aimbot_lab.foundation.world import Float32Array, Scenario
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, TARGETS, ArenaState
from aimbot_lab.worlds.arena.replays import goal
from aimbot_lab.worlds.arena.scenes.placing import RowRecord
from aimbot_lab.worlds.arena.settings import ArenaSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.arena.arena import Arena

DIGITS = 6  # of metres and radians that a page is sent
RAY_DIGITS = 4
ATTACK_COLUMN = 2  # of an action
NAMES = {code: name for name, code in TARGETS.items()}


def row_view(
    state: ArenaState, row: int, *, rays: int, record: RowRecord | None = None
) -> SceneView:
    """What stands in `row` and what its `rays` meet; with `record` every block that stands."""
    numbers = state.parameters[row]
    (x, z), (base_x, base_z, diameter) = state.position[row].tolist(), state.fire_base[row].tolist()
    return SceneView(
        size=float(numbers[core.AT.floor_size]),
        x=_short(x),
        z=_short(z),
        yaw=_short(float(state.yaw[row])),
        radius=float(numbers[core.AT.agent_radius]),
        view_angle=float(numbers[core.AT.rays_view_angle]),
        ready=bool(state.gun_ticks[row] <= 0),
        boxes=tuple(map(_box, state.obstacles[row, : int(state.obstacle_count[row])].tolist())),
        plots=_plots(state, row, record),
        circle=(_short(base_x), _short(base_z), diameter / 2) if diameter else None,
        bodies=_bodies(state, row),
        rays=_rays(state, row, rays),
        ray_range=float(numbers[core.AT.rays_range]),
        heights=(core.EYE_HEIGHT, core.WALL_HEIGHT, core.BODY_HEIGHT),
        target=_target(state, row),
        goal=goal(state, row),
        seconds_left=_seconds_left(state, row),
    )


def events(before: SceneView, after: SceneView, action: Float32Array) -> tuple[bool, int]:
    """Whether `action` [4] fired, and which body it hit; -1: none."""
    fired = before.ready and bool(action[ATTACK_COLUMN] > 0)
    pairs = zip(before.bodies, after.bodies, strict=False)
    hits = [k for k, (old, new) in enumerate(pairs) if new.hits_left < old.hits_left]
    return fired, hits[0] if fired and hits else -1


def _short(number: float) -> float:
    return round(number, DIGITS)


def _box(box: list[float]) -> tuple[float, float, float, float]:
    low_x, low_z, high_x, high_z = map(_short, box)
    return low_x, low_z, high_x, high_z


def _plots(
    state: ArenaState, row: int, record: RowRecord | None
) -> tuple[tuple[float, float, float, float], ...]:
    corners = [(block.x, block.z) for block in record.blocks] if record else []
    if not record and state.preset[row] >= 0:
        corners = [tuple(state.block[row].tolist())]
    return tuple(_box([x, z, x + BLOCK_SIZE, z + BLOCK_SIZE]) for x, z in corners)


def _bodies(state: ArenaState, row: int) -> tuple[Body, ...]:
    radius = float(state.parameters[row, core.AT.enemy_radius])
    free = state.target[row] == core.TARGET.free
    return tuple(
        Body(
            x=_short(float(state.enemies[row, k, 0])),
            z=_short(float(state.enemies[row, k, 1])),
            radius=radius,
            hits_left=int(state.enemy_hits_left[row, k]),
            counts=bool(free or state.enemy_is_target[row, k]),
        )
        for k in range(int(state.enemy_count[row]))
    )


def _rays(state: ArenaState, row: int, rays: int) -> tuple[tuple[float, float, int], ...]:
    reach = float(state.parameters[row, core.AT.rays_range])
    met = np.minimum(state.ray_distance[row, :rays].astype(np.float64), reach)
    found = []
    for ray in range(rays):
        angle = atan2(float(state.ray_sin[row, ray]), float(state.ray_cos[row, ray]))
        seen = state.ray_distance[row, ray] <= reach
        kind = (ENEMY if state.ray_hit[row, ray] >= 0 else WALL) if seen else NOTHING
        found.append((round(angle, RAY_DIGITS), round(float(met[ray]), RAY_DIGITS), kind))
    return tuple(found)


def _target(state: ArenaState, row: int) -> str:
    level, name = int(state.difficulty[row]), NAMES[int(state.target[row])].capitalize()
    return f"{name}, difficulty {level}" if level else name


def _seconds_left(state: ArenaState, row: int) -> float | None:
    numbers = state.parameters[row]
    if state.target[row] == core.TARGET.stay:
        return None
    period = numbers[core.AT.decision_period] * numbers[core.AT.fixed_timestep]
    return round(max(float(numbers[core.AT.time_limit] - state.decisions[row] * period), 0.0), 2)


MOUSE = 3  # column of an action
BACK = 2  # and left: index of a branch whose 1 is ahead or right


class ArenaScenes(WorldScenes):
    """Rows of the arena; nothing heavy is loaded before one is looked at."""

    resting = Scenario({"stay": 1.0})

    def editor(self, world: "Arena") -> SceneEditor:
        """The test mode of the arena."""
        from aimbot_lab.worlds.arena.scenes.files import ArenaEditor

        return ArenaEditor(world)

    def view(
        self,
        world: "Arena",
        row: int,
        *,
        ended: bool = False,
        before: SceneView | None = None,
        action: Float32Array | None = None,
    ) -> SceneView:
        """`row` now, or as its last episode ended."""

        last = world.ended_state if ended else None
        state = world.state if last is None else last
        record = world.records.get(row)
        if record is not None and record.episode != state.episode[row]:
            record = None
        shown = row_view(state, row, rays=world.settings.rays.count, record=record)
        if before is None or action is None:
            return shown
        fired, hit = events(before, shown, action)
        return replace(shown, fired=fired, hit=hit)

    def replayed(self, settings: ArenaSettings, state: Any) -> SceneView:
        """The row that a renderer is given; its hit enemy, as it was before the shot."""

        row, hit = state
        return replace(row_view(row, 0, rays=settings.rays.count), hit=hit)

    def mouse(self, settings: ArenaSettings) -> Mouse:
        """The mouse turns the agent."""
        return Mouse(MOUSE, settings.mouse_limit, settings.mouse_factor)

    def action(self, *, right: int, ahead: int, attack: bool, mouse: float) -> Float32Array:
        """Vertical, horizontal, attack, mouse."""
        vertical, horizontal = (BACK if way < 0 else way for way in (ahead, right))
        return np.array([vertical, horizontal, attack, mouse], np.float32)
