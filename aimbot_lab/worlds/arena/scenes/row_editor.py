"""Edits rows of the arena: what may stand where, what a person can place, and who places it.

Touching is allowed. Lengths are those in force in the row's episode.
"""

from collections.abc import Sequence
from math import hypot, isfinite, pi
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError, check_writable, checked_row
from aimbot_lab.foundation.world import Observations
from aimbot_lab.worlds.arena.allocate import room_fault
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import TARGETS, ArenaState
from aimbot_lab.worlds.arena.core.step import cast_all_rays, observe_all
from aimbot_lab.worlds.arena.scenes import placing
from aimbot_lab.worlds.arena.scenes.placing import (
    NOBODY,
    PlacedBlock,
    RowFloor,
    RowRecord,
    clear_counters,
    copy_row,
    floor_of,
    mark_targets,
    record_of,
    write_floor,
    write_target,
)

TOUCHING = 1e-9  # m of overlap that counts as touching

FloorPoint = tuple[float, float]  # m, x and z


class Things(NamedTuple):
    """What stands in the way on a floor."""

    floor_size: float  # m
    enemy_radius: float  # m
    obstacles: Sequence[Sequence[float]]  # m, min x, min z, max x, max z
    enemies: Sequence[Sequence[float]]  # m, x and z of the living


def things_of(state: ArenaState, row: int) -> Things:
    """What stands in the way in `row`."""
    count = int(state.enemy_count[row])
    alive = state.enemy_hits_left[row, :count] > 0
    return Things(
        floor_size=float(state.parameters[row, core.AT.floor_size]),
        enemy_radius=float(state.parameters[row, core.AT.enemy_radius]),
        obstacles=state.obstacles[row, : int(state.obstacle_count[row])].tolist(),
        enemies=state.enemies[row, :count][alive].tolist(),
    )


def checked_place(at: Any) -> FloorPoint:
    """`at` as two numbers. Raises MisuseError for anything else."""
    try:
        x, z = map(float, at)
    except (TypeError, ValueError):
        raise MisuseError(f"at: must be two numbers, x and z in metres (got {at!r})") from None
    if not (isfinite(x) and isfinite(z)):
        raise MisuseError(f"at: must be two finite numbers (got {x:g}, {z:g})")
    return x, z


def checked_turns(turns: Any) -> int:
    """`turns` as quarter turns. Raises MisuseError for anything but 0 to 3."""
    if isinstance(turns, bool) or not isinstance(turns, int) or not 0 <= turns <= 3:
        raise MisuseError(f"turns: must be 0, 1, 2 or 3 quarter turns (got {turns!r})")
    return turns


def disc_fault(things: Things, at: FloorPoint, radius: float) -> str | None:
    """What a disc at `at` would overlap of floor, obstacles and living enemies; None: nothing."""
    if min(at) < radius - TOUCHING or max(at) > things.floor_size - radius + TOUCHING:
        return f"it is outside the floor, {things.floor_size:g} m wide"
    if any(_gap(at, box) < radius - TOUCHING for box in things.obstacles):
        return "it is over an obstacle"
    reach = radius + things.enemy_radius - TOUCHING
    if any(hypot(at[0] - x, at[1] - z) < reach for x, z in things.enemies):
        return "it is over an enemy"
    return None


def enemy_fault(state: ArenaState, row: int, at: FloorPoint) -> str | None:
    """Why an enemy can't stand at `at`; None: it can."""
    things = things_of(state, row)
    agent_x, agent_z = state.position[row].tolist()
    reach = things.enemy_radius + float(state.parameters[row, core.AT.agent_radius]) - TOUCHING
    if hypot(at[0] - agent_x, at[1] - agent_z) < reach:
        return "it is over the agent"
    return disc_fault(things, at, things.enemy_radius)


