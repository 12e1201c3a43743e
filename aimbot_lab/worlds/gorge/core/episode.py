"""How an episode begins and how it ends."""

import math

import numpy as np

from aimbot_lab.foundation.kernels.draw_parameters import draw_parameters
from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.rng import uniform, uniform_index, weighted_index
from aimbot_lab.worlds.gorge.core.movement import arrive
from aimbot_lab.worlds.gorge.core.state import (
    COLLECT,
    COLLECT_PERCENT,
    DIFFICULTY_COUNT,
    END_SCORE,
    MAX_STEPS,
    MAX_VIEW,
    RANDOM_START,
    REWARD_TERMS,
    SCORE,
    SIDE,
    SITES,
    STEP_FACTOR,
    TOLERANCE,
    TREASURE_NUM,
    WALK,
    WIN_SHARE,
    GorgeEpisodeLog,
    GorgeState,
    GorgeTables,
)


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
