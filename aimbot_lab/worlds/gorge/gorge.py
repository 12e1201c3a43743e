"""Gorge Walk: a batch of games behind the `BatchWorld` protocol."""

from collections.abc import Mapping, Sequence
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
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.kernels.packed import Packed
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.kernels.spin_sync import ThreadWorkspace, new_workspaces
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Picture,
    Scenario,
)
from aimbot_lab.worlds.episode_log import cells_of, ended_episodes, new_log
from aimbot_lab.worlds.gorge.allocate import map_tables, new_state
from aimbot_lab.worlds.gorge.core.state import (
    DIFFICULTY_COUNT,
    MOVES,
    REWARD_TERMS,
    SIDE,
    SITES,
    EpisodeLog,
    GorgeState,
    GorgeTables,
    MapTables,
    SamplerTables,
    ScenarioTables,
)
from aimbot_lab.worlds.gorge.core.step import (
    advance_packed,
    all_masks,
    first_bad_action,
    keep_advance,
)
from aimbot_lab.worlds.gorge.map_choice import chosen_maps, pool_of
from aimbot_lab.worlds.gorge.optimum import (
    Optimum,
    best_walk,
    fill_optima,
    same_scores,
    unknown_optima,
)
from aimbot_lab.worlds.gorge.scenario import sampler_tables, scenario_tables
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gorge.snapshots import OF_SAMPLERS, check_snapshot, fingerprint
from aimbot_lab.worlds.gorge.spec import TARGETS, block_table, gorge_spec, polar_table
from aimbot_lab.worlds.kernel_world import KernelWorld, overwrite, tables_of
from aimbot_lab.worlds.snapshot_checks import OF_SCENARIO


def checked_actions(actions: Any, *, shape: tuple[int, int]) -> Float32Array:
    """`actions` of `shape` [B, 1] as kernels read them. Raises ActionError for what is no move."""
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
NOTHING = Scenario({"walk": 1.0})  # the tables' before a scenario is set; nobody plays it


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
        self._advance = Packed(keep_advance, advance_packed)
        super().__init__(
            settings,
            gorge_spec(settings),
            state=new_state(settings.num_envs),
            tables=self._new_tables(),
            log=new_log(EpisodeLog, settings.num_envs, terms=len(REWARD_TERMS)),
            fits=fingerprint(settings, self.maps),
        )

    def _new_tables(self) -> GorgeTables:
        return GorgeTables(
            maps=map_tables(self.maps, self._pool, view=self.settings.view),
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

    def _kernel(self) -> Packed:
        return self._advance

    def _take(self, actions: Float32Array) -> None:
        self._actions[...] = checked_actions(actions, shape=self._actions.shape)

    def _episodes(self, rows: Int64Array) -> EpisodeBatch:
        log: EpisodeLog = self._log
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

    def _drawn_from(self, drawn: ScenarioTables, samplers: SamplerTables) -> GorgeTables:
        optima = self._tables.optima
        if not same_scores(samplers, self._tables.samplers):
            optima = unknown_optima(self.maps)
        return self._tables._replace(scenario=drawn, samplers=samplers, optima=optima)

    def running(self) -> tuple[Int64Array, Int64Array]:
        """See `worlds.row_parts.PartWorld`."""
        return self.state.order, self.state.scenario

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
        drawn = tables_of(ScenarioTables, snapshot, OF_SCENARIO)
        self._tables = self._drawn_from(drawn, tables_of(SamplerTables, snapshot, OF_SAMPLERS))
        overwrite(self.state, snapshot)


HERO_ID = 112  # the only hero
TREASURE = 1  # the only kind of organ


def frame_of(state: GorgeState, maps: MapTables, row: int) -> dict[str, Any]:
    """What there is in `row` after its last step; an organ's `status` is 1 when it is taken."""
    at, placed, left = int(state.map[row]), int(state.placed[row]), int(state.left[row])
    organs = [
        {
            "sub_type": TREASURE,
            "config_id": site,
            "pos": list(divmod(int(maps.sites[at, site]), SIDE)),
            "status": 1 - (left >> site & 1),
            "reward": int(maps.points[at, site]),
        }
        for site in range(SITES)
        if placed >> site & 1
    ]
    hero = {
        "hero_id": HERO_ID,
        "treasure_count": (placed & ~left).bit_count(),
        "pos": [int(state.x[row]), int(state.z[row])],
    }
    return {
        "step_no": int(state.steps[row]),
        "heroes": [hero],
        "organs": organs,
        "score": float(state.step_score[row]),
        "total_score": float(state.score[row]),
    }
