"""What stands on a row's floor, kept and put back: blocks, enemies and who belongs to whom."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, ArenaState
from aimbot_lab.worlds.arena.enemy_capacity import OF_ENEMIES
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.scenes.records import NOBODY, PlacedBlock, RowRecord

OF_POSE = ("position", "yaw", "ahead")
OF_NUMBERS = ("parameters", "ray_cos", "ray_sin", "view_edge")  # in force in the episode
OF_TARGET = ("target", "difficulty", "preset", "block", "block_turns", "fire_base")


def turned(x: float, z: float, turns: int) -> tuple[float, float]:
    """A point of the block's frame after quarter turns about the block's middle, as drawn."""
    side = BLOCK_SIZE
    return ((x, z), (z, side - x), (side - x, side - z), (side - z, x))[turns]


def fire_base(block: PlacedBlock, preset: Preset) -> tuple[float, float, float]:
    """Centre x and z and diameter of the FireBase of `block` on the floor, m."""
    x, z, diameter = preset.fire_base
    way_x, way_z = turned(x, z, block.turns)
    return block.x + way_x, block.z + way_z, diameter


class RowFloor(NamedTuple):
    """A copy of what stands on a row's floor."""

    record: RowRecord
    target: int  # type code
    obstacles: np.ndarray  # [obstacles, 4] m
    enemies: Mapping[str, np.ndarray]  # [enemies, ...] by the names of `OF_ENEMIES`


def floor_of(state: ArenaState, row: int, record: RowRecord) -> RowFloor:
    """What stands on the floor of `row` now."""
    count = int(state.enemy_count[row])
    enemies = {name: getattr(state, name)[row, :count].copy() for name in OF_ENEMIES}
    obstacles = state.obstacles[row, : int(state.obstacle_count[row])].copy()
    return RowFloor(record, int(state.target[row]), obstacles, enemies)


def write_floor(state: ArenaState, row: int, floor: RowFloor) -> None:
    """Let `floor` stand in `row`, which has the room; what the target is stays."""
    state.obstacle_count[row] = len(floor.obstacles)
    state.obstacles[row, : len(floor.obstacles)] = floor.obstacles
    count = len(floor.record.owners)
    state.enemy_count[row] = count
    for name in OF_ENEMIES:
        array = getattr(state, name)
        array[row, :count] = floor.enemies[name]
        array[row, count:] = 0


def copy_row(state: ArenaState, row: int, source: ArenaState) -> None:
    """Take pose and numbers of `row` over from `source`."""
    for name in (*OF_POSE, *OF_NUMBERS):
        getattr(state, name)[row] = getattr(source, name)[row]


def write_target(
    state: ArenaState, row: int, target: int, record: RowRecord, presets: Sequence[Preset]
) -> None:
    """Let the target of `row` be `target`, about the assigned block of `record` if there is one.

    What an observation says of a target that has no block is 0.
    """
    for name in OF_TARGET:
        getattr(state, name)[row] = 0
    state.target[row] = target
    state.preset[row] = NOBODY
    if record.assigned != NOBODY:
        block = record.blocks[record.assigned]
        state.preset[row] = block.preset
        state.difficulty[row] = presets[block.preset].difficulty
        state.block[row] = block.x, block.z
        state.block_turns[row] = block.turns
        state.fire_base[row] = fire_base(block, presets[block.preset])


def clear_counters(state: ArenaState, row: int) -> None:
    """Clock, gun, spin window, sums and earlier observations as at an episode's beginning."""
    for name in ("decisions", "gun_ticks", "spin_sum", "spin_turns", "terms", "history"):
        getattr(state, name)[row] = 0


def mark_targets(state: ArenaState, row: int, record: RowRecord) -> None:
    """Write which enemies count in Attack: those of the block, and all in its closed FireBase."""
    x, z, diameter = state.fire_base[row].tolist()
    for k, owner in enumerate(record.owners):
        away = np.hypot(state.enemies[row, k, 0] - x, state.enemies[row, k, 1] - z)
        own = owner == record.assigned != NOBODY
        state.enemy_is_target[row, k] = own or (diameter > 0 and away <= diameter / 2)
