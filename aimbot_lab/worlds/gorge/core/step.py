"""Decisions of all rows: moves, rewards, and how episodes begin and end."""

import math
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined, kernel, unpacked
from aimbot_lab.foundation.kernels.rng import (
    draw_parameters,
    uniform,
    uniform_index,
    weighted_index,
)
from aimbot_lab.foundation.kernels.threads import (
    BEGIN,
    STEP,
    STRIDE,
    ThreadWorkspace,
    WorkQueue,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.worlds.gorge.core.observation import observe
from aimbot_lab.worlds.gorge.core.state import (
    BUMP,
    COLLECT,
    COLLECT_PERCENT,
    DIFFICULTY_COUNT,
    DISTANCE,
    DOWN,
    END_SCORE,
    FINISH,
    FULL_MEMORY,
    LEFT,
    LOSE,
    MAX_STEPS,
    MAX_VIEW,
    RANDOM_START,
    REVISIT,
    REWARD_TERMS,
    RIGHT,
    SCORE,
    SIDE,
    SITES,
    STEP_FACTOR,
    STEP_PENALTY,
    STEP_SCORE,
    TOLERANCE,
    TREASURE,
    TREASURE_DISTANCE,
    TREASURE_NUM,
    UP,
    WALK,
    WIN,
    WIN_SHARE,
    Bools,
    Floats32,
    GorgeEpisodeLog,
    GorgeState,
    GorgeTables,
)


class MoveResult(NamedTuple):
    """What the hero did in one step."""

    before: int  # cell that it came from
    after: int  # cell that it is on; the same where it bumped
    bumped: bool
    arrived: bool  # at the end
    visits: int  # arrivals at that cell before this step
    there: int  # set of treasures that were there before the step
    points: float  # of the treasure taken
    end_points: float  # for arriving
    step_points: float  # for the steps that were left


@inlined
def is_road(tables: GorgeTables, map_index: int, x: int, z: int) -> bool:
    """Whether the hero can stand on (x, z), which may lie one cell beyond the grid."""
    bits = tables.maps.road[map_index, x + MAX_VIEW] >> np.uint64(z & (SIDE - 1))
    return (bits & np.uint64(1) != np.uint64(0)) & (z >= 0) & (z < SIDE)


@inlined
def move(state: GorgeState, tables: GorgeTables, row: int, action: int) -> MoveResult:
    """Make the step `action` of `row` and score it.

    A bump is counted without a branch: none can be predicted, so a branch would cost more than all
    the rest of the step. Where the hero stays its cell's arrivals grow by 0.
    """
    x, z, at, there = state.x[row], state.z[row], state.map[row], state.left[row]
    right, up = (action == RIGHT) - (action == LEFT), (action == UP) - (action == DOWN)
    moved = int(is_road(tables, at, x + right, z + up))
    before = SIDE * x + z
    state.x[row] = x + moved * right
    state.z[row] = z + moved * up
    after = before + moved * (SIDE * right + up)
    state.steps[row] += 1
    state.bumps[row] += 1 - moved
    visits = int(state.arrivals[row, after])
    arrive(state, row, after, moved)
    points, end_points, step_points = 0.0, 0.0, 0.0
    if there & int(tables.maps.on[at, after]):
        points = take_treasure(state, tables, row, after)
    arrived = moved == 1 and after == tables.maps.end[at]
    if arrived:
        end_points = state.parameters[row, END_SCORE]
        left = state.parameters[row, MAX_STEPS] - state.steps[row]
        step_points = state.parameters[row, STEP_FACTOR] * left
    gained = points + (end_points + step_points)
    state.step_score[row] = gained
    state.score[row] += gained
    bumped = moved == 0
    return MoveResult(
        before, after, bumped, arrived, visits, there, points, end_points, step_points
    )


@inlined
def arrive(state: GorgeState, row: int, cell: int, times: int) -> None:
    """Count `times` arrivals, 0 or 1, at `cell`, on which the hero is from now on."""
    state.arrivals[row, cell] += np.uint16(times)
    state.walked[row, cell // SIDE + MAX_VIEW] |= np.uint64(1) << np.uint64(cell % SIDE)


@inlined
def take_treasure(state: GorgeState, tables: GorgeTables, row: int, cell: int) -> float:
    """Points of the treasure that is there to take at `cell`, which is taken now."""
    site = 0
    while tables.maps.sites[state.map[row], site] != cell:
        site += 1
    state.left[row] &= ~(1 << site)
    points = tables.maps.points[state.map[row], site]
    if tables.decay:
        points *= 1.0 - state.steps[row] / state.parameters[row, MAX_STEPS]
    return points


@inlined
def write_masks(state: GorgeState, tables: GorgeTables, masks: Bools, row: int) -> None:
    """Write `masks` [B, 4] of `row`, True where the move does not bump."""
    x, z, at = state.x[row], state.z[row], state.map[row]
    masks[row, UP] = is_road(tables, at, x, z + 1)
    masks[row, DOWN] = is_road(tables, at, x, z - 1)
    masks[row, LEFT] = is_road(tables, at, x - 1, z)
    masks[row, RIGHT] = is_road(tables, at, x + 1, z)


FAR = 1 << 30  # steps, more than any way takes


@inlined
def earn(state: GorgeState, row: int, term: int, amount: float) -> float:
    """What `amount` of `term` earns, added to the episode's sum of the term."""
    earned = state.parameters[row, term] * amount
    state.terms[row, term] += earned
    return earned


@inlined
def reward_of(state: GorgeState, tables: GorgeTables, row: int, deed: MoveResult) -> float:
    """What the step earned, without `win` and `lose`; terms are added in their order."""
    reward = 0.0
    if deed.points != 0.0:
        reward += earn(state, row, TREASURE, deed.points)
    if deed.arrived:
        reward += earn(state, row, FINISH, deed.end_points)
        reward += earn(state, row, STEP_SCORE, deed.step_points)
    if state.parameters[row, STEP_PENALTY] != 0.0:
        reward += earn(state, row, STEP_PENALTY, 1.0)
    if deed.bumped:
        if state.parameters[row, BUMP] != 0.0:
            reward += earn(state, row, BUMP, 1.0)
        return reward
    if state.parameters[row, REVISIT] != 0.0:
        reward += earn(state, row, REVISIT, min(deed.visits, FULL_MEMORY) / 10.0)
    if state.parameters[row, DISTANCE] != 0.0:
        to_end = tables.maps.to_end[state.map[row]]
        reward += earn(state, row, DISTANCE, float(to_end[deed.before] - to_end[deed.after]))
    if state.parameters[row, TREASURE_DISTANCE] != 0.0 and deed.there != 0 and not deed.arrived:
        nearer = nearest(state, tables, row, deed.there, deed.before)
        nearer -= nearest(state, tables, row, deed.there, deed.after)
        reward += earn(state, row, TREASURE_DISTANCE, float(nearer))
    return reward


@inlined
def nearest(state: GorgeState, tables: GorgeTables, row: int, there: int, cell: int) -> int:
    """Steps of the shortest way from `cell` to a treasure of the set `there`, not by the end."""
    fewest = FAR
    for site in range(SITES):
        if (there >> site) & 1:
            fewest = min(fewest, tables.maps.to_site[state.map[row], site, cell])
    return fewest


@inlined
def begin_episode(state: GorgeState, tables: GorgeTables, row: int) -> None:
    """Draw the next episode of `row` from the scenario in force and set it up."""
    state.scenario[row] = tables.scenario.number[0]
    number = tables.rows.first + row
    state.order[row] = state.clock[0] * tables.rows.total + number
    state.episode[row] += 1
    draw_parameters(state, tables.samplers, row, number)
    clear_counters(state, row)
    forget_cells(state, row)
    state.map[row] = uniform_index(state.streams, row, tables.maps.start.size)
    target = weighted_index(state.streams, row, tables.scenario.target_weights)
    state.target[row] = target
    state.difficulty[row] = 0
    if target != SCORE:
        weights = tables.scenario.difficulty_weights[target]
        state.difficulty[row] = weighted_index(state.streams, row, weights) + 1
    state.placed[row] = draw_treasures(state, tables, row, treasure_count(state, tables, row))
    state.left[row] = state.placed[row]
    cell = draw_start(state, tables, row)
    state.start[row] = cell
    state.x[row] = cell // SIDE
    state.z[row] = cell % SIDE
    arrive(state, row, cell, 1)
    state.optimum[row] = known_optimum(state, tables, row)


@inlined
def clear_counters(state: GorgeState, row: int) -> None:
    """Set counters, scores and the terms' sums to a beginning's."""
    state.steps[row] = 0
    state.bumps[row] = 0
    state.score[row] = 0.0
    state.step_score[row] = 0.0
    for k in range(len(REWARD_TERMS)):
        state.terms[row, k] = 0.0


@inlined
def forget_cells(state: GorgeState, row: int) -> None:
    """Set the memory of all cells to 0, by the columns that were walked on."""
    for x in range(SIDE):
        if state.walked[row, x + MAX_VIEW] != np.uint64(0):
            state.walked[row, x + MAX_VIEW] = np.uint64(0)
            for z in range(SIDE):
                state.arrivals[row, SIDE * x + z] = 0


@inlined
def treasure_count(state: GorgeState, tables: GorgeTables, row: int) -> int:
    """How many treasures the episode of `row` has."""
    pool = tables.pool.size
    if state.target[row] == WALK:
        return 0
    if state.target[row] == COLLECT:
        return (COLLECT_PERCENT[state.difficulty[row] - 1] * pool + 99) // 100
    return min(int(state.parameters[row, TREASURE_NUM]), pool)


@inlined
def draw_treasures(state: GorgeState, tables: GorgeTables, row: int, count: int) -> int:
    """A set of `count` sites of the pool, each such set as likely as any other.

    Selection sampling: Knuth, "The Art of Computer Programming", volume 2, 3.4.2, algorithm S.
    """
    placed = 0
    needed = count
    for k in range(tables.pool.size):
        if uniform(state.streams, row) * (tables.pool.size - k) < needed:
            placed |= 1 << tables.pool[k]
            needed -= 1
    return placed


@inlined
def draw_start(state: GorgeState, tables: GorgeTables, row: int) -> int:
    """The cell where the episode of `row` begins."""
    at = state.map[row]
    if state.target[row] == WALK and state.difficulty[row] < DIFFICULTY_COUNT:
        first = tables.maps.walk_first[at, state.difficulty[row] - 1]
        count = tables.maps.walk_first[at, state.difficulty[row]] - first
        return tables.maps.walk_cells[at, first + uniform_index(state.streams, row, count)]
    if state.target[row] != WALK and state.parameters[row, RANDOM_START] != 0.0:
        count = tables.maps.free_count[at]
        return tables.maps.free_cells[at, uniform_index(state.streams, row, count)]
    return tables.maps.start[at]


@inlined
def known_optimum(state: GorgeState, tables: GorgeTables, row: int) -> float:
    """The best total of the episode of `row` where no search is needed for it, else NaN."""
    at = state.map[row]
    if state.placed[row] == 0:
        left = state.parameters[row, MAX_STEPS] - tables.maps.to_end[at, state.start[row]]
        if left < 0.0:
            return 0.0
        return state.parameters[row, END_SCORE] + state.parameters[row, STEP_FACTOR] * left
    if state.start[row] == tables.maps.start[at]:
        return tables.optima[at, state.placed[row]]
    return math.nan


@inlined
def is_won(state: GorgeState, row: int, arrived: bool) -> bool:
    """Whether the target of `row` is reached, now that the episode is over."""
    if not arrived or state.target[row] == WALK:
        return arrived
    if state.target[row] == COLLECT:
        return state.left[row] == 0
    least = state.parameters[row, WIN_SHARE] * state.optimum[row]
    return state.score[row] >= least - TOLERANCE


@inlined
def size_of(sites: int) -> int:
    """How many sites the set `sites` holds."""
    count = 0
    for site in range(SITES):
        count += (sites >> site) & 1
    return count


@inlined
def record_end(state: GorgeState, log: GorgeEpisodeLog, row: int, won: bool, arrived: bool) -> None:
    """Keep how the episode of `row` ended, before its reset overwrites it."""
    log.won[row] = won
    log.arrived[row] = arrived
    log.target[row] = state.target[row]
    log.difficulty[row] = state.difficulty[row]
    log.steps[row] = state.steps[row]
    log.bumps[row] = state.bumps[row]
    log.treasures[row] = size_of(state.placed[row] & ~state.left[row])
    log.placed[row] = size_of(state.placed[row])
    log.score[row] = state.score[row]
    log.treasure_score[row] = state.score[row]
    if arrived:
        left = state.parameters[row, MAX_STEPS] - state.steps[row]
        log.treasure_score[row] -= state.parameters[row, END_SCORE]
        log.treasure_score[row] -= state.parameters[row, STEP_FACTOR] * left
    log.optimum[row] = state.optimum[row]
    log.order[row] = state.order[row]
    log.scenario[row] = state.scenario[row]
    for k in range(len(REWARD_TERMS)):
        log.terms[row, k] = state.terms[row, k]


LAST = np.float32(3.0)  # of the moves
ZERO = np.float32(0.0)
CHUNK = 64  # rows that a thread takes at a time, some 5 microseconds of work


@kernel
def first_bad_action(actions: Floats32) -> int:
    """Row of `actions` [B, 1] with the first impossible value, or -1."""
    bad = 0
    for row in range(actions.shape[0]):
        value = actions[row, 0]
        bad += not ((value >= ZERO) & (value <= LAST) & (value == np.floor(value)))
    if bad == 0:
        return -1
    for row in range(actions.shape[0]):
        value = actions[row, 0]
        if not (value >= ZERO and value <= LAST and value == np.floor(value)):
            return row
    return -1


@kernel
def all_masks(state: GorgeState, tables: GorgeTables, masks: Bools) -> None:
    """Write `masks` [B, 4], True where the move does not bump."""
    for row in range(state.x.size):
        write_masks(state, tables, masks, row)


@inlined
def settle(
    state: GorgeState,
    tables: GorgeTables,
    buffers: Any,
    log: GorgeEpisodeLog,
    row: int,
    deed: MoveResult,
) -> int:
    """Write what the step brought to `buffers` and, where it ended the episode, `log`; 1 then."""
    reward = reward_of(state, tables, row, deed)
    finished = deed.arrived or state.steps[row] >= state.parameters[row, MAX_STEPS]
    if finished:
        won = is_won(state, row, deed.arrived)
        reward += earn(state, row, WIN if won else LOSE, 1.0)
        record_end(state, log, row, won, deed.arrived)
    buffers.rewards[row] = reward
    buffers.finished[row] = finished
    buffers.truncated[row] = False  # a time-out is a loss and part of the rules
    return int(finished)


@called
def begin_row(state: GorgeState, tables: GorgeTables, buffers: Any, row: int) -> None:
    """Begin the next episode in `row`.

    Moves its last observation to the final ones and writes that of the new episode.
    """
    for column in range(buffers.observations.shape[1]):
        buffers.final_observations[row, column] = buffers.observations[row, column]
    begin_episode(state, tables, row)
    observe(state, tables, buffers.observations, row)


@kernel
def advance_packed(address: int, kind: Any) -> None:
    """`advance_rows` for a `PackedCall`."""
    advance_rows(*unpacked(address, kind))


@inlined
def advance_rows(
    state: GorgeState,
    tables: GorgeTables,
    actions: Floats32,
    buffers: tuple[Any, Any],
    log: GorgeEpisodeLog,
    workspace: ThreadWorkspace,
    queue: WorkQueue,
) -> None:
    """Step the rows, begin the next episode in those that are finished, or both.

    `queue` says what to do and which of the buffers to write, and is told how many episodes
    ended; a worker goes on so as long as there is work in time. `actions` [B, 1] must have been
    checked. Writes rewards, finished flags, observations and, where an episode ended, `log`.
    """
    worker = workspace.thread_id - 1
    while worker < 0 or begins(queue.sync_flags, worker, workspace.spin_limit):
        written = buffers[0] if queue.buffers[0] == 0 else buffers[1]
        first, last = take_rows(queue, workspace.thread_id, state.x.size, CHUNK)
        while first < last:
            ended = 0
            if queue.duty[0] & STEP:
                for row in range(first, last):
                    deed = move(state, tables, row, int(actions[row, 0]))
                    ended += settle(state, tables, written, log, row, deed)
                # By itself: what a row remembers is far away, and comes for all rows at once.
                for row in range(first, last):
                    observe(state, tables, written.observations, row)
                queue.ended[workspace.thread_id * STRIDE] += ended
            if queue.duty[0] & BEGIN and (ended or not queue.duty[0] & STEP):
                for row in range(first, last):
                    if written.finished[row]:
                        begin_row(state, tables, written, row)
            first, last = take_rows(queue, workspace.thread_id, state.x.size, CHUNK)
        if worker < 0:
            wait_for_workers(queue.sync_flags, workspace.spin_limit)
            return
        finish(queue.sync_flags, worker)


@kernel
def move_all(state: GorgeState, tables: GorgeTables, actions: Floats32) -> None:
    """Move all rows by `actions` [B, 1], with memory and score."""
    for row in range(state.x.size):
        move(state, tables, row, int(actions[row, 0]))


@kernel
def reward_all(state: GorgeState, tables: GorgeTables, actions: Floats32, buffers: Any) -> None:
    """Earn what all rows would where up bumps and any other of `actions` [B, 1] stays."""
    for row in range(state.x.size):
        cell = SIDE * state.x[row] + state.z[row]
        bumped, there = actions[row, 0] == 0.0, state.left[row]
        deed = MoveResult(cell, cell, bumped, False, 1, there, 0.0, 0.0, 0.0)
        buffers.rewards[row] = reward_of(state, tables, row, deed)


@kernel
def observe_all(state: GorgeState, tables: GorgeTables, observations: Floats32) -> None:
    """Write the `observations` [B, D] of all rows."""
    for row in range(state.x.size):
        observe(state, tables, observations, row)


@kernel
def begin_all(state: GorgeState, tables: GorgeTables, buffers: Any) -> None:
    """Begin the next episode in all rows, with its first observation."""
    for row in range(state.x.size):
        begin_row(state, tables, buffers, row)
