"""The highest score that any walk can reach, known exactly, with a walk that reaches it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.optimum import (
    DX,
    DZ,
    FULL,
    NO_ENTRY,
    NO_WAY,
    Bests,
    Legs,
    Routes,
    Rules,
    append_way,
    fill_best_of_subsets,
    fill_bests,
    fill_routes,
)
from aimbot_lab.worlds.gorge.core.state import GorgeState, GorgeTables, SamplerTables
from aimbot_lab.worlds.gorge.map_choice import Maps
from aimbot_lab.worlds.gorge.maps import SIZE, GorgeMap, GridCell, distances

KEPT_MAPS = 256


class Optimum(NamedTuple):
    """The best walk of an episode."""

    score: float
    steps: int  # of the episode, which lasts to its limit where the walk does not arrive
    order: tuple[int, ...]  # config_ids of the treasures taken
    actions: npt.NDArray[np.int8]  # [steps]


def optimum(grid: GorgeMap, *, start: GridCell, treasures: Sequence[int], rules: Rules) -> Optimum:
    """The best walk from `start`, with treasures on the sites `treasures`, different config_ids.

    No score may be negative.
    """
    legs, routes, bests = _solve(grid, start, treasures, rules)
    best = int(np.argmax(bests.score))
    visits = [treasures[k] for k in _order(routes, bests, best, count=legs.points.size)]
    walk = _walk(grid, start, visits, arrives=bool(bests.arrives[best]))
    order = _taken_on(grid, start, walk, treasures=treasures)
    if not bests.arrives[best]:
        walk = np.concatenate([walk, _idle(grid, start, walk, count=rules.max_steps - walk.size)])
    return Optimum(float(bests.score[best]), walk.size, order, walk)


def optima_by_set(grid: GorgeMap, *, start: GridCell, rules: Rules) -> npt.NDArray[np.float64]:
    """The best score [2**S] from `start` for every set of treasures, bit k of it config_id k."""
    scores = _solve(grid, start, range(len(grid.sites)), rules)[2].score
    fill_best_of_subsets(scores)
    return scores


@lru_cache(KEPT_MAPS)
def _to_end(grid: GorgeMap) -> npt.NDArray[np.int32]:
    """Steps [64, 64] from every cell to the end."""
    return distances(grid, grid.end)


@lru_cache(KEPT_MAPS)
def _to_site(grid: GorgeMap) -> npt.NDArray[np.int32]:
    """Steps [S, 64, 64] from every cell to each site, the end closed."""
    return np.stack([distances(grid, (x, z)) for x, z in grid.sites.tolist()])


def _solve(
    grid: GorgeMap, start: GridCell, treasures: Sequence[int], rules: Rules
) -> tuple[Legs, Routes, Bests]:
    """What the dynamic programming finds."""
    legs, count = _legs(grid, start, treasures), len(treasures)
    routes = _fill_routes(legs, rules)
    bests = Bests(
        score=np.empty(1 << count),
        entry=np.empty(1 << count, np.int64),
        steps=np.empty(1 << count, np.int32),
        arrives=np.empty(1 << count, np.bool_),
    )
    fill_bests(legs, rules, routes, int(_to_end(grid)[start]), bests)
    return legs, routes, bests


def _legs(grid: GorgeMap, start: GridCell, treasures: Sequence[int]) -> Legs:
    """The ways between `treasures`; a treasure below the start is a step away and back."""
    to_site, chosen = _to_site(grid), np.array(treasures, np.int64).reshape(-1)
    x, z = grid.sites[chosen].T
    from_start = to_site[chosen, start[0], start[1]]
    return Legs(
        from_start=_closed_walks(grid, start, from_start),
        between=np.ascontiguousarray(to_site[chosen][:, x, z].T),
        to_end=_to_end(grid)[x, z],
        points=grid.points[chosen],
    )


def _closed_walks(
    grid: GorgeMap, start: GridCell, from_start: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """`from_start` [K] with a step away and back in the place of 0; -1 where there is none."""
    if from_start.all():
        return from_start
    near = (distances(grid, start) == 1).any()
    return np.where(from_start == 0, np.int32(2 if near else NO_WAY), from_start)


def _fill_routes(legs: Legs, rules: Rules) -> Routes:
    """The walks worth keeping, in arrays that grow until they hold them.

    Without decay each state has one; half of them hold their last treasure.
    """
    count = legs.points.size
    states, capacity = count << count, max(1, (count << count) // 2)
    while True:
        routes = Routes(
            first=np.zeros(states + 1, np.int64),
            steps=np.empty(capacity, np.int32),
            points=np.empty(capacity),
            before=np.empty(capacity, np.int64),
        )
        if fill_routes(legs, rules, routes, np.empty(count, np.int64)) != FULL:
            return routes
        capacity *= 2


def _order(routes: Routes, bests: Bests, best: int, *, count: int) -> list[int]:
    """The treasures of the set `best` as its walk takes them, by their places in the `count`."""
    entry, order = int(bests.entry[best]), []
    while entry != NO_ENTRY:
        state = int(np.searchsorted(routes.first, entry, side="right")) - 1
        order.append(state % count)
        entry = int(routes.before[entry])
    return order[::-1]


def _walk(
    grid: GorgeMap, start: GridCell, visits: Sequence[int], *, arrives: bool
) -> npt.NDArray[np.int8]:
    """The actions from `start` by the sites `visits` and, where it arrives, to the end."""
    cell = start
    parts = [np.empty(0, np.int8)]
    targets = [(_to_site(grid)[site], tuple(grid.sites[site].tolist())) for site in visits]
    if arrives:
        targets.append((_to_end(grid), grid.end))
    for field, target in targets:
        part = np.empty(int(field[cell]) or 2, np.int8)
        append_way(grid.walls, field, SIZE * cell[0] + cell[1], part)
        parts.append(part)
        cell = target
    return np.concatenate(parts)


def _taken_on(
    grid: GorgeMap, start: GridCell, walk: npt.NDArray[np.int8], *, treasures: Sequence[int]
) -> tuple[int, ...]:
    """The treasures that a walk without bumps moves onto, in that order."""
    x, z = start[0] + np.cumsum(np.array(DX)[walk]), start[1] + np.cumsum(np.array(DZ)[walk])
    sites = {tuple(grid.sites[k].tolist()): int(k) for k in treasures}
    cells = dict.fromkeys(zip(x.tolist(), z.tolist(), strict=True))
    return tuple(sites[cell] for cell in cells if cell in sites)


def _idle(
    grid: GorgeMap, start: GridCell, walk: npt.NDArray[np.int8], *, count: int
) -> npt.NDArray[np.int8]:
    """`count` actions after `walk`, which does not arrive: bumps, or a step away and back.

    None of them reaches the end, since `walk` would, were there time for it.
    """
    at = start[0] + int(np.array(DX)[walk].sum()), start[1] + int(np.array(DZ)[walk].sum())
    for action in range(4):
        x, z = at[0] + DX[action], at[1] + DZ[action]
        if not (0 <= x < SIZE and 0 <= z < SIZE) or grid.walls[x, z]:
            return np.full(count, action, np.int8)
    return np.resize(np.array([0, 1], np.int8), count)


def unknown_optima(maps: Maps) -> core.Floats:
    """[M, 2**SITES] before anything was searched: NaN."""
    return np.full((len(maps), 1 << core.SITES), np.nan)


def same_scores(one: SamplerTables, two: SamplerTables) -> bool:
    """Whether episodes of both have the same best scores: equal constants decide them."""
    which = list(core.OF_SCORE)
    return (
        are_constant(one)
        and are_constant(two)
        and np.array_equal(one.sampler_values[which, 0], two.sampler_values[which, 0])
    )


def are_constant(samplers: SamplerTables) -> bool:
    """Whether every episode has the same limit and points."""
    return not samplers.sampler[list(core.OF_SCORE)].any()


def fill_optima(state: GorgeState, tables: GorgeTables, maps: Maps, rows: core.Ints) -> None:
    """Write `state.optimum` of those `rows` where it is NaN; a map's table is filled at once."""
    for row in rows[np.isnan(state.optimum[rows])].tolist():
        at = int(state.map[row])
        if are_constant(tables.samplers) and state.start[row] == tables.maps.start[at]:
            if np.isnan(tables.optima[at, 0]):
                rules = _rules(state, tables, row)
                scores = optima_by_set(maps[at], start=maps[at].start, rules=rules)
                tables.optima[at, : len(scores)] = scores
            state.optimum[row] = tables.optima[at, state.placed[row]]
        else:
            state.optimum[row] = best_walk(state, tables, maps, row).score


def best_walk(state: GorgeState, tables: GorgeTables, maps: Maps, row: int) -> Optimum:
    """The best walk of the episode of `row`, from its beginning."""
    placed = int(state.placed[row])
    return optimum(
        maps[int(state.map[row])],
        start=(int(state.start[row]) // core.SIDE, int(state.start[row]) % core.SIDE),
        treasures=[site for site in range(core.SITES) if placed >> site & 1],
        rules=_rules(state, tables, row),
    )


def _rules(state: GorgeState, tables: GorgeTables, row: int) -> Rules:
    numbers = state.parameters[row]
    return Rules(
        int(numbers[core.MAX_STEPS]),
        float(numbers[core.END_SCORE]),
        float(numbers[core.STEP_FACTOR]),
        float(tables.decay),
    )
