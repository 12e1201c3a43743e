"""The duel: a batch of matches of two agents behind the `BatchWorld` protocol."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

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
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.foundation.kernels.rng import seed_streams
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.threads.row_queue import BEGIN, STEP, new_queue
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
    seats_of,
)
from aimbot_lab.worlds.arena.allocate import new_workspaces
from aimbot_lab.worlds.arena.core.masks import write_masks
from aimbot_lab.worlds.duel.action_checks import checked_actions
from aimbot_lab.worlds.duel.allocate import new_log, new_state, new_tables, stream_seeds
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, DuelState, DuelTables
from aimbot_lab.worlds.duel.core.step import MASKS, advance_packed, keep_advance, mask_held
from aimbot_lab.worlds.duel.episode_results import episode_batch
from aimbot_lab.worlds.duel.kinds import TARGET
from aimbot_lab.worlds.duel.layouts.files import chosen_layouts
from aimbot_lab.worlds.duel.layouts.layout import Layout
from aimbot_lab.worlds.duel.scenario import scenario_tables
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.snapshots import (
    arrays_of,
    check_snapshot,
    fingerprint,
    scenario_of,
    state_arrays,
)
from aimbot_lab.worlds.duel.spec import duel_spec
from aimbot_lab.worlds.row_parts import RowParts, row_numbers

MIN_MATCHES = 32  # that are worth a thread of their own


class Duel(RowParts):
    """`settings.num_envs` matches of two agents, stepped together.

    Arrays of agents are by seat: home in match m is seat m, away is seat `num_envs` + m. `state`
    holds the named arrays of `core.state.DuelState`; reading them is free. Targets are `kinds` of
    matches. `reset` must come first. What it is called with is checked: MisuseError says in one
    line what is wrong, and the world is as it was.
    """

    def __init__(
        self,
        settings: DuelSettings,
        layouts: Sequence[Layout] | None = None,
        *,
        kinds: Collection[str] = (TARGET,),
    ) -> None:
        self.settings, self._kinds = settings, kinds
        self.layouts = chosen_layouts(settings) if layouts is None else tuple(layouts)
        self.spec = duel_spec(replace(settings, learner="both"))  # whoever learns, two play
        self.num_envs = settings.num_envs
        self.keep_endings = False
        self.ended_state: DuelState | None = None
        self._tables = new_tables(settings, self.layouts)
        self._fits = fingerprint(settings, self._tables.layouts)
        self.state = new_state(settings, self._tables)
        self._shape = seats_of(self), len(self.spec.observation_names)
        self._log = new_log(self.num_envs)
        self._actions = np.zeros((self._shape[0], ACTION_COLUMNS), np.float32)
        threads = max(1, min(settings.threads, self.num_envs // MIN_MATCHES))
        self._workspaces = new_workspaces(threads, self.state.seats.ray_cos.shape[1])
        self._workers = ThreadPool(threads)
        self._queue = new_queue(self._workers.sync_flags, threads=threads)
        self._task: StepTask | None = None
        self._advance = Packed(keep_advance, advance_packed)
        self._nothing_ended = episode_batch(np.zeros(0, np.int64), self._log, self.state)

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return int(self._tables.scenario.number[0])

    @property
    def duel(self) -> "Duel":
        """Itself, as worlds that have a duel within name it."""
        return self

    @property
    def tables(self) -> DuelTables:
        """What all matches share: layouts and scenario."""
        return self._tables

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every match from now on is drawn from.

        Raises ConfigurationError where it names what the duel does not have.
        """
        if not isinstance(scenario, Scenario):
            raise MisuseError(f"scenario: must be a Scenario (got {type(scenario).__name__})")
        number = self.scenario_number + 1
        tables = scenario_tables(scenario, self.settings, kinds=self._kinds, number=number)
        self._tables = self._tables._replace(scenario=tables)
        return number

    def place(self, first_row: int, total_rows: int) -> None:
        """See `worlds.row_parts.PartWorld`."""
        numbers = row_numbers(first_row, total_rows, state=self.state)
        self._tables = self._tables._replace(rows=numbers)

    def running(self) -> tuple[Int64Array, Int64Array]:
        """See `worlds.row_parts.PartWorld`."""
        return self.state.seats.order, self.state.seats.scenario

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first matches in all rows from `seed`; writes `observations` [N, D]."""
        seed = whole_seed(seed)
        check_writable(observations, "observations", shape=self._shape, dtype=FLOAT32)
        _overwrite(self.state, state_arrays(new_state(self.settings, self._tables)))
        own, seats = self.state.streams, self.state.seats.streams
        home, away = seats[: self.num_envs], seats[self.num_envs :]
        for streams, number in zip((own, home, away), stream_seeds(seed), strict=True):
            seed_streams(streams, np.uint64(number), self._tables.rows.first)
        self.state.sampler_key[0] = derive_seed(seed, "samplers")
        buffers = new_step_buffers(*self._shape)
        buffers.finished[:] = True
        self._do(self._task_for(buffers), BEGIN)
        observations[:] = buffers.observations

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step, one for each agent; writes `buffers`.

        `actions` [N, 4]: vertical, horizontal, attack, mouse. Raises ActionError, with the
        world as it was, for an action that does not exist. With `keep_endings`, `ended_state` is a
        copy of the state before finished matches were reset.
        """
        self.check_started()
        check_buffers(buffers, self._shape)
        self._actions[...] = checked_actions(actions, self.num_envs)
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
        matches = np.flatnonzero(buffers.finished[: self.num_envs])
        return episode_batch(matches, self._log, self.state)

    def _do(self, task: StepTask, duty: int) -> None:
        task.begin_work(duty)
        self._workers.run(task)

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
        """Write `masks` [N, 8], True where a branch index makes sense in the present state.

        Masked are attack while the gun is not ready, moves that would not displace the agent, and
        all but index 0 where an agent repeats its last action.
        """
        self.check_started()
        check_writable(masks, "masks", shape=(self._shape[0], MASKS), dtype=BOOL)
        write_masks(self.state.seats, masks)
        mask_held(self.state, masks)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Match `row` from above in the home agent's frame, [480, 480, 3], or how it last ended.

        Raises MisuseError where no ending was kept.
        """
        from aimbot_lab.worlds.duel.draw import draw_match

        self.check_started()
        state = self.ended_state if ending else self.state
        if state is None:
            raise MisuseError("no ending was kept: set keep_endings before the step")
        return draw_match(state, checked_row(row, self.num_envs), self.settings)

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, by name.

        State and scenario, and under "fits" settings and layouts that a world must share.
        """
        return {name: array.copy() for name, array in self.arrays().items()}

    def arrays(self) -> Mapping[str, np.ndarray]:
        """What a snapshot copies, by name; to be read and not written."""
        return arrays_of(self.state, self._tables.scenario, self._fits)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a duel with the same settings and layouts, bit for bit."""
        self.check_restorable(snapshot)
        _overwrite(self.state, snapshot)
        self._tables = self._tables._replace(scenario=scenario_of(snapshot))

    def check_restorable(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Raise MisuseError unless `snapshot` is of such a duel."""
        check_snapshot(snapshot, self.arrays(), self._tables)

    def check_started(self) -> None:
        """Raise MisuseError before the first reset."""
        if self.state.episode[0] == 0:
            raise MisuseError("the duel has no matches yet: reset first")


def _overwrite(state: DuelState, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in state_arrays(state).items():
        array[...] = arrays[name]


def _copied(state: DuelState) -> DuelState:
    copies = {name: array.copy() for name, array in state._asdict().items() if name != "seats"}
    seats = state.seats._replace(**{n: a.copy() for n, a in state.seats._asdict().items()})
    return DuelState(seats=seats, **copies)
