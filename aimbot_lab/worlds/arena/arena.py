"""The arena: a batch of FPS rows behind the `BatchWorld` protocol."""

from collections.abc import Mapping, Sequence

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
from aimbot_lab.foundation.kernels.packed import PackedCall
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
)
from aimbot_lab.worlds.arena.action_checks import ACTION_NAMES, checked_actions
from aimbot_lab.worlds.arena.allocate import (
    in_order,
    new_advances,
    new_mask_writer,
    new_state,
    new_tables,
    new_workspaces,
    observation_kind,
)
from aimbot_lab.worlds.arena.core.masks import MASKS
from aimbot_lab.worlds.arena.core.state import (
    DIFFICULTY_COUNT,
    REWARD_TERMS,
    ArenaState,
    ArenaTables,
    EpisodeLog,
    ScenarioTables,
)
from aimbot_lab.worlds.arena.enemy_capacity import enemy_room, with_room, write_state
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.presets.files import chosen_presets
from aimbot_lab.worlds.arena.recall import ALLOWED, has_recall, held_rows, may_recall
from aimbot_lab.worlds.arena.scenario import TARGETS, scenario_tables, with_difficulty
from aimbot_lab.worlds.arena.scenes.records import (
    RowRecord,
    records_as_arrays,
    records_from_arrays,
)
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.snapshot_values import check_values
from aimbot_lab.worlds.arena.snapshots import (
    OF_SCENARIO,
    arrays_of,
    check_snapshot,
    fingerprint,
    with_new_parameters,
)
from aimbot_lab.worlds.arena.spec import arena_spec
from aimbot_lab.worlds.episode_log import cells_of, ended_episodes, new_log
from aimbot_lab.worlds.row_parts import RowParts, row_numbers
from aimbot_lab.worlds.snapshot_checks import Arrays

MIN_ROWS = 64  # that are worth a thread of their own
CELLS = cells_of(TARGETS, DIFFICULTY_COUNT)


