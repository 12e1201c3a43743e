"""A step of the hero: where it goes, and what the game's score says of it."""

from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.gorge.core.state import (
    DOWN,
    END_SCORE,
    LEFT,
    MAX_STEPS,
    MAX_VIEW,
    RIGHT,
    SIDE,
    SITES,
    STEP_FACTOR,
    UP,
    Bools,
    GorgeState,
    GorgeTables,
)


class Deed(NamedTuple):
    """What the hero did in one step."""

    before: int  # cell that it came from
    after: int  # cell that it is on; the same where it bumped
    bumped: bool
    arrived: bool  # at the end
    visits: int  # arrivals at the entered cell before this one
    there: int  # set of treasures that were there before the step
    points: float  # of the treasure taken
    end_points: float  # for arriving
    step_points: float  # for the steps that were left


@inlined
def is_road(tables: GorgeTables, map_index: int, x: int, z: int) -> bool:
    """Whether the hero can stand on (x, z), which may lie one cell beyond the grid."""
    column = tables.maps.road[map_index, x + MAX_VIEW]
    return 0 <= z < SIDE and (column >> np.uint64(z & (SIDE - 1))) & np.uint64(1) != np.uint64(0)


@inlined
def move(state: GorgeState, tables: GorgeTables, row: int, action: int) -> Deed:
    """Make the step `action` of `row` and score it."""
    x = state.x[row] + (1 if action == RIGHT else 0) - (1 if action == LEFT else 0)
    z = state.z[row] + (1 if action == UP else 0) - (1 if action == DOWN else 0)
    before = SIDE * state.x[row] + state.z[row]
    there = state.left[row]
    bumped = not is_road(tables, state.map[row], x, z)
    after = before if bumped else SIDE * x + z
    visits, points, end_points, step_points = 0, 0.0, 0.0, 0.0
    arrived = not bumped and after == tables.maps.end[state.map[row]]
    state.steps[row] += 1
    if bumped:
        state.bumps[row] += 1
    else:
        state.x[row] = x
        state.z[row] = z
        visits = int(state.arrivals[row, after])
        arrive(state, row, after)
        if there != 0:
            points = take_treasure(state, tables, row, after)
    if arrived:
        end_points = state.parameters[row, END_SCORE]
        left = state.parameters[row, MAX_STEPS] - state.steps[row]
        step_points = state.parameters[row, STEP_FACTOR] * left
    gained = points + (end_points + step_points)
    state.step_score[row] = gained
    state.score[row] += gained
    return Deed(before, after, bumped, arrived, visits, there, points, end_points, step_points)


@inlined
def arrive(state: GorgeState, row: int, cell: int) -> None:
    """Count an arrival at `cell`."""
    state.arrivals[row, cell] += 1
    state.walked[row, cell // SIDE + MAX_VIEW] |= np.uint64(1) << np.uint64(cell % SIDE)


@inlined
def take_treasure(state: GorgeState, tables: GorgeTables, row: int, cell: int) -> float:
    """Points of the treasure that was there to take at `cell`, which is taken now."""
    for site in range(SITES):
        bit = 1 << site
        if state.left[row] & bit and tables.maps.sites[state.map[row], site] == cell:
            state.left[row] &= ~bit
            points = tables.maps.points[state.map[row], site]
            if tables.decay:
                points *= 1.0 - state.steps[row] / state.parameters[row, MAX_STEPS]
            return points
    return 0.0


@inlined
def write_masks(state: GorgeState, tables: GorgeTables, masks: Bools, row: int) -> None:
    """Write `masks` [B, 4] of `row`, True where the move does not bump."""
    x, z, at = state.x[row], state.z[row], state.map[row]
    masks[row, UP] = is_road(tables, at, x, z + 1)
    masks[row, DOWN] = is_road(tables, at, x, z - 1)
    masks[row, LEFT] = is_road(tables, at, x - 1, z)
    masks[row, RIGHT] = is_road(tables, at, x + 1, z)
