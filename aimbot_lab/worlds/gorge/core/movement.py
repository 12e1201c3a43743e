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
    STEP_FACTOR,
    UP,
    Bools,
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

    A bump is counted without a branch: nobody can foresee it, so that one would cost more than all
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