class Arena(RowParts):
    """`settings.num_envs` rows of the arena, stepped together.

    `state` holds the named arrays of `core.state.ArenaState`; reading them is free, a
    write takes effect at the next step. `reset` must come first. Until a scenario is set, every
    episode is a Stay. What it is called with is checked: MisuseError says in one line what is
    wrong, and the arena is as it was. `scenes.row_editor.RowEditor` edits rows between steps.
    """

    def __init__(self, settings: ArenaSettings, presets: Sequence[Preset] | None = None) -> None:
        self.settings = settings
        self.spec = arena_spec(settings)
        self.num_envs = settings.num_envs
        self.keep_endings = False
        self.ended_state: ArenaState | None = None
        self.presets = in_order(chosen_presets(settings, presets))  # as `state.preset` counts
        self.records: dict[int, RowRecord] = {}  # of rows that were edited
        self._tables = new_tables(settings, self.presets)
        self._fits = fingerprint(settings, self._tables.presets)
        width = len(self.spec.observation_names)
        self._shape = self.num_envs, width
        self._history = width // settings.stacked_vectors * (settings.stacked_vectors - 1)
        self.state = new_state(settings, self._tables, self._history)
        self._log = new_log(EpisodeLog, self.num_envs, terms=len(REWARD_TERMS))
        self._actions = np.zeros((self.num_envs, len(ACTION_NAMES)), np.float32)
        threads = max(1, min(settings.threads, self.num_envs // MIN_ROWS))
        self._workspaces = new_workspaces(threads, self.state.ray_cos.shape[1])
        self._workers = ThreadPool(threads)
        self._queue = new_queue(self._workers.sync_flags, threads=threads)
        self._task: StepTask | None = None
        self._advances = new_advances()
        self._write_masks = new_mask_writer()
        self._masks = np.zeros((self.num_envs, MASKS), np.bool_)
        self._nothing_ended = self._ended(np.zeros(0, np.int64))

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return int(self._tables.scenario.number[0])

    @property
    def tables(self) -> ArenaTables:
        """What all rows share: presets and scenario."""
        return self._tables

    def make_room(self, *, enemies: int, obstacles: int = 0) -> None:
        """Have room for so many enemies and obstacles in every row; `state` may be another then."""
        state = with_room(self.state, enemies, obstacles=obstacles)
        if state is not self.state:
            self.state = state
            self._tables = self._tables._replace()  # other ones, so that a step is bound anew

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError where it names what the arena does not have.
        """
        if not isinstance(scenario, Scenario):
            raise MisuseError(f"scenario: must be a Scenario (got {type(scenario).__name__})")
        number = self.scenario_number + 1
        tables = scenario_tables(scenario, self.settings, self._tables.presets, number=number)
        self.state = with_room(self.state, enemy_room(tables))
        recalls = self._tables.recalls or may_recall(tables)  # running episodes may, too
        self._tables = self._tables._replace(scenario=tables, recalls=recalls)
        return number

    def set_difficulty_weights(self, target: str, weights: Sequence[float]) -> int:
        """Number of the scenario that draws `target`'s blocks in these proportions from now on.

        All else stays as the scenario in force has it. Raises ConfigurationError for a target
        without difficulties and weights that leave nothing to draw.
        """
        tables = with_difficulty(self._tables.scenario, self._tables.presets, target, weights)
        self._tables = self._tables._replace(scenario=tables)
        return int(tables.number[0])

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
        room = self.state.enemies.shape[1]
        fresh = new_state(self.settings, self._tables, self._history, room=room)
        write_state(self.state, fresh._asdict())
        self.records = {}
        seed_streams(self.state.streams, np.uint64(seed % 2**64), self._tables.rows.first)
        self.state.sampler_key[0] = derive_seed(seed, "samplers")
        buffers = new_step_buffers(*self._shape)
        buffers.finished[:] = True
        self._do(self._task_for(buffers), BEGIN)
        observations[:] = buffers.observations

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step; writes `buffers`.

        `actions` [B, 4]: vertical, horizontal, attack, mouse. Raises ActionError, with the
        arena as it was, for an action that does not exist.

        With `keep_endings`, `ended_state` is a copy of the state before finished rows were reset.
        Where something else raises in here (a signal's handler), each thread's rows have made
        their decision or not; episodes that ended are restarted and not reported.
        """
        self.check_started()
        check_buffers(buffers, self._shape)
        self._actions[...] = checked_actions(actions, self._actions.shape)
        if self._tables.recalls:
            self._actions[held_rows(self.state)] = 0.0
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
        return self._ended(buffers.finished.nonzero()[0])

    def _ended(self, rows: Int64Array) -> EpisodeBatch:
        log = self._log
        return ended_episodes(
            rows,
            log,
            self.state,
            cells=CELLS,
            outcome=log.outcome[rows],
            length=log.length[rows],
            columns=self.spec.episode_columns,
        )

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
        tables = self._tables
        advance = self._advances[observation_kind(tables)]
        shared = self.state, tables, self._actions, pair, self._log
        return tuple([advance.call_with(*shared, one, self._queue) for one in self._workspaces])

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, 8], True where a branch index makes sense in the present state.

        Masked are attack while the gun is not ready and moves that, along the present view,
        would not displace the agent; all of them while it is held, to recall what it sees.
        """
        self.check_started()
        check_writable(masks, "masks", shape=(self.num_envs, MASKS), dtype=BOOL)
        self._write_masks(self.state, self._masks)
        masks[...] = self._masks
        if self._tables.recalls:
            masks[held_rows(self.state)] = ALLOWED

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` from above, [480, 480, 3]; with `ending` as it was when a row last ended.

        Raises MisuseError where no ending was kept.
        """
        from aimbot_lab.worlds.arena.draw import draw_row

        state = self.ended_state if ending else self.state
        if state is None:
            raise MisuseError("no ending was kept: set keep_endings before the step")
        return draw_row(state, checked_row(row, self.num_envs), self.settings)

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, by name.

        State and scenario, what was placed by hand, and under "fits" the settings that an arena
        must share to restore it.
        """
        copies = {name: array.copy() for name, array in self._arrays().items()}
        return {**copies, **records_as_arrays(self.records, self.state)}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of an arena with the same settings and presets, bit for bit."""
        snapshot = with_new_parameters(snapshot, self._arrays())
        check_snapshot(snapshot, self._arrays())
        check_values(snapshot, self._tables, scenario=OF_SCENARIO)
        records = records_from_arrays(snapshot, self.presets)
        scenario = {name: snapshot[OF_SCENARIO + name].copy() for name in ScenarioTables._fields}
        tables = ScenarioTables(**scenario)
        room = max(enemy_room(tables), snapshot["enemies"].shape[1])
        self.state = with_room(self.state, room, obstacles=snapshot["obstacles"].shape[1])
        write_state(self.state, snapshot)
        self.records = records
        recalls = may_recall(tables) or has_recall(self.state)
        self._tables = self._tables._replace(scenario=tables, recalls=recalls)

    def adopt(self, state: ArenaState) -> None:
        """Go on from `state`, which must be one of such an arena; it is not copied."""
        self.state = state
        recalls = self._tables.recalls or has_recall(state)
        self._tables = self._tables._replace(recalls=recalls)

    def _arrays(self) -> Arrays:
        return arrays_of(self.state, self._tables.scenario, self._fits)

    def check_started(self) -> None:
        """Raise MisuseError before the first reset."""
        if self.state.episode[0] == 0:
            raise MisuseError("the arena has no episodes yet: reset first")


def _copied(state: ArenaState) -> ArenaState:
    copies = {name: array.copy() for name, array in state._asdict().items()}
    return ArenaState(**copies)