def block_fault(
    state: ArenaState, row: int, at: FloorPoint, blocks: Sequence[PlacedBlock]
) -> str | None:
    """Why a block can't have its middle at `at`, beside the `blocks` there are; None: it can.

    It keeps the distances of drawn blocks to the agent and to the outer walls, and the latter to
    other blocks too, so that no door is shut and nothing is won at once.
    """
    half, numbers, things = core.BLOCK_SIZE / 2, state.parameters[row], things_of(state, row)
    box = at[0] - half, at[1] - half, at[0] + half, at[1] + half
    gap = float(numbers[core.AT.block_gap_to_walls])
    if min(box) < gap - TOUCHING or max(box) > things.floor_size - gap + TOUCHING:
        return f"it is outside the floor, or nearer than {gap:g} m to its edge"
    keep = float(numbers[core.AT.agent_radius] + numbers[core.AT.block_gap_to_agent])
    if _gap(state.position[row].tolist(), box) < keep - TOUCHING:
        return "it is over the agent, or too near to it"
    for block in blocks:
        apart = max(abs(box[0] - block.x), abs(box[1] - block.z)) - core.BLOCK_SIZE
        if apart < gap - TOUCHING:
            return f"it is over another block, or nearer than {gap:g} m to it"
    if any(_gap(place, box) < things.enemy_radius - TOUCHING for place in things.enemies):
        return "it is over an enemy"
    return None


def _gap(at: Sequence[float], box: Sequence[float]) -> float:
    """Metres from a point to a box."""
    return hypot(max(box[0] - at[0], 0.0, at[0] - box[2]), max(box[1] - at[1], 0.0, at[1] - box[3]))


