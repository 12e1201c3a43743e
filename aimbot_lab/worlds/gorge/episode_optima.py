"""The best score of episodes that just began, searched for where no table has it."""

import numpy as np

from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import GorgeState, GorgeTables, SamplerTables
from aimbot_lab.worlds.gorge.map_choice import Maps
from aimbot_lab.worlds.gorge.optimum import Optimum, optima_by_set, optimum


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
                _fill_table(tables, maps, at, state.parameters[row])
            state.optimum[row] = tables.optima[at, state.placed[row]]
        else:
            state.optimum[row] = best_walk(state, tables, maps, row).score


def best_walk(state: GorgeState, tables: GorgeTables, maps: Maps, row: int) -> Optimum:
    """The best walk of the episode of `row`, from its beginning."""
    placed, numbers = int(state.placed[row]), state.parameters[row]
    return optimum(
        maps[int(state.map[row])],
        start=(int(state.start[row]) // core.SIDE, int(state.start[row]) % core.SIDE),
        treasures=[site for site in range(core.SITES) if placed >> site & 1],
        max_steps=int(numbers[core.MAX_STEPS]),
        end_score=float(numbers[core.END_SCORE]),
        step_score=float(numbers[core.STEP_FACTOR]),
        decay=tables.decay,
    )


def _fill_table(tables: GorgeTables, maps: Maps, at: int, numbers: core.Floats) -> None:
    scores = optima_by_set(
        maps[at],
        start=maps[at].start,
        max_steps=int(numbers[core.MAX_STEPS]),
        end_score=float(numbers[core.END_SCORE]),
        step_score=float(numbers[core.STEP_FACTOR]),
        decay=tables.decay,
    )
    tables.optima[at, : len(scores)] = scores
