"""Gorge Walk: a batch of games behind the `BatchWorld` protocol, built from settings and maps."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    FLOAT32,
    MisuseError,
    action_fault,
    check_real,
    checked_row,
)
from aimbot_lab.foundation.episodes import (
    LOSS,
    WIN,
    EpisodeBatch,
    cells_of,
    ended_episodes,
    new_log,
)
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.kernels.jit import Packed
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.kernels.threads import ThreadWorkspace, new_workspaces
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Picture,
    Scenario,
    StepBuffers,
    step_buffers,
)
from aimbot_lab.foundation.world_type import StepParts
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import (
    DIFFICULTY_COUNT,
    MOVES,
    REWARD_TERMS,
    SIDE,
    SITES,
    GorgeEpisodeLog,
    GorgeScenarioTables,
    GorgeState,
    GorgeTables,
    MapTables,
    SamplerTables,
)
from aimbot_lab.worlds.gorge.core.step import (
    advance_packed,
    all_masks,
    begin_all,
    first_bad_action,
    move_all,
    observe_all,
    reward_all,
)
from aimbot_lab.worlds.gorge.map_choice import Maps, chosen_maps, pool_of
from aimbot_lab.worlds.gorge.maps import GorgeMap, distances
from aimbot_lab.worlds.gorge.optimum import (
    Optimum,
    best_walk,
    fill_optima,
    same_scores,
    unknown_optima,
)
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gorge.spec import (
    TARGETS,
    block_table,
    gorge_spec,
    picture_columns,
    polar_table,
    sampler_tables,
    scenario_tables,
)
from aimbot_lab.worlds.kernel_world import (
    LARGEST,
    OF_SCENARIO,
    Arrays,
    KernelWorld,
    check_arrays,
    check_range,
    check_samplers,
    overwrite,
    setting_lines,
    tables_of,
)


def checked_actions(actions: Any, *, shape: tuple[int, int]) -> Float32Array:
    """`actions` of `shape` [B, 1] as kernels read them. Raises ActionError for other values."""
    usual = type(actions) is np.ndarray and actions.dtype is FLOAT32
    if not usual or actions.shape != shape:
        check_real(actions, shape)
        _check_moves(actions)  # before they lose digits
    found: Float32Array = np.ascontiguousarray(actions, np.float32)
    bad = first_bad_action(found)
    if bad >= 0:
        raise _no_move(found, bad)
    return found


def _check_moves(actions: Any) -> None:
    moves = actions[:, 0]
    wrong = np.flatnonzero(~((moves >= 0) & (moves < MOVES) & (moves == np.floor(moves))))
    if wrong.size:
        raise _no_move(actions, int(wrong[0]))


def _no_move(actions: Any, row: int) -> ActionError:
    return ActionError(action_fault(actions[row], row, names=("move",), branches=(MOVES,)))


CELLS = cells_of(TARGETS, DIFFICULTY_COUNT)
NOTHING = Scenario({"walk": 1.0})  # the tables' before a scenario is set; it is never played

OF_SAMPLERS = "sampler_tables."  # what the names of the samplers' arrays begin with


class Gorge(KernelWorld):
    """`settings.num_envs` games of Gorge Walk, stepped together.

    `state` holds the named arrays of `core.state.GorgeState`; reading them is free. A scenario must
    be set before `reset`. Actions are [B, 1]: 0 up, 1 down, 2 left, 3 right.
    """

    MIN_ROWS = 128
    DRAWN_FROM = MappingProxyType({OF_SCENARIO: "scenario", OF_SAMPLERS: "samplers"})
    state: GorgeState
    ended_state: GorgeState | None
    _tables: GorgeTables

    def __init__(self, settings: GorgeSettings) -> None:
        self.settings = settings
        self.maps = chosen_maps(settings)
        self._pool = pool_of(settings, self.maps)
        self._advance = Packed(advance_packed)
        super().__init__(
            settings,
            gorge_spec(settings),
            state=new_state(settings.num_envs),
            tables=self._new_tables(),
            log=new_log(GorgeEpisodeLog, settings.num_envs, terms=len(REWARD_TERMS)),
            fits=fingerprint(settings, self.maps),
            pictures=picture_columns(settings),
        )

    def _new_tables(self) -> GorgeTables:
        known = [tables_of_map(one, self._pool, self.settings.view) for one in self.maps]
        return GorgeTables(
            maps=MapTables(*map(np.array, zip(*known, strict=True))),
            scenario=scenario_tables(NOTHING, number=0),
            samplers=sampler_tables({}, self.settings, self.maps, self._pool),
            optima=unknown_optima(self.maps),
            pool=np.array(self._pool, np.int64),
            blocks=block_table(self.settings),
            polar=polar_table(),
            reach=self.settings.view,
            decay=self.settings.score_decay,
            rows=RowNumbers(0, self.settings.num_envs),
        )

    def _new_workspaces(self, threads: int) -> Sequence[ThreadWorkspace]:
        return new_workspaces(threads)

    def _take(self, actions: Float32Array) -> None:
        self._actions[...] = checked_actions(actions, shape=self._actions.shape)

    def _episodes(self, rows: Int64Array) -> EpisodeBatch:
        log: GorgeEpisodeLog = self._log
        return ended_episodes(
            rows,
            log,
            self.state,
            cells=CELLS,
            outcome=np.where(log.won[rows], WIN, LOSS).astype(np.int8),
            length=log.steps[rows],
            columns=self.spec.episode_columns,
        )

    def _scenario_tables(self, scenario: Scenario, number: int) -> GorgeTables:
        drawn = scenario_tables(scenario, number=number)
        given = scenario.parameters
        return self._drawn_from(drawn, sampler_tables(given, self.settings, self.maps, self._pool))

    def _drawn_from(self, drawn: GorgeScenarioTables, samplers: SamplerTables) -> GorgeTables:
        optima = self._tables.optima
        if not same_scores(samplers, self._tables.samplers):
            optima = unknown_optima(self.maps)
        return self._tables._replace(scenario=drawn, samplers=samplers, optima=optima)

    def _clear(self) -> None:
        if self.scenario_number == 0:
            raise MisuseError("the world has nothing to draw episodes from: set_scenario first")
        overwrite(self.state, new_state(self.num_envs)._asdict())

    def _begun(self, rows: Int64Array) -> None:
        fill_optima(self.state, self._tables, self.maps, rows)

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, 4], True where the move does not bump."""
        self._check_masks(masks)
        all_masks(self.state, self._tables, masks)

    def best_walk(self, row: int, *, ending: bool = False) -> Optimum:
        """A walk of the highest score that the episode of `row` allows, from its beginning.

        With `ending` of the episode that was last in the row, as for `draw`.
        """
        state, _ = self.row_tables(ending=ending)
        return best_walk(state, self._tables, self.maps, checked_row(row, self.num_envs))

    def frame(self, row: int, *, ending: bool = False) -> dict[str, Any]:
        """Raw data of `row` as plain values, as Kaiwu's Gorge Walk gives them.

        With `ending` as its last episode ended, as for `draw`.
        """
        state, maps = self.row_tables(ending=ending)
        return frame_of(state, maps, checked_row(row, self.num_envs))

    def row_tables(self, *, ending: bool = False) -> tuple[GorgeState, MapTables]:
        """The state of all rows and what is known of the maps, to be read and not written.

        With `ending` the state before finished rows were reset. Raises MisuseError where no ending
        was kept.
        """
        return self._shown_state(ending=ending), self._tables.maps

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` from above, [512, 512, 3], or how its last episode ended.

        Raises MisuseError where no ending was kept.
        """
        from aimbot_lab.worlds.gorge.draw import draw_row

        state, maps = self.row_tables(ending=ending)
        at = checked_row(row, self.num_envs)
        return draw_row(state, maps, at, view=self.settings.view)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a world with the same settings and maps, bit for bit."""
        check_snapshot(snapshot, self.arrays(), maps=len(self.maps))
        drawn = tables_of(GorgeScenarioTables, snapshot, OF_SCENARIO)
        self._tables = self._drawn_from(drawn, tables_of(SamplerTables, snapshot, OF_SAMPLERS))
        overwrite(self.state, snapshot)

    def spread_episodes(
        self, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Begin episodes that are spread over the limit of their steps.

        Random play seldom arrives: without that spread all episodes would end in the same step, and
        a short measurement would hold either no reset or all of them.
        """
        self.set_scenario(scenario)
        self.reset(seed, step_buffers(self).observations)
        play(1)
        limit = self.settings.max_steps
        self.state.steps[:] = np.random.default_rng(seed).integers(limit, size=self.num_envs)

    def step_parts(self, buffers: StepBuffers) -> StepParts:
        """The kernels of a step, each on all rows."""
        state, tables = self.state, self._tables
        every_row = buffers._replace(finished=np.ones(self.num_envs, np.bool_))
        return {
            "movement": lambda actions: move_all(state, tables, actions),
            "reward": lambda actions: reward_all(state, tables, actions, buffers),
            "observation": lambda _: observe_all(state, tables, buffers.observations),
            "reset": lambda _: begin_all(state, tables, every_row),
        }


HERO_ID = 112  # the only hero
TREASURE = 1  # the only kind of organ


def frame_of(state: GorgeState, maps: MapTables, row: int) -> dict[str, Any]:
    """What there is in `row` after its last step; an organ's `status` is 1 when it is taken."""
    at, placed, left = int(state.map[row]), int(state.placed[row]), int(state.left[row])
    organs = [
        {
            "sub_type": TREASURE,
            "config_id": site,
            **_place(*divmod(int(maps.sites[at, site]), SIDE)),
            "status": 1 - (left >> site & 1),
            "reward": int(maps.points[at, site]),
        }
        for site in range(SITES)
        if placed >> site & 1
    ]
    hero = {
        "hero_id": HERO_ID,
        "treasure_count": (placed & ~left).bit_count(),
        **_place(int(state.x[row]), int(state.z[row])),
    }
    return {
        "step_no": int(state.steps[row]),
        "heroes": [hero],
        "organs": organs,
        "score": float(state.step_score[row]),
        "total_score": float(state.score[row]),
    }


def _place(x: int, z: int) -> dict[str, list[int]]:
    """A cell of the grid, whose origin is at the lower left, and its centre on Kaiwu's map.

    That has its origin at the upper left and 1000 units for each cell.
    """
    return {"pos": [x, z], "absolute_pos": [1000 * x + 500, 1000 * z - 63_500]}


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


def tables_of_map(grid: GorgeMap, pool: Sequence[int], view: int) -> MapTables:
    """What is known of one map, the ways searched once and for all; without the axis of maps."""
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
    """[PADDED] bit z of column x + MAX_VIEW where (x, z) is free."""
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


RANGES = OF_SAMPLERS + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and maps are compared by what
# they hold.
NOT_COMPARED = ("num_envs", "threads", "map")
ADDED = ("windows='columns'",)  # defaults of settings that snapshots of before do not name


def fingerprint(settings: GorgeSettings, maps: Maps) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a world with `settings` on `maps`."""
    told = setting_lines(settings, without=NOT_COMPARED)
    lines = [line for line in told if line not in ADDED]
    return np.array([*lines, *(f"map.{k}={one.content_hash}" for k, one in enumerate(maps))])


def check_snapshot(snapshot: Arrays, own: Arrays, *, maps: int) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the world of `own`."""
    check_arrays(snapshot, own, growing=(RANGES,))
    limits = {**_limits(maps), **check_samplers(snapshot, own, OF_SAMPLERS)}
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)


def _limits(maps: int) -> dict[str, tuple[int, int]]:
    """Lowest and highest value of the arrays that kernels count or choose by."""
    counters = ("steps", "bumps", "episode", "order", "scenario", "clock")
    sites = (0, (1 << core.SITES) - 1)
    return {
        **dict.fromkeys((*counters, OF_SCENARIO + "number"), (0, LARGEST)),
        **dict.fromkeys(("x", "z"), (0, core.SIDE - 1)),
        **dict.fromkeys(("placed", "left"), sites),
        "map": (0, maps - 1),
        "start": (0, core.CELLS - 1),
        "target": (0, core.TARGET_COUNT - 1),
        "difficulty": (0, core.DIFFICULTY_COUNT),
    }
