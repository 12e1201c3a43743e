"""The arena: a batch of FPS rows behind the `BatchWorld` protocol, and one row of it by itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    FLOAT32,
    MisuseError,
    action_fault,
    check_real,
    checked_row,
)
from aimbot_lab.foundation.display import RowArrays
from aimbot_lab.foundation.episodes import (
    EpisodeBatch,
    cells_of,
    ended_episodes,
    new_log,
    own_columns,
)
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.kernels.jit import Packed, RepeatedCall
from aimbot_lab.foundation.settings import CONSTANT
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
from aimbot_lab.worlds.arena.allocate import (
    MAX_ENEMIES_OF_ROW,
    MAX_OBSTACLES_OF_ROW,
    check_snapshot,
    check_values,
    enemy_room,
    fingerprint,
    in_order,
    new_state,
    new_tables,
    new_workspaces,
    observation_kind,
    with_new_columns,
    with_new_parameters,
    with_room,
    write_state,
)
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.motion import MASKS, write_masks_packed
from aimbot_lab.worlds.arena.core.reward import write_held
from aimbot_lab.worlds.arena.core.state import (
    AT,
    BRANCHES,
    COUNT,
    DIFFICULTY_COUNT,
    OF_ENEMIES,
    REWARD_TERMS,
    SUMS,
    TARGETS,
    ArenaState,
    ArenaTables,
    Bools,
    EpisodeLog,
    RayWorkspace,
    ScenarioTables,
)
from aimbot_lab.worlds.arena.core.step import (
    advance_packed,
    advance_plain_packed,
    advance_sensed_packed,
    begin_all,
    cast_all_rays,
    first_bad_action,
    move_all,
    observe_all,
    reward_all,
)
from aimbot_lab.worlds.arena.presets import Preset, chosen_presets
from aimbot_lab.worlds.arena.scenes.placing import RowRecord, records_as_arrays, records_from_arrays
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import (
    arena_spec,
    observation_width,
    picture_columns,
    pixel_count,
    scenario_tables,
    with_difficulty,
)
from aimbot_lab.worlds.kernel_world import OF_SCENARIO, KernelWorld, tables_of

ACTION_NAMES = ("vertical move", "horizontal move", "attack", "mouse")
OWN_COLUMNS, OWN_SUMS = own_columns(EpisodeLog), (len(REWARD_TERMS), COUNT._fields)
CELLS = cells_of(TARGETS, DIFFICULTY_COUNT)
LARGEST = float(np.finfo(np.float32).max)


def checked_actions(actions: Any, shape: tuple[int, int]) -> Float32Array:
    """`actions` of `shape` [B, 4] as kernels read them.

    Raises ActionError, naming the row, for what no player could do.
    """
    found = in_single_precision(actions, shape)
    bad = first_bad_action(found)
    if bad >= 0:
        raise ActionError(action_fault(found[bad], bad, names=ACTION_NAMES, branches=BRANCHES))
    return found


def in_single_precision(actions: Any, shape: tuple[int, int]) -> Float32Array:
    """`actions` as float32, contiguous. Raises ActionError for another shape or no real numbers."""
    usual = type(actions) is np.ndarray and actions.dtype is FLOAT32
    if not usual or actions.shape != shape:
        check_real(actions, shape)
        if actions.dtype == np.float64:
            # Any finite mouse is a mouse, also one that single precision would make infinite.
            clipped = np.clip(actions, -LARGEST, LARGEST)
            actions = np.where(np.isfinite(actions), clipped, actions)
    return np.ascontiguousarray(actions, np.float32)


ALLOWED = np.array([1, 0, 0, 1, 0, 0, 1, 0], np.bool_)  # of an agent that is held: nothing


def may_recall(scenario: ScenarioTables) -> bool:
    """Whether an episode of `scenario` may have `recall_seconds` above 0."""
    kind, value = scenario.sampler[AT.recall_seconds], scenario.sampler_values[AT.recall_seconds, 0]
    return bool(kind != CONSTANT or value > 0)


def has_recall(state: ArenaState) -> bool:
    """Whether an episode that runs has."""
    return bool((state.parameters[:, AT.recall_seconds] > 0).any())


def held_rows(state: ArenaState) -> Bools:
    """[B] whether the agent of each row stands still in its next decision."""
    held = np.empty(len(state.yaw), np.bool_)
    write_held(state, held)
    return held


class Arena(KernelWorld):
    """`settings.num_envs` rows of the arena, stepped together.

    `state` holds the named arrays of `core.state.ArenaState`; reading them is free, a write takes
    effect at the next step. Until a scenario is set, every episode is a Stay. Actions are [B, 4]:
    vertical, horizontal, attack, mouse. `scenes.row_editor.RowEditor` edits rows between steps.
    """

    NOT_STARTED = "the arena has no episodes yet: reset first"
    state: ArenaState
    ended_state: ArenaState | None
    _tables: ArenaTables

    def __init__(self, settings: ArenaSettings, presets: Sequence[Preset] | None = None) -> None:
        self.settings = settings
        self.presets = in_order(chosen_presets(settings, presets))  # as `state.preset` counts
        self.records: dict[int, RowRecord] = {}  # of rows that were edited
        spec, tables = arena_spec(settings), new_tables(settings, self.presets)
        width = observation_width(settings) + pixel_count(settings)
        self._history = width * (settings.stacked_vectors - 1)
        self._advances = {
            "plain": Packed(advance_plain_packed),
            "full": Packed(advance_packed),
            "sensed": Packed(advance_sensed_packed),
        }
        self._write_masks = RepeatedCall(Packed(write_masks_packed))
        self._masks = np.zeros((settings.num_envs, MASKS), np.bool_)
        super().__init__(
            settings,
            spec,
            state=new_state(settings, tables, self._history),
            tables=tables,
            log=new_log(EpisodeLog, settings.num_envs, terms=SUMS),
            fits=fingerprint(settings, tables.presets),
            pictures=picture_columns(settings),
        )

    def _new_workspaces(self, threads: int) -> Sequence[RayWorkspace]:
        return new_workspaces(threads, self.state.ray_cos.shape[1])

    def _kernel(self) -> Packed:
        return self._advances[observation_kind(self._tables)]

    def _take(self, actions: Float32Array) -> None:
        self._actions[...] = checked_actions(actions, self._actions.shape)
        if self._tables.recalls:
            self._actions[held_rows(self.state)] = 0.0

    def _episodes(self, rows: Int64Array) -> EpisodeBatch:
        log: EpisodeLog = self._log
        return ended_episodes(
            rows,
            log,
            self.state,
            cells=CELLS,
            outcome=log.outcome[rows],
            length=log.length[rows],
            columns=OWN_COLUMNS,
            sums=OWN_SUMS,
        )

    @property
    def tables(self) -> ArenaTables:
        """What all rows share: presets and scenario."""
        return self._tables

    def make_room(self, *, enemies: int, obstacles: int = 0) -> None:
        """Make room for that many enemies and obstacles in every row; may replace `state`."""
        state = with_room(self.state, enemies, obstacles=obstacles)
        if state is not self.state:
            self.state = state
            self._tables = self._tables._replace()  # other ones, so that a step is bound anew

    def _scenario_tables(self, scenario: Scenario, number: int) -> ArenaTables:
        tables = scenario_tables(scenario, self.settings, self._tables.presets, number=number)
        self.state = with_room(self.state, enemy_room(tables))
        recalls = self._tables.recalls or may_recall(tables)  # running episodes may, too
        return self._tables._replace(scenario=tables, recalls=recalls)

    def set_difficulty_weights(self, target: str, weights: Sequence[float]) -> int:
        """Number of the scenario that draws `target`'s blocks in these proportions from now on.

        All else stays as the scenario in force has it. Raises ConfigurationError for a target
        without difficulties and weights that leave nothing to draw.
        """
        tables = with_difficulty(self._tables.scenario, self._tables.presets, target, weights)
        self._tables = self._tables._replace(scenario=tables)
        return int(tables.number[0])

    def _clear(self) -> None:
        room = self.state.enemies.shape[1]
        fresh = new_state(self.settings, self._tables, self._history, room=room)
        write_state(self.state, fresh._asdict())
        self.records = {}

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B, 8], True where a branch index makes sense in the present state.

        Masked are attack while the gun is not ready and moves that, along the present view,
        would not displace the agent; all of them while it is held, to recall what it sees.
        """
        self._check_masks(masks)
        self._write_masks(self.state, self._masks)
        masks[...] = self._masks
        if self._tables.recalls:
            masks[held_rows(self.state)] = ALLOWED

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` from above, [480, 480, 3]; with `ending` as it was when a row last ended.

        Raises MisuseError where no ending was kept.
        """
        from aimbot_lab.worlds.arena.draw import draw_row

        state = self._shown_state(ending=ending)
        return draw_row(state, checked_row(row, self.num_envs), self.settings)

    def snapshot(self) -> dict[str, np.ndarray]:
        """See `KernelWorld`; and what was placed by hand."""
        return {**super().snapshot(), **records_as_arrays(self.records, self.state)}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of an arena with the same settings and presets, bit for bit."""
        snapshot = with_new_parameters(snapshot, self.arrays())
        check_snapshot(snapshot, self.arrays())
        check_values(snapshot, self.arrays(), self._tables)
        records = records_from_arrays(snapshot, self.presets)
        tables = tables_of(ScenarioTables, snapshot, OF_SCENARIO)
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

    def spread_episodes(
        self, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Begin rows that are spread over the floor and over the time of their episodes.

        First episodes are of Free, since those begin at random places; then come staggered ones.
        Without that spread all episodes would end in the same step, and a short measurement would
        hold either no reset or all of them.
        """
        decisions = round(self.settings.time_limit / self.settings.decision_seconds)
        self.set_scenario(Scenario({"free": 1.0}))
        self.reset(seed, step_buffers(self).observations)
        self.set_scenario(scenario)
        self.state.decisions[:] = decisions
        play(1)
        spread = np.random.default_rng(seed).integers(decisions, size=self.num_envs)
        self.state.decisions[:] = spread

    def step_parts(self, buffers: StepBuffers) -> StepParts:
        """The kernels of a step, each on all rows."""
        state, tables, span = self.state, self._tables, (0, self.num_envs)
        scratch = np.zeros((4, state.ray_cos.shape[1]), np.float32)
        every_row = buffers._replace(finished=np.ones(self.num_envs, np.bool_))
        return {
            "rays": lambda _: cast_all_rays(state, scratch, span),
            "movement": lambda actions: move_all(state, actions, span),
            "reward": lambda actions: reward_all(state, tables, actions, buffers, span),
            "observation": lambda _: observe_all(state, tables, buffers.observations, span),
            "reset": lambda _: begin_all(state, tables, scratch, every_row, span),
        }


OF_ALL_ROWS = ("sampler_key", "clock")  # read only where an episode begins
LARGEST_OF_ROW = 1e30  # no number of a row is larger; it stands for "never"


def solo_settings(settings: ArenaSettings) -> ArenaSettings:
    """`settings` of an arena of one row; target blocks come with the row."""
    return replace(settings, num_envs=1, threads=1, presets=())


def row_of(state: ArenaState, row: int) -> RowArrays:
    """A copy of what the episode running in `row` depends on."""
    named = state._asdict().items()
    return {name: array[row : row + 1].copy() for name, array in named if name not in OF_ALL_ROWS}


def solo_arena(settings: ArenaSettings, row: RowArrays) -> Arena:
    """An arena of one row that goes on from `row`, as `row_of` gives it, bit for bit.

    That holds until the episode ends; a Stay follows. Target blocks are not looked up: what the
    row's block holds is in the row. Raises MisuseError where `row` is none of such an arena.
    """
    arena = Arena(solo_settings(settings), presets=())
    row = with_new_columns(row)
    _check_forms(row, arena.state)
    _check_numbers(row)
    shared = {name: getattr(arena.state, name) for name in OF_ALL_ROWS}
    arena.adopt(ArenaState(**{name: array.copy() for name, array in row.items()}, **shared))
    return arena


def _check_forms(row: RowArrays, own: ArenaState) -> None:
    """Kernels do not check bounds: every array must be as large as they take it to be."""
    wanted = {name: array for name, array in own._asdict().items() if name not in OF_ALL_ROWS}
    for name in sorted(wanted.keys() ^ row.keys()):
        what = "is missing" if name in wanted else "is not an array of an arena"
        raise MisuseError(f"row: {name} {what}")
    for name, array in wanted.items():
        given, shape = row[name], array.shape
        if name == "obstacles":
            shape = (1, min(max(given.shape[1:2], default=0), MAX_OBSTACLES_OF_ROW), 4)
        if name in OF_ENEMIES:
            room = min(max(row["enemies"].shape[1:2], default=0), MAX_ENEMIES_OF_ROW)
            shape = (1, room, *shape[2:])
        if given.shape != shape or given.dtype != array.dtype:
            raise MisuseError(
                f"row: {name} is {given.dtype} {given.shape}, not {array.dtype} {shape}"
            )


def _check_numbers(row: RowArrays) -> None:
    for name, array in row.items():
        if array.dtype.kind == "f" and not (np.abs(array) <= LARGEST_OF_ROW).all():
            raise MisuseError(f"row: {name} holds a value that no arena has")
    for name, low, most in (
        ("obstacle_count", 0, row["obstacles"].shape[1]),
        ("enemy_count", 0, row["enemies"].shape[1]),
        ("target", 0, core.TARGET_COUNT - 1),
        ("difficulty", 0, core.DIFFICULTY_COUNT),
        ("decisions", 0, 10**9),
        ("gun_ticks", 0, 10**9),
        ("episode", 1, 10**15),
    ):
        if not low <= int(row[name][0]) <= most:
            raise MisuseError(f"row: {name} is {int(row[name][0])}, not {low} to {most}")