class RowEditor:
    """Edits rows of `arena` between its steps.

    Lengths are metres, angles radians, places the middles of things. A call that can't be carried
    out raises MisuseError in one line and leaves the arena as it was. What is placed is part of
    the arena's snapshot. An edit changes no other row, draws nothing at random, and begins no
    episode but by `assign`, `clear`, `carry_on`, `restore_floor` and the removal of an assigned
    block; the episode that ran is then not reported. `observe` writes what a row sees after
    edits, for who acts next.
    """

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._scratch = np.zeros((4, arena.state.ray_cos.shape[1]), np.float32)

    def enemy_fault(self, row: int, at: FloorPoint) -> str | None:
        """Why `place_enemy` would refuse; None: it would not."""
        row, at, state = self._row(row), checked_place(at), self.arena.state
        return enemy_fault(state, row, at) or room_fault(state, row, enemies=1)

    def place_enemy(self, row: int, at: FloorPoint) -> int:
        """The number of a new enemy that stands at `at`, unhurt, in the episode that runs.

        In Attack it counts as a target where it stands in the FireBase.
        """
        fault = self.enemy_fault(row, at)
        if fault is not None:
            raise MisuseError(f"row {row}: no enemy can be placed at {_shown(at)}: {fault}")
        record = self.record(row)
        k = len(record.owners)
        self.arena.make_room(enemies=k + 1)
        state = self.arena.state
        state.enemies[row, k] = checked_place(at)
        state.enemy_hits_left[row, k] = int(state.parameters[row, core.AT.enemy_hits_to_kill])
        state.enemy_count[row] = k + 1
        self._keep(row, record._replace(owners=(*record.owners, NOBODY)))
        return k

    def block_fault(self, row: int, at: FloorPoint, *, preset: tuple[str, str]) -> str | None:
        """Why `place_block` would refuse; None: it would not."""
        row, at, state = self._row(row), checked_place(at), self.arena.state
        kind = self.arena.presets[placing.preset_number(self.arena.presets, preset)]
        more = {"enemies": len(kind.enemies), "obstacles": len(kind.obstacles)}
        fault = block_fault(state, row, at, self.record(row).blocks)
        return fault or room_fault(state, row, **more)

    def place_block(
        self, row: int, at: FloorPoint, *, preset: tuple[str, str], turns: int = 0
    ) -> int:
        """The number of a new target block with its middle at `at`; it assigns nothing.

        `preset` is a target and the name of one of its presets, `turns` quarter turns about the
        middle, to the right as seen from above.
        """
        turns = checked_turns(turns)
        fault = self.block_fault(row, at, preset=preset)
        if fault is not None:
            raise MisuseError(f"row {row}: no block can be placed at {_shown(at)}: {fault}")
        number = placing.preset_number(self.arena.presets, preset)
        (x, z), kind = checked_place(at), self.arena.presets[number]
        block = PlacedBlock(number, x - placing.HALF, z - placing.HALF, turns)
        record, state = self.record(row), self.arena.state
        rank, walls = len(record.blocks), int(state.obstacle_count[row])
        owners = (*record.owners, *[rank] * len(kind.enemies))
        self.arena.make_room(enemies=len(owners), obstacles=walls + len(kind.obstacles))
        placing.add_block(self.arena.state, row, block, kind)
        self._keep(row, record._replace(blocks=(*record.blocks, block), owners=owners))
        return rank

    def remove_enemy(self, row: int, number: int) -> None:
        """Take enemy `number` away; the numbers of those after it go down by one.

        Enemies of a block go with it alone.
        """
        floor = self.floor(row)
        owners = floor.record.owners
        placing.check_number(number, len(owners), "enemy")
        if owners[number] != NOBODY:
            belongs = f"enemy: {number} belongs to block {owners[number]}"
            raise MisuseError(f"{belongs}: remove the block")
        self._write(row, placing.without_enemy(floor, number))

    def remove_block(self, row: int, number: int) -> None:
        """Take block `number` away with its obstacles and enemies; later ones move up.

        Where it was assigned, the target is Stay from now on.
        """
        floor = self.floor(row)
        placing.check_number(number, len(floor.record.blocks), "block")
        self._write(row, placing.without_block(floor, number, self.arena.presets))
        if floor.record.assigned == number:
            self._begin(row, core.TARGET.stay)

    def assign(self, row: int, target: str, *, block: int | None = None) -> None:
        """Give the agent of `row` a target: an episode of it begins where everything stands.

        Goto and Attack are about block `block` (by default the last one of that target). Free is
        Stay where no enemy stands. The agent's pose and all numbers in force stay; clock, gun and
        sums begin anew.
        """
        record = self.record(row)
        if target not in TARGETS:
            raise MisuseError(f"target: must be one of {', '.join(TARGETS)} (got {target!r})")
        code, things = TARGETS[target], things_of(self.arena.state, row)
        if code in core.OF_BLOCKS:
            number = placing.block_of(record, self.arena.presets, target, block)
            if code == core.TARGET.attack and not self._stands(row, number):
                raise MisuseError(f"target: every enemy of block {number} is down")
            self._begin(row, code, record._replace(assigned=number))
        elif block is not None:
            raise MisuseError(f"block: {target} is about no block (got {block!r})")
        else:
            self._begin(
                row, code if code == core.TARGET.stay or things.enemies else core.TARGET.stay
            )

    def rests(self, row: int) -> bool:
        """Whether the target of `row` is Stay."""
        return bool(self.arena.state.target[self._row(row)] == core.TARGET.stay)

    def clear(self, row: int) -> None:
        """Take all enemies and blocks away and assign Stay."""
        full = self.floor(row)
        enemies = {name: array[:0] for name, array in full.enemies.items()}
        record = RowRecord(full.record.episode)
        self._write(row, RowFloor(record, core.TARGET.stay, full.obstacles[:0], enemies))
        self._begin(row, core.TARGET.stay)

    def carry_on(self, row: int) -> None:
        """Bring back the floor on which the episode of `row` ended in the last step, in Stay.

        The agent and all that is left stand where they stood. `Arena.keep_endings` must be set.
        """
        arena, row = self.arena, self._row(row)
        state, ended = arena.state, arena.ended_state
        if ended is None or ended.episode[row] != state.episode[row] - 1 or state.decisions[row]:
            raise MisuseError(f"row {row}: no ending of it in the last step was kept")
        record = record_of(arena.records, ended, arena.presets, row)
        floor = floor_of(ended, row, record)
        copy_row(state, row, ended)
        episode = int(state.episode[row])
        self._write(row, floor._replace(record=record._replace(episode=episode)))
        self._begin(row, core.TARGET.stay)

    def place_agent(self, row: int, at: FloorPoint, *, yaw: float) -> None:
        """Put the agent at `at`, looking along `yaw`, in the episode that runs."""
        row, at = self._row(row), checked_place(at)
        if not isfinite(yaw):
            raise MisuseError(f"yaw: must be a finite number (got {yaw!r})")
        state = self.arena.state
        radius = float(state.parameters[row, core.AT.agent_radius])
        fault = disc_fault(things_of(state, row), at, radius)
        if fault is not None:
            raise MisuseError(f"row {row}: the agent can't stand at {_shown(at)}: {fault}")
        state.position[row] = at
        state.yaw[row] = pi - np.mod(pi - yaw, 2.0 * pi)
        state.ahead[row] = np.sin(state.yaw[row]), np.cos(state.yaw[row])
        self._look(row)

    def floor(self, row: int) -> RowFloor:
        """A copy of what stands in `row`, for `restore_floor`."""
        return floor_of(self.arena.state, self._row(row), self.record(row))

    def restore_floor(self, row: int, floor: RowFloor) -> None:
        """Let stand in `row` what stood there when `floor` was taken, its target assigned anew.

        The agent stays where it is; refused where it would stand in something.
        """
        state, record = self.arena.state, self.record(row)
        alive = floor.enemies["enemy_hits_left"] > 0
        things = things_of(state, row)._replace(
            obstacles=floor.obstacles.tolist(), enemies=floor.enemies["enemies"][alive].tolist()
        )
        radius = float(state.parameters[row, core.AT.agent_radius])
        fault = disc_fault(things, state.position[row].tolist(), radius)
        if fault is not None:
            raise MisuseError(f"row {row}: what stood there can't stand again: the agent is there")
        same = floor.record._replace(episode=record.episode)
        self._write(row, floor._replace(record=same))
        self._begin(row, floor.target, same)

    def record(self, row: int) -> RowRecord:
        """Which blocks stand in `row`, whose its enemies are, and what the target is about."""
        arena, row = self.arena, self._row(row)
        return record_of(arena.records, arena.state, arena.presets, row)

    def observe(self, row: int, observations: Observations) -> None:
        """Write what `row` sees now into `observations` [B], as the last step or reset left them.

        Of stacked observations the newest is written anew; an episode that just began has one.
        """
        arena, row = self.arena, self._row(row)
        kind, frames = arena.spec.observation_dtype, arena.frames
        shape = arena.num_envs, *kind.shape
        check_writable(observations, "observations", shape=shape, dtype=kind.base)
        wide = observations if frames is None else frames.buffers.observations
        history = arena.state.history
        begun = arena.state.decisions[row] == 0
        history[row] = 0.0 if begun else wide[row, : history.shape[1]]
        observe_all(arena.state, arena.tables, wide, (row, row + 1))
        if frames is not None:
            frames.write(wide[row : row + 1], observations[row : row + 1])

    def _row(self, row: int) -> int:
        self.arena.check_started()
        return checked_row(row, self.arena.num_envs)

    def _stands(self, row: int, number: int) -> bool:
        """Whether an enemy of that block does."""
        floor = self.floor(row)
        hits = floor.enemies["enemy_hits_left"].tolist()
        return any(
            owner == number and left > 0
            for owner, left in zip(floor.record.owners, hits, strict=True)
        )

    def _write(self, row: int, floor: RowFloor) -> None:
        self.arena.make_room(enemies=len(floor.record.owners), obstacles=len(floor.obstacles))
        write_floor(self.arena.state, row, floor)
        self._keep(row, floor.record)

    def _begin(self, row: int, target: int, record: RowRecord | None = None) -> None:
        """Begin an episode of `target` in `row`, about the assigned block of `record` if any."""
        state = self.arena.state
        record = self.record(row)._replace(assigned=NOBODY) if record is None else record
        state.episode[row] += 1
        rows = self.arena.tables.rows
        state.order[row] = state.clock[0] * rows.total + rows.first + row
        state.scenario[row] = self.arena.scenario_number
        clear_counters(state, row)
        write_target(state, row, target, record, self.arena.presets)
        self._keep(row, record._replace(episode=int(state.episode[row])))

    def _keep(self, row: int, record: RowRecord) -> None:
        """Let `record` be that of `row`, whose floor was changed."""
        self.arena.records[row] = record
        mark_targets(self.arena.state, row, record)
        self._look(row)

    def _look(self, row: int) -> None:
        cast_all_rays(self.arena.state, self._scratch, (row, row + 1))


def _shown(at: FloorPoint) -> str:
    x, z = checked_place(at)
    return f"({x:g}, {z:g})"
