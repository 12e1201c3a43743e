"""What a person placed in a row: records of blocks, and what stands on the floor, as arrays.

The state's arrays say what stands where; a record says what belongs together, so that a block can
be taken away again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, OF_ENEMIES, ArenaState
from aimbot_lab.worlds.arena.presets import Preset

BLOCKS = "scene_blocks"  # what a snapshot calls the blocks of edited rows, [n, 7]
OWNERS = "scene_owners"  # and whose their enemies are, [m, 2]: row, rank of the block or -1


OF_SCENES: Mapping[str, tuple[int, type]] = {BLOCKS: (7, np.float64), OWNERS: (2, np.int64)}
NOBODY = -1  # no block
HALF = core.BLOCK_SIZE / 2


class PlacedBlock(NamedTuple):
    """A target block on the floor."""

    preset: int  # index into the arena's presets
    x: float  # m, of the corner nearest to the origin
    z: float
    turns: int  # quarter turns


class RowRecord(NamedTuple):
    """What belongs together on the floor of one row; obstacles come block by block."""

    episode: int  # of the row, for which it holds
    blocks: tuple[PlacedBlock, ...] = ()
    owners: tuple[int, ...] = ()  # of each enemy the rank of its block, or NOBODY
    assigned: int = NOBODY  # rank of the block that the target is about


Records = Mapping[int, RowRecord]  # by row


def record_of(
    records: Records, state: ArenaState, presets: Sequence[Preset], row: int
) -> RowRecord:
    """The record of the episode that runs in `row` of `state`."""
    episode = int(state.episode[row])
    kept = records.get(row)
    if kept is not None and kept.episode == episode:
        return kept
    preset, enemies = int(state.preset[row]), int(state.enemy_count[row])
    if preset < 0:
        return RowRecord(episode, owners=(NOBODY,) * enemies)
    if preset >= len(presets):
        raise MisuseError(f"row {row}: its block is of an arena with other presets")
    x, z = state.block[row].tolist()
    own = len(presets[preset].enemies)
    owners = (0,) * own + (NOBODY,) * (enemies - own)
    block = PlacedBlock(preset, x, z, int(state.block_turns[row]))
    return RowRecord(episode, (block,), owners, assigned=0)


def records_as_arrays(records: Records, state: ArenaState) -> dict[str, np.ndarray]:
    """The records with blocks that still hold, for a snapshot; empty where there are none."""
    held = {
        row: record
        for row, record in sorted(records.items())
        if record.blocks and record.episode == state.episode[row]
    }
    if not held:
        return {}
    blocks = [
        (row, record.episode, record.assigned == rank, *block)
        for row, record in held.items()
        for rank, block in enumerate(record.blocks)
    ]
    owners = [(row, owner) for row, record in held.items() for owner in record.owners]
    return {
        BLOCKS: np.array(blocks, np.float64),
        OWNERS: np.array(owners, np.int64).reshape(-1, 2),
    }


def records_from_arrays(
    snapshot: Mapping[str, np.ndarray], presets: Sequence[Preset]
) -> dict[int, RowRecord]:
    """The records of a checked `snapshot`. Raises MisuseError where they do not fit its state."""
    given = {name: snapshot[name] for name in OF_SCENES if name in snapshot}
    if not given:
        return {}
    for name, (width, kind) in OF_SCENES.items():
        array = given.get(name)
        if array is None or array.ndim != 2 or array.shape[1] != width or array.dtype != kind:
            raise MisuseError(f"snapshot: {name} must be {np.dtype(kind)} (n, {width})")
    if not np.isfinite(given[BLOCKS]).all():
        raise MisuseError(f"snapshot: {BLOCKS} holds what is not finite")
    records: dict[int, RowRecord] = {}
    for row, episode, assigned, preset, x, z, turns in given[BLOCKS].tolist():
        record = records.get(int(row)) or RowRecord(int(episode))
        block = PlacedBlock(int(preset), x, z, int(turns))
        rank = len(record.blocks) if assigned else record.assigned
        records[int(row)] = record._replace(blocks=(*record.blocks, block), assigned=rank)
    for row, owner in given[OWNERS].tolist():
        if row in records:
            records[row] = records[row]._replace(owners=(*records[row].owners, owner))
    for row, record in records.items():
        if not _fits(record, snapshot, presets, row):
            raise MisuseError(f"snapshot: {BLOCKS} does not fit what stands in row {row}")
    return records


def _fits(
    record: RowRecord, snapshot: Mapping[str, np.ndarray], presets: Sequence[Preset], row: int
) -> bool:
    kinds = [block.preset for block in record.blocks]
    if not 0 <= row < len(snapshot["episode"]) or record.episode != snapshot["episode"][row]:
        return False
    if not all(0 <= kind < len(presets) for kind in kinds):
        return False
    return bool(
        all(0 <= block.turns <= 3 for block in record.blocks)
        and all(NOBODY <= owner < len(kinds) for owner in record.owners)
        and len(record.owners) == snapshot["enemy_count"][row]
        and sum(len(presets[kind].obstacles) for kind in kinds) == snapshot["obstacle_count"][row]
    )


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


def add_block(state: ArenaState, row: int, block: PlacedBlock, preset: Preset) -> None:
    """Set `preset` up as `block` behind what stands in `row`, which has the room."""
    first = int(state.obstacle_count[row])
    for slot, (x_1, z_1, x_2, z_2) in enumerate(preset.obstacles, start=first):
        ends = np.array([turned(x_1, z_1, block.turns), turned(x_2, z_2, block.turns)])
        state.obstacles[row, slot] = np.tile((block.x, block.z), 2) + np.concatenate(
            [ends.min(axis=0), ends.max(axis=0)]
        )
    state.obstacle_count[row] = first + len(preset.obstacles)
    hits = int(state.parameters[row, core.AT.enemy_hits_to_kill])
    first = int(state.enemy_count[row])
    for slot, (x, z) in enumerate(preset.enemies, start=first):
        way_x, way_z = turned(x, z, block.turns)
        state.enemies[row, slot] = block.x + way_x, block.z + way_z
        state.enemy_hits_left[row, slot] = hits
    state.enemy_count[row] = first + len(preset.enemies)


def without_enemy(floor: RowFloor, number: int) -> RowFloor:
    """`floor` without that enemy."""
    enemies = {name: np.delete(array, number, axis=0) for name, array in floor.enemies.items()}
    owners = floor.record.owners
    record = floor.record._replace(owners=(*owners[:number], *owners[number + 1 :]))
    return floor._replace(record=record, enemies=enemies)


def without_block(floor: RowFloor, number: int, presets: Sequence[Preset]) -> RowFloor:
    """`floor` without that block, its obstacles and its enemies."""
    record = floor.record
    counts = [len(presets[block.preset].obstacles) for block in record.blocks]
    first = sum(counts[:number])
    kept = [k for k, owner in enumerate(record.owners) if owner != number]
    blocks = (*record.blocks[:number], *record.blocks[number + 1 :])
    owners = tuple(_moved_up(record.owners[k], number) for k in kept)
    assigned = NOBODY if record.assigned == number else _moved_up(record.assigned, number)
    return floor._replace(
        record=record._replace(blocks=blocks, owners=owners, assigned=assigned),
        obstacles=np.delete(floor.obstacles, slice(first, first + counts[number]), axis=0),
        enemies={name: array[kept] for name, array in floor.enemies.items()},
    )


def _moved_up(rank: int, gone: int) -> int:
    return rank - 1 if rank > gone else rank


def block_of(record: RowRecord, presets: Sequence[Preset], target: str, number: int | None) -> int:
    """The block that `target` is about: `number`, or the last one of that target.

    Raises MisuseError where there is none.
    """
    kinds = [presets[block.preset].target for block in record.blocks]
    if number is None:
        if target not in kinds:
            raise MisuseError(f"target: there is no {target} block on the floor: place one first")
        return max(rank for rank, kind in enumerate(kinds) if kind == target)
    check_number(number, len(kinds), "block")
    if kinds[number] != target:
        raise MisuseError(f"block: {number} is a block of {kinds[number]}, not of {target}")
    return number


def check_number(number: int, count: int, noun: str) -> None:
    """Raise MisuseError unless `number` is that of one of `count` things."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < count:
        there = f"0 to {count - 1}" if count else "there is none"
        raise MisuseError(f"{noun}: no such number ({there}; got {number!r})")


def preset_number(presets: Sequence[Preset], wanted: tuple[str, str]) -> int:
    """Index of the preset of that target and name. Raises MisuseError where there is none."""
    for index, preset in enumerate(presets):
        if (preset.target, preset.name) == wanted:
            return index
    raise MisuseError(f"preset: the arena has none of target and name {wanted!r}")


def place_in_block(block: PlacedBlock, place: tuple[float, float]) -> tuple[float, float]:
    """A place on the floor in the block's own frame."""
    x, z = place[0] - block.x, place[1] - block.z
    return turned(x, z, -block.turns % 4)
