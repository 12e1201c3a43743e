"""Which blocks stand on an edited row's floor, and which of its enemies came with one.

The state's arrays say what stands where; a record says what belongs together, so that a block can
be removed or assigned again. A record holds for one episode of its row: those of rows that nobody
edited, and of later episodes, follow from the state.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.presets.block import Preset

BLOCKS = "scene_blocks"  # what a snapshot calls the blocks of edited rows, [n, 7]
OWNERS = "scene_owners"  # and whose their enemies are, [m, 2]: row, rank of the block or -1
OF_SCENES: Mapping[str, tuple[int, type]] = {BLOCKS: (7, np.float64), OWNERS: (2, np.int64)}
NOBODY = -1  # no block


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
