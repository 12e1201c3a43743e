"""Gorge Walk: a batch of games behind the `BatchWorld` protocol."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    BOOL,
    FLOAT32,
    MisuseError,
    check_buffers,
    check_writable,
    checked_row,
    whole_seed,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.foundation.kernels.rng import seed_streams
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.threads.row_queue import BEGIN, STEP, new_queue, new_workspaces
from aimbot_lab.foundation.threads.step_task import StepTask, next_task
from aimbot_lab.foundation.threads.thread_pool import ThreadPool
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Picture,
    Scenario,
    StepBuffers,
    new_step_buffers,
)
from aimbot_lab.worlds.episode_log import cells_of, ended_episodes, new_log
from aimbot_lab.worlds.gorge.action_checks import checked_actions
from aimbot_lab.worlds.gorge.allocate import map_tables, new_state
from aimbot_lab.worlds.gorge.core.state import (
    DIFFICULTY_COUNT,
    MOVES,
    REWARD_TERMS,
    EpisodeLog,
    GorgeState,
    GorgeTables,
    MapTables,
    SamplerTables,
    ScenarioTables,
)
from aimbot_lab.worlds.gorge.core.step import advance_packed, all_masks, keep_advance
from aimbot_lab.worlds.gorge.episode_optima import (
    best_walk,
    fill_optima,
    same_scores,
    unknown_optima,
)
from aimbot_lab.worlds.gorge.features import block_table, polar_table
from aimbot_lab.worlds.gorge.map_choice import chosen_maps, pool_of
from aimbot_lab.worlds.gorge.optimum import Optimum
from aimbot_lab.worlds.gorge.parameters import bounds_in, parameter_values, world_fault
from aimbot_lab.worlds.gorge.scenario import sampler_tables, scenario_tables
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gorge.snapshots import arrays_of, check_snapshot, fingerprint, tables_of
from aimbot_lab.worlds.gorge.spec import TARGETS, gorge_spec
from aimbot_lab.worlds.row_parts import RowParts, row_numbers

MIN_ROWS = 128  # that are worth a thread of their own
CELLS = cells_of(TARGETS, DIFFICULTY_COUNT)
NOTHING = Scenario({"walk": 1.0})  # the tables' before a scenario is set; nobody plays it


class Gorge(RowParts):
    """`settings.num_envs` games of Gorge Walk, stepped together.

    `state` holds the named arrays of `core.state.GorgeState`; reading them is free. A scenario and
    then `reset` must come first. What it is called with is checked: MisuseError says in one line
    what is wrong, and the world is as it was.
    """

    def __init__(self, settings: GorgeSettings) -> None:
        self.settings = settings
        self.maps = chosen_maps(settings)
        self.spec = gorge_spec(settings)
        self.num_envs = settings.num_envs
        self.keep_endings = False
        self.ended_state: GorgeState | None = None
        self._pool = pool_of(settings, self.maps)
        self._shape = self.num_envs, len(self.spec.observation_names)
        self._fits = fingerprint(settings, self.maps)
        self._tables = self._new_tables()
        self.state = new_state(self.num_envs)
        self._log = new_log(EpisodeLog, self.num_envs, terms=len(REWARD_TERMS))
        self._actions = np.zeros((self.num_envs, 1), np.float32)
        threads = max(1, min(settings.threads, self.num_envs // MIN_ROWS))
        self._workspaces = new_workspaces(threads)
        self._workers = ThreadPool(threads)
        self._queue = new_queue(self._workers.sync_flags, threads=threads)
        self._task: StepTask | None = None
        self._advance = Packed(keep_advance, advance_packed)
        self._nothing_ended = self._ended(np.zeros(0, np.int64))

    def _new_tables(self) -> GorgeTables:
        return GorgeTables(
            maps=map_tables(self.maps, self._pool, view=self.settings.view),
            scenario=scenario_tables(NOTHING, number=0),
            samplers=self._samplers({}),
            optima=unknown_optima(self.maps),
            pool=np.array(self._pool, np.int64),
            blocks=block_table(self.settings),
            polar=polar_table(),
            reach=self.settings.view,
            decay=self.settings.score_decay,
            rows=RowNumbers(0, self.num_envs),
        )

    def _samplers(self, given: Mapping[str, ParameterValue]) -> SamplerTables:
        own = self.settings, self.maps, self._pool
        return sampler_tables(
            given,
            parameter_values(self.settings, self._pool),
            bounds_in(*own),
            fault=lambda name, value: world_fault(name, value, *own),
        )

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return int(self._tables.scenario.number[0])

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError where it names what Gorge Walk does not have.
        """
        if not isinstance(scenario, Scenario):
            raise MisuseError(f"scenario: must be a Scenario (got {type(scenario).__name__})")
        number = self.scenario_number + 1
        drawn = scenario_tables(scenario, number=number)
        self._draw_from(drawn, self._samplers(scenario.parameters))
        return number

    def _draw_from(self, drawn: ScenarioTables, samplers: SamplerTables) -> None:
        optima = self._tables.optima
        if not same_scores(samplers, self._tables.samplers):
            optima = unknown_optima(self.maps)
        self._tables = self._tables._replace(scenario=drawn, samplers=samplers, optima=optima)

    def place(self, first_row: int, total_rows: int) -> None:
        """See `worlds.row_parts.PartWorld`."""
        numbers = row_numbers(first_row, total_rows, state=self.state)
        self._tables = self._tables._replace(rows=numbers)

    def running(self) -> tuple[Int64Array, Int64Array]:
        """See `worlds.row_parts.PartWorld`."""
        return self.state.order, self.state.scenario

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [B, D]."""
        seed = whole_seed(seed)
        check_writable(observations, "observations", shape=self._shape, dtype=FLOAT32)
        if self.scenario_number == 0:
            raise MisuseError("the world has nothing to draw episodes from: set_scenario first")
        _overwrite(self.state, new_state(self.num_envs)._asdict())
        seed_streams(self.state.streams, np.uint64(seed % 2**64), self._tables.rows.first)
        self.state.sampler_key[0] = derive_seed(seed, "samplers")
        buffers = new_step_buffers(*self._shape)
        buffers.finished[:] = True
        self._do(self._task_for(buffers), BEGIN)
        self._know_optima(np.arange(self.num_envs))
        observations[:] = buffers.observations

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        `actions` [B, 1]: 0 up, 1 down, 2 left, 3 right. Raises ActionError, with the world as it
        was, for an action that does not exist. With `keep_endings`, `ended_state` is a copy of the
        state before finished rows were reset.
        """
        self._check_started()
        check_buffers(buffers, self._shape)
        self._actions[...] = checked_actions(actions, shape=self._actions.shape)
        buffers.finished.fill(False)
        ended = self._queue.ended
        ended.fill(0)
        task = self._task_for(buffers)
        try:
            self.state.clock[0] += 1
            self._do(task, STEP if self.keep_endings else STEP | BEGIN)
            if self.keep_endings and any(ended.tolist()):
                self.ended_state = _copied(self.state)
        finally:
            if self.keep_endings and any(ended.tolist()):
                self._do(task, BEGIN)
        if not any(ended.tolist()):
            return self._nothing_ended
        rows = np.flatnonzero(buffers.finished)
        self._know_optima(rows)
        return self._ended(rows)

    def _ended(self, rows: np.ndarray) -> EpisodeBatch:
        log = self._log
        return ended_episodes(
            rows,
            log,
            self.state,
            cells=CELLS,
            outcome=np.where(log.won[rows], WIN, LOSS).astype(np.int8),
            length=log.steps[rows],
            columns=self.spec.episode_columns,
        )

    def _do(self, task: StepTask, duty: int) -> None:
        task.begin_work(duty)
        self._workers.run(task)

    def _know_optima(self, rows: np.ndarray) -> None:
        fill_optima(self.state, self._tables, self.maps, rows)

    def _task_for(self, buffers: StepBuffers) -> StepTask:
        """What steps into `buffers`: the last task where it fits, since workers may be in it."""
        task, tables = self._task, self._tables
        if task is None or not task.fits(tables, buffers):
            task = next_task(task, tables, buffers, queue=self._queue, calls=self._calls)
            self._task = task
        return task

    def _calls(self, pair: tuple[StepBuffers, StepBuffers]) -> tuple[PackedCall, ...]:
        """The kernel as each thread calls it to write `pair`."""
        shared = self.state, self._tables, self._actions, pair, self._log
        own = self._workspaces
        return tuple([self._advance.call_with(*shared, one, self._queue) for one in own])

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, 4], True where the move does not bump."""
        self._check_started()
        check_writable(masks, "masks", shape=(self.num_envs, MOVES), dtype=BOOL)
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
        from aimbot_lab.worlds.gorge.frame import frame_of

        state, maps = self.row_tables(ending=ending)
        return frame_of(state, maps, checked_row(row, self.num_envs))

    def row_tables(self, *, ending: bool = False) -> tuple[GorgeState, MapTables]:
        """The state of all rows and what is known of the maps, to be read and not written.

        With `ending` the state before finished rows were reset. Raises MisuseError where no ending
        was kept.
        """
        self._check_started()
        state = self.ended_state if ending else self.state
        if state is None:
            raise MisuseError("no ending was kept: set keep_endings before the step")
        return state, self._tables.maps

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` from above, [512, 512, 3], or how its last episode ended.

        Raises MisuseError where no ending was kept.
        """
        from aimbot_lab.worlds.gorge.draw import draw_row

        state, maps = self.row_tables(ending=ending)
        at = checked_row(row, self.num_envs)
        return draw_row(state, maps, at, view=self.settings.view)

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, by name.

        State and scenario, and under "fits" settings and maps that a world must share to restore
        it.
        """
        return {name: array.copy() for name, array in self.arrays().items()}

    def arrays(self) -> Mapping[str, np.ndarray]:
        """What a snapshot copies, by name; to be read and not written."""
        return arrays_of(self.state, self._tables, self._fits)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a world with the same settings and maps, bit for bit."""
        check_snapshot(snapshot, self.arrays(), maps=len(self.maps))
        self._draw_from(*tables_of(snapshot))
        _overwrite(self.state, snapshot)

    def _check_started(self) -> None:
        if self.state.episode[0] == 0:
            raise MisuseError("the world has no episodes yet: reset first")


def _overwrite(state: GorgeState, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in state._asdict().items():
        array[...] = arrays[name]


def _copied(state: GorgeState) -> GorgeState:
    return GorgeState(**{name: array.copy() for name, array in state._asdict().items()})
