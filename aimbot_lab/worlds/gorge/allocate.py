"""State arrays and tables for the kernels, built from settings and maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import GorgeState, MapTables
from aimbot_lab.worlds.gorge.map_choice import Maps
from aimbot_lab.worlds.gorge.maps import GorgeMap, distances

COUNTERS = (
    "x",
    "z",
    "map",
    "start",
    "target",
    "difficulty",
    "steps",
    "bumps",
    "placed",
    "left",
    "episode",
    "order",
    "scenario",
)  # [B] whole numbers of the state that begin at 0


def new_state(rows: int) -> GorgeState:
    """State of `rows` rows before any episode began."""
    counters: dict[str, Any] = {name: np.zeros(rows, np.int64) for name in COUNTERS}
    return GorgeState(
        score=np.zeros(rows),
        step_score=np.zeros(rows),
        optimum=np.zeros(rows),
        terms=np.zeros((rows, len(core.REWARD_TERMS))),
        arrivals=np.zeros((rows, core.CELLS), np.uint16),
        walked=np.zeros((rows, core.PADDED), np.uint64),
        parameters=np.zeros((rows, len(core.PARAMETERS))),
        streams=np.zeros(rows, np.uint64),
        sampler_key=np.zeros(1, np.uint64),
        clock=np.zeros(1, np.int64),
        **counters,
    )


def map_tables(maps: Maps, pool: Sequence[int], *, view: int) -> MapTables:
    """What is known of `maps`, the ways searched once and for all."""
    one_by_one = [_tables_of(one, pool, view) for one in maps]
    return MapTables(*(np.array(arrays) for arrays in zip(*one_by_one, strict=True)))


def _tables_of(grid: GorgeMap, pool: Sequence[int], view: int) -> MapTables:
    """Tables of one map, without the axis of maps."""
    missing = core.SITES - len(grid.sites)
    to_end = distances(grid, grid.end)
    ways = [distances(grid, (x, z)).ravel() for x, z in grid.sites.tolist()]
    ways += [np.full(core.CELLS, -1, np.int32)] * missing
    sites = [core.SIDE * x + z for x, z in grid.sites.tolist()]
    walk_cells, walk_first = _walk_starts(to_end.ravel(), int(to_end[grid.start]))
    free = _free_cells(grid, pool)
    return MapTables(
        road=_road_bits(grid),
        start=np.array(core.SIDE * grid.start[0] + grid.start[1]),
        end=np.array(core.SIDE * grid.end[0] + grid.end[1]),
        sites=np.array(sites + [-1] * missing, np.int64),
        points=np.concatenate([grid.points, np.zeros(missing)]),
        on=_sites_around(grid, 0),
        near=_sites_around(grid, view),
        to_end=to_end.ravel(),
        to_site=np.array(ways, np.int32),
        walk_cells=walk_cells,
        walk_first=walk_first,
        free_cells=_padded(free),
        free_count=np.array(len(free)),
    )


def _road_bits(grid: GorgeMap) -> core.Words:
    """[PADDED] bit z of column x + MAX_VIEW where (x, z) is no obstacle."""
    weights = np.uint64(1) << np.arange(core.SIDE, dtype=np.uint64)
    columns = np.where(grid.walls, np.uint64(0), weights).sum(axis=1, dtype=np.uint64)
    return np.pad(columns, core.MAX_VIEW)


def _sites_around(grid: GorgeMap, reach: int) -> core.Sets:
    """[CELLS] set of the sites at most `reach` cells to each side of a cell."""
    found = np.zeros((core.SIDE, core.SIDE), np.uint16)
    for site, (x, z) in enumerate(grid.sites.tolist()):
        found[max(x - reach, 0) : x + reach + 1, max(z - reach, 0) : z + reach + 1] |= 1 << site
    return found.ravel()


def _walk_starts(to_end: core.Ints32, longest: int) -> tuple[core.Ints32, core.Ints]:
    """Cells by their way to the end, and where each quarter of `longest` begins and ends.

    Quarter k holds the cells whose way is more than (k - 1) / 4 of it and at most k / 4.
    """
    order = np.argsort(to_end, kind="stable").astype(np.int32)
    ways = core.QUARTERS * to_end[order].astype(np.int64)
    first = np.searchsorted(ways, longest * np.arange(core.QUARTERS + 1), side="right")
    return order, first.astype(np.int64)


def _free_cells(grid: GorgeMap, pool: Sequence[int]) -> core.Ints32:
    """Cells that the hero can reach, but for the end and the sites of `pool`."""
    free = distances(grid, grid.start) >= 0
    free[grid.end] = False
    for x, z in grid.sites[list(pool)].tolist():
        free[x, z] = False
    return np.flatnonzero(free).astype(np.int32)


def _padded(cells: core.Ints32) -> core.Ints32:
    return np.pad(cells, (0, core.CELLS - len(cells)))
