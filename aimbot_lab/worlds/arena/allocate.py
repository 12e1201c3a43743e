"""State arrays and tables for the kernels, built from settings and presets."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from aimbot_lab.foundation.kernels.lanes import LANES
from aimbot_lab.foundation.kernels.packed import Packed, RepeatedCall
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.kernels.spin_sync import SPIN_LIMIT
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.capacity import enemy_room
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.masks import keep_masks, write_masks_packed
from aimbot_lab.worlds.arena.core.state import (
    TARGETS,
    ArenaState,
    ArenaTables,
    PresetTables,
    ThreadWorkspace,
)
from aimbot_lab.worlds.arena.core.step import (
    advance_packed,
    advance_plain_packed,
    advance_sensed_packed,
    keep_advance,
)
from aimbot_lab.worlds.arena.presets import Preset
from aimbot_lab.worlds.arena.scenario import scenario_tables
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings
from aimbot_lab.worlds.arena.spec import enemy_columns

Kind = Literal["plain", "full", "sensed"]
COUNTERS = (
    "target",
    "difficulty",
    "preset",
    "block_turns",
    "obstacle_count",
    "enemy_count",
    "decisions",
    "gun_ticks",
    "spin_sum",
    "episode",
    "order",
    "scenario",
)  # [B] whole numbers of the state that begin at 0


def in_order(presets: Sequence[Preset]) -> tuple[Preset, ...]:
    """All presets, sorted by target and difficulty."""
    return tuple(sorted(presets, key=lambda preset: (TARGETS[preset.target], preset.difficulty)))


def preset_tables(presets: Sequence[Preset]) -> PresetTables:
    """All presets, sorted by target and difficulty, with where each kind begins."""
    ordered = in_order(presets)
    most = max((len(preset.obstacles) for preset in ordered), default=0)
    kinds = (core.TARGET_COUNT, core.DIFFICULTY_COUNT + 1)
    tables = PresetTables(
        kind_first=np.zeros(kinds, np.int64),
        kind_count=np.zeros(kinds, np.int64),
        obstacles=np.zeros((len(ordered), max(most, 1), 4)),
        obstacle_count=np.array([len(preset.obstacles) for preset in ordered], np.int64),
        enemies=np.zeros((len(ordered), core.MAX_ENEMIES, 2)),
        enemy_count=np.array([len(preset.enemies) for preset in ordered], np.int64),
        fire_base=np.array([preset.fire_base for preset in ordered]).reshape(-1, 3),
    )
    for index, preset in enumerate(ordered):
        kind = TARGETS[preset.target], preset.difficulty
        if tables.kind_count[kind] == 0:
            tables.kind_first[kind] = index
        tables.kind_count[kind] += 1
        for slot, box in enumerate(preset.obstacles):
            tables.obstacles[index, slot] = box
        for slot, spot in enumerate(preset.enemies):
            tables.enemies[index, slot] = spot
    return tables


def new_tables(settings: ArenaSettings, presets: Sequence[Preset]) -> ArenaTables:
    """Tables whose scenario, until one is set, is Stay under number 0."""
    kinds = preset_tables(presets)
    return ArenaTables(
        presets=kinds,
        scenario=scenario_tables(Scenario({"stay": 1.0}), settings, kinds, number=0),
        middle_rays=settings.rays.middle_count,
        side_rays=settings.rays.side_count,
        one_hot=settings.rays.tags == "one_hot",
        enemy_columns=enemy_columns(settings),
        recalls=settings.recall_seconds > 0,
        perception=settings.observation.rays == "ml-agents",
        camera=_camera_tables(settings.observation.camera),
        rows=RowNumbers(0, settings.num_envs),
    )


def _camera_tables(camera: CameraSettings | None) -> core.CameraTables:
    if camera is None:
        return core.CameraTables(0, 0, 0, 1.0)
    half_width = float(np.tan(np.radians(0.5 * camera.view_angle)))
    return core.CameraTables(camera.width, camera.height, camera.channels, half_width)


def observation_kind(tables: ArenaTables) -> Kind:
    """`plain`: the agent's own numbers and plain rays; `sensed`: also a picture or ML-Agents' rays.

    `full`: also enemies, or something to recall.
    """
    if tables.perception or tables.camera.channels > 0:
        return "sensed"
    return "full" if tables.enemy_columns > 0 or tables.recalls else "plain"


def new_advances() -> dict[Kind, Packed]:
    """The kernel of a step for each kind of observations; compiled when first called."""
    return {
        "plain": Packed(keep_advance, advance_plain_packed),
        "full": Packed(keep_advance, advance_packed),
        "sensed": Packed(keep_advance, advance_sensed_packed),
    }


def new_mask_writer() -> RepeatedCall:
    """The kernel of the action masks, on a state and masks [B, 8]; compiled when first called."""
    return RepeatedCall(Packed(keep_masks, write_masks_packed))


def new_state(
    settings: ArenaSettings, tables: ArenaTables, history: int, *, room: int | None = None
) -> ArenaState:
    """State of all rows before any episode began.

    `history` is the number of values of earlier observations that are handed out again, `room`
    that of enemies to a row, without which it is what the scenario needs.
    """
    room = enemy_room(tables.scenario) if room is None else room
    rows = settings.num_envs
    boxes = tables.presets.obstacles.shape[1]
    counters: dict[str, Any] = {name: np.zeros(rows, np.int64) for name in COUNTERS}
    return ArenaState(
        position=np.tile(np.array(settings.start_position, np.float64), (rows, 1)),
        yaw=np.full(rows, np.radians(settings.start_yaw)),
        ahead=np.zeros((rows, 2)),
        fire_base=np.zeros((rows, 3)),
        obstacles=np.zeros((rows, boxes, 4)),
        enemies=np.zeros((rows, room, 2)),
        enemy_hits_left=np.zeros((rows, room), np.int64),
        enemy_is_target=np.zeros((rows, room), np.bool_),
        spin_turns=np.zeros((rows, settings.spin_window), np.int64),
        terms=np.zeros((rows, core.SUMS)),
        parameters=np.zeros((rows, len(core.PARAMETERS))),
        history=np.zeros((rows, history), np.float32),
        block=np.zeros((rows, 2)),
        streams=np.zeros(rows, np.uint64),
        sampler_key=np.zeros(1, np.uint64),
        clock=np.zeros(1, np.int64),
        **_ray_arrays(rows, settings.rays.count),
        **counters,
    )


def _ray_arrays(rows: int, rays: int) -> dict[str, Any]:
    lanes = -(-rays // LANES) * LANES
    return {
        "ray_cos": np.zeros((rows, lanes), np.float32),
        "ray_sin": np.zeros((rows, lanes), np.float32),
        "view_edge": np.zeros((rows, 2)),
        "ray_distance": np.zeros((rows, lanes), np.float32),
        "ray_hit": np.full((rows, lanes), core.NO_HIT, np.int32),
    }


def new_workspaces(count: int, lanes: int) -> tuple[ThreadWorkspace, ...]:
    """Places of `count` threads, for fans of `lanes` rays."""
    return tuple(
        ThreadWorkspace(number, SPIN_LIMIT, np.zeros((4, lanes), np.float32))
        for number in range(count)
    )
