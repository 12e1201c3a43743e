"""The duel: a batch of matches of two agents behind the `BatchWorld` protocol."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    action_fault,
    checked_row,
)
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.kernels.packed import Packed
from aimbot_lab.foundation.kernels.rng import seed_streams
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Picture,
    Scenario,
)
from aimbot_lab.worlds.arena.allocate import new_workspaces
from aimbot_lab.worlds.arena.arena import ACTION_NAMES, in_single_precision
from aimbot_lab.worlds.arena.core.masks import write_masks
from aimbot_lab.worlds.arena.core.state import ThreadWorkspace
from aimbot_lab.worlds.arena.core.step import first_bad_action
from aimbot_lab.worlds.duel.allocate import new_log, new_state, new_tables, stream_seeds
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    AGENTS,
    BRANCHES,
    DuelState,
    DuelTables,
    ScenarioTables,
)
from aimbot_lab.worlds.duel.core.step import advance_packed, keep_advance, mask_held
from aimbot_lab.worlds.duel.episode_results import episode_batch
from aimbot_lab.worlds.duel.kinds import TARGET
from aimbot_lab.worlds.duel.layouts import Layout, chosen_layouts
from aimbot_lab.worlds.duel.scenario import scenario_tables
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.snapshots import (
    check_snapshot,
    fingerprint,
)
from aimbot_lab.worlds.duel.spec import duel_spec
from aimbot_lab.worlds.kernel_world import KernelWorld, named_arrays, overwrite, tables_of
from aimbot_lab.worlds.snapshot_checks import OF_SCENARIO


class Duel(KernelWorld):
    """`settings.num_envs` matches of two agents, stepped together.

    Arrays of agents are by seat: home in match m is seat m, away is seat `num_envs` + m. `state`
    holds the named arrays of `core.state.DuelState`; reading them is free. Targets are `kinds` of
    matches. Actions are [N, 4]: vertical, horizontal, attack, mouse.
    """

    MIN_ROWS = 32
    NOT_STARTED = "the duel has no matches yet: reset first"
    state: DuelState
    ended_state: DuelState | None
    _tables: DuelTables

    def __init__(
        self,
        settings: DuelSettings,
        layouts: Sequence[Layout] | None = None,
        *,
        kinds: Collection[str] = (TARGET,),
    ) -> None:
        self.settings, self._kinds = settings, kinds
        self.layouts = chosen_layouts(settings) if layouts is None else tuple(layouts)
        self._advance = Packed(keep_advance, advance_packed)
        tables = new_tables(settings, self.layouts)
        super().__init__(
            settings,
            duel_spec(replace(settings, learner="both")),  # two play, even where one learns
            state=new_state(settings, tables),
            tables=tables,
            log=new_log(settings.num_envs),
            fits=fingerprint(settings, tables.layouts),
        )

    def _new_workspaces(self, threads: int) -> Sequence[ThreadWorkspace]:
        return new_workspaces(threads, self.state.seats.ray_cos.shape[1])

    def _kernel(self) -> Packed:
        return self._advance

    def _take(self, actions: Float32Array) -> None:
        self._actions[...] = checked_actions(actions, self.num_envs)

    def _episodes(self, rows: Int64Array) -> EpisodeBatch:
        return episode_batch(rows, self._log, self.state)

    @property
    def duel(self) -> "Duel":
        """Itself, as worlds that have a duel within name it."""
        return self

    @property
    def tables(self) -> DuelTables:
        """What all matches share: layouts and scenario."""
        return self._tables

    def _scenario_tables(self, scenario: Scenario, number: int) -> DuelTables:
        tables = scenario_tables(scenario, self.settings, kinds=self._kinds, number=number)
        return self._tables._replace(scenario=tables)

    def running(self) -> tuple[Int64Array, Int64Array]:
        """See `worlds.row_parts.PartWorld`."""
        return self.state.seats.order, self.state.seats.scenario

    def _clear(self) -> None:
        overwrite(self.state, named_arrays(new_state(self.settings, self._tables)))

    def _seed_rows(self, seed: int) -> None:
        own, seats = self.state.streams, self.state.seats.streams
        home, away = seats[: self.num_envs], seats[self.num_envs :]
        for streams, number in zip((own, home, away), stream_seeds(seed), strict=True):
            seed_streams(streams, np.uint64(number), self._tables.rows.first)

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [N, 8], True where a branch index makes sense in the present state.

        Masked are attack while the gun is not ready, moves that would not displace the agent, and
        all but index 0 where an agent repeats its last action.
        """
        self._check_masks(masks)
        write_masks(self.state.seats, masks)
        mask_held(self.state, masks)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Match `row` from above in the home agent's frame, [480, 480, 3], or how it last ended.

        Raises MisuseError where no ending was kept.
        """
        from aimbot_lab.worlds.duel.draw import draw_match

        state = self._shown_state(ending=ending)
        return draw_match(state, checked_row(row, self.num_envs), self.settings)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a duel with the same settings and layouts, bit for bit."""
        self.check_restorable(snapshot)
        overwrite(self.state, snapshot)
        scenario = tables_of(ScenarioTables, snapshot, OF_SCENARIO)
        self._tables = self._tables._replace(scenario=scenario)

    def check_restorable(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Raise MisuseError unless `snapshot` is of such a duel."""
        check_snapshot(snapshot, self.arrays(), self._tables)


AGENT_NAMES = ("home", "away")


def checked_actions(actions: Any, matches: int, *, seats: int | None = None) -> Float32Array:
    """`actions` [seats, 4] as kernels read them; all seats of the matches, or the first `seats`.

    Raises ActionError, naming match and agent, for what no player could do.
    """
    shape = AGENTS * matches if seats is None else seats, ACTION_COLUMNS
    found = in_single_precision(actions, shape)
    bad = first_bad_action(found)
    if bad >= 0:
        match, agent = bad % matches, AGENT_NAMES[bad // matches]
        fault = action_fault(found[bad], match, names=ACTION_NAMES, branches=BRANCHES)
        raise ActionError(f"{fault} (agent {agent})")
    return found
