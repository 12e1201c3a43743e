"""Target blocks on a row's floor: set up, taken away, chosen, by plain arithmetic on arrays."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.scenes.floor import RowFloor, turned
from aimbot_lab.worlds.arena.scenes.records import NOBODY, PlacedBlock, RowRecord

HALF = core.BLOCK_SIZE / 2


def add_block(state: ArenaState, row: int, block: PlacedBlock, preset: Preset) -> None:
    """Set `preset` up as `block` behind what stands in `row`, which has the room."""
    first = int(state.obstacle_count[row])
    for slot, (x_1, z_1, x_2, z_2) in enumerate(preset.obstacles, start=first):
        ends = np.array([turned(x_1, z_1, block.turns), turned(x_2, z_2, block.turns)])
        state.obstacles[row, slot] = np.tile((block.x, block.z), 2) + np.concatenate(
            [ends.min(axis=0), ends.max(axis=0)]
        )
    state.obstacle_count[row] = first + len(preset.obstacles)
    hits = int(state.parameters[row, core.ENEMY_HITS_TO_KILL])
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
