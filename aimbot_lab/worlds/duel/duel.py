"""The duel: a batch of matches of two agents behind the `BatchWorld` protocol.

State and tables are built from settings and layouts. Kernels check no bounds, and a snapshot may
come from a file: values that choose are checked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.argument_checks import MisuseError, action_fault, checked_row
from aimbot_lab.foundation.episodes import EpisodeBatch, cells_of
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.kernels.jit import Packed
from aimbot_lab.foundation.kernels.lanes import LANES
from aimbot_lab.foundation.kernels.rng import seed_streams
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.seeds import derive_seed
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
from aimbot_lab.worlds.arena.allocate import new_state as new_arena_state
from aimbot_lab.worlds.arena.allocate import new_tables as new_arena_tables
from aimbot_lab.worlds.arena.allocate import new_workspaces, with_room
from aimbot_lab.worlds.arena.arena import ACTION_NAMES, in_single_precision
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.core.motion import write_masks
from aimbot_lab.worlds.arena.core.state import ArenaTables, RayWorkspace
from aimbot_lab.worlds.arena.core.step import cast_all_rays, first_bad_action
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import parameter_values as arena_values
from aimbot_lab.worlds.duel.core import state as core
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    AGENTS,
    BRANCHES,
    HEALTH,
    HIT,
    IN_ARENA,
    IN_SEATS,
    KINDS,
    LEVELS,
    TARGET,
    DuelScenarioTables,
    DuelState,
    DuelTables,
    LayoutTables,
    MatchLog,
)
from aimbot_lab.worlds.duel.core.step import (
    advance_packed,
    begin_all,
    mask_held,
    move_all,
    observe_all,
)
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE, Hall, chosen_layouts
from aimbot_lab.worlds.duel.settings import DuelSettings, parameter_values, scenario_tables
from aimbot_lab.worlds.duel.spec import OWN_COLUMNS, SEATS, duel_spec
from aimbot_lab.worlds.kernel_world import (
    LARGEST,
    OF_SCENARIO,
    Arrays,
    KernelWorld,
    check_arrays,
    check_range,
    check_samplers,
    content_line,
    named_arrays,
    overwrite,
    setting_lines,
    tables_of,
)


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
        layouts: Sequence[Hall] | None = None,
        *,
        kinds: Collection[str] = (TARGET,),
    ) -> None:
        self.settings, self._kinds = settings, kinds
        self.layouts = chosen_layouts(settings) if layouts is None else tuple(layouts)
        self._advance = Packed(advance_packed)
        tables = new_tables(settings, self.layouts)
        super().__init__(
            settings,
            duel_spec(replace(settings, learner="both")),  # two play, even where one learns
            state=new_state(settings, tables),
            tables=tables,
            log=new_log(settings.num_envs),
            fits=fingerprint(settings, tables.layouts),
        )

    def _new_workspaces(self, threads: int) -> Sequence[RayWorkspace]:
        return new_workspaces(threads, self.state.seats.ray_cos.shape[1])

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
        """See `worlds.kernel_world.PartWorld`."""
        return self.state.seats.order, self.state.seats.scenario

    def _clear(self) -> None:
        overwrite(self.state, named_arrays(new_state(self.settings, self._tables)))

    def _seed_rows(self, seed: int) -> None:
        own, seats = self.state.streams, self.state.seats.streams
        home, away = seats[: self.num_envs], seats[self.num_envs :]
        seeds = seed % 2**64, derive_seed(seed, "home"), derive_seed(seed, "away")
        for streams, number in zip((own, home, away), seeds, strict=True):
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
        scenario = tables_of(DuelScenarioTables, snapshot, OF_SCENARIO)
        self._tables = self._tables._replace(scenario=scenario)

    def check_restorable(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Raise MisuseError unless `snapshot` is of such a duel."""
        check_snapshot(snapshot, self.arrays(), self._tables)

    def spread_episodes(
        self, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Begin matches that are spread over the hall and over the time of their episodes."""
        self.set_scenario(scenario)
        self.reset(seed, step_buffers(self).observations)
        play(1)
        limit = self.spec.max_steps or 1
        spread = np.random.default_rng(seed).integers(limit, size=self.num_envs)
        self.state.seats.decisions[:] = np.tile(spread, 2)

    def step_parts(self, buffers: StepBuffers) -> StepParts:
        """The kernels of a step, each on all matches."""
        state, tables, seats = self.state, self._tables, len(self.state.health)
        scratch = np.zeros((4, state.seats.ray_cos.shape[1]), np.float32)
        return {
            "rays": lambda _: cast_all_rays(state.seats, scratch, (0, seats)),
            "movement": lambda actions: move_all(state, tables.layouts, actions),
            "observation": lambda _: observe_all(state, tables, buffers.observations),
            "reset": lambda _: begin_all(state, tables, scratch, buffers),
        }


def checked_actions(actions: Any, matches: int, *, seats: int | None = None) -> Float32Array:
    """`actions` [seats, 4] as kernels read them; all seats of the matches, or the first `seats`.

    Raises ActionError, naming match and agent, for what no player could do.
    """
    shape = AGENTS * matches if seats is None else seats, ACTION_COLUMNS
    found = in_single_precision(actions, shape)
    bad = first_bad_action(found)
    if bad >= 0:
        match, agent = bad % matches, SEATS[bad // matches]
        fault = action_fault(found[bad], match, names=ACTION_NAMES, branches=BRANCHES)
        raise ActionError(f"{fault} (agent {agent})")
    return found


CELLS = cells_of({kind: number for number, kind in enumerate(KINDS)}, LEVELS)


def episode_batch(matches: npt.NDArray[np.int64], log: MatchLog, state: DuelState) -> EpisodeBatch:
    """An episode for each agent of `matches`, which just ended, home ones first.

    They are in their next match already.
    """
    seats = np.concatenate([matches, matches + len(state.layout)])
    rows = np.concatenate([matches, matches])
    agent = np.zeros(len(rows), np.int64)
    agent[len(matches) :] = 1
    outcome = log.outcome[seats]
    kinds = zip(log.kind[matches].tolist(), log.difficulty[matches].tolist(), strict=True)
    own = {name: np.asarray(getattr(log, name)[rows], np.float64) for name in OWN_COLUMNS}
    return EpisodeBatch(
        row=rows,
        agent=agent,
        order=log.order[seats],
        scenario=log.scenario[seats],
        cell=tuple([CELLS[kind] for kind in kinds]) * AGENTS,
        outcome=outcome,
        length=log.length[rows],
        terms=log.terms[seats],
        running_order=state.seats.order,
        running_scenario=state.seats.scenario,
        columns={**own, "score": 0.5 * outcome + 0.5},
    )


NO_BOX = -1e6  # m, half sides of what is never in view


def arena_settings(settings: DuelSettings) -> ArenaSettings:
    """Settings of the arena whose motion, rays and gun the seats use, a row for each seat."""
    return ArenaSettings(
        num_envs=core.AGENTS * settings.num_envs,
        floor_size=FLOOR_SIZE,
        spin_window=settings.spin_window,
        mouse_limit=settings.mouse_limit,
        mouse_factor=settings.mouse_factor,
        rays=settings.rays,
    )


def layout_tables(layouts: Sequence[Hall]) -> LayoutTables:
    """`layouts`, sorted by difficulty, with where each difficulty begins."""
    levels = np.array([layout.difficulty for layout in layouts])
    most = max(len(layout.all_boxes) for layout in layouts)
    boxes = np.zeros((len(layouts), max(most, 1), 4))
    for number, layout in enumerate(layouts):
        for slot, box in enumerate(layout.all_boxes):
            boxes[number, slot] = box
    count = np.bincount(levels, minlength=core.LEVELS + 1).astype(np.int64)
    return LayoutTables(
        level_first=np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64),
        level_count=count,
        boxes=boxes,
        box_count=np.array([len(layout.all_boxes) for layout in layouts], np.int64),
        extents=_extents(layouts, -(-boxes.shape[1] // LANES) * LANES),
        start=np.array([(*layout.start, 0.0) for layout in layouts]),
    )


def _extents(layouts: Sequence[Hall], lanes: int) -> core.Floats32:
    """Middles and half sides of all boxes [4 L, lanes] in m, in columns without a box NO_BOX."""
    extents = np.zeros((len(layouts), core.EXTENT, lanes), np.float32)
    extents[:, [core.HALF_X, core.HALF_Z]] = NO_BOX
    for number, layout in enumerate(layouts):
        for slot, (low_x, low_z, high_x, high_z) in enumerate(layout.all_boxes):
            middle = (low_x + high_x) / 2, (low_z + high_z) / 2
            extents[number, :, slot] = *middle, (high_x - low_x) / 2, (high_z - low_z) / 2
    return extents.reshape(-1, lanes)


def new_tables(settings: DuelSettings, layouts: Sequence[Hall]) -> DuelTables:
    """Tables whose scenario, until one is set, has the number 0."""
    usual = parameter_values(settings)
    chosen = settings.loadout or dict.fromkeys(settings.loadouts, 1.0)
    named = [settings.loadouts[name] for name in chosen]
    loadouts = [[values.get(name, np.nan) for name in core.OF_SEATS] for values in named]
    return DuelTables(
        arena=new_arena_tables(arena_settings(settings), ()),
        layouts=layout_tables(layouts),
        scenario=scenario_tables(Scenario({TARGET: 1.0}), settings, kinds=(TARGET,), number=0),
        loadout_weights=np.array(list(chosen.values()), np.float64),
        loadouts=np.array(loadouts, np.float64).reshape(-1, core.SEAT_COUNT),
        observed=np.array([core.OF_SEATS.index(n) for n in settings.observed_parameters], np.int64),
        usual=np.array([usual[name] for name in core.OF_SEATS]),
        mirrored_start=settings.start == "mirrored",
        mirrored_loadouts=settings.mirrored_loadouts,
        health_decides=settings.on_timeout == "health",
        shows_opponent=settings.observation.units,
        rows=RowNumbers(0, settings.num_envs),
    )


def new_state(settings: DuelSettings, tables: DuelTables) -> DuelState:
    """State of all matches before any began."""
    matches, seats = settings.num_envs, core.AGENTS * settings.num_envs
    terms = len(core.REWARD_TERMS)
    return DuelState(
        seats=_new_seats(settings, tables.arena, tables.layouts.boxes.shape[1]),
        health=np.zeros(seats, np.int64),
        held=np.zeros((seats, core.ACTION_COLUMNS), np.float32),
        hit_from=np.zeros((seats, 2)),
        mouse=np.zeros(seats),
        moved=np.zeros(seats, np.bool_),
        shot=np.zeros(seats, np.int64),
        traits=np.zeros((seats, core.SEAT_COUNT)),
        loadout=np.full(seats, -1, np.int64),
        earned=np.zeros((seats, terms)),
        terms=np.zeros((seats, terms)),
        layout=np.zeros(matches, np.int64),
        kind=np.zeros(matches, np.int64),
        difficulty=np.zeros(matches, np.int64),
        parameters=np.zeros((matches, len(core.PARAMETERS))),
        streams=np.zeros(matches, np.uint64),
        sampler_key=np.zeros(1, np.uint64),
        episode=np.zeros(matches, np.int64),
        clock=np.zeros(1, np.int64),
    )


def _new_seats(settings: DuelSettings, tables: ArenaTables, boxes: int) -> arena_core.ArenaState:
    """A row of the arena for each seat, whose only enemy is the other."""
    arena = arena_settings(settings)
    state = with_room(new_arena_state(arena, tables, 0, room=1), 1, obstacles=boxes)
    usual = arena_values(arena)
    state.parameters[:] = [usual[name] for name in arena_core.PARAMETERS]
    state.target[:] = arena_core.TARGET.free  # any agent that is seen is a target
    state.preset[:] = -1
    state.enemy_count[:] = 1
    state.enemy_is_target[:] = True
    return state


def new_log(matches: int) -> MatchLog:
    """Arrays for how each row's last match ended."""
    seats = core.AGENTS * matches
    return MatchLog(
        outcome=np.zeros(seats, np.int8),
        kind=np.zeros(matches, np.int64),
        difficulty=np.zeros(matches, np.int64),
        length=np.zeros(matches, np.int64),
        seconds=np.zeros(matches),
        order=np.zeros(seats, np.int64),
        scenario=np.zeros(seats, np.int64),
        terms=np.zeros((seats, len(core.REWARD_TERMS))),
    )


RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
NOT_COMPARED = ("num_envs", "threads", "layouts", "shipped_layouts")  # halls by what they hold
COUNTERS = ("decisions", "gun_ticks", "episode", "order", "scenario", "clock")


def fingerprint(settings: DuelSettings, layouts: LayoutTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a duel."""
    lines = setting_lines(settings, without=NOT_COMPARED)
    return np.array([*lines, content_line("layouts", layouts)])


def check_snapshot(snapshot: Arrays, own: Arrays, tables: DuelTables) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the duel of `own`."""
    check_arrays(snapshot, own, growing=(RANGES,))
    limits = {**_limits(snapshot, tables), **check_samplers(snapshot, own, OF_SCENARIO)}
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)
    _check_traits(snapshot, *own[OF_SCENARIO + "bounds"].T)


def _limits(snapshot: Arrays, tables: DuelTables) -> dict[str, tuple[int, int]]:
    """Lowest and highest value of the arrays that matches count or choose by."""
    limits = {
        name: (0, LARGEST)
        for name in snapshot
        if name.rpartition(".")[2] in COUNTERS and not name.startswith(OF_SCENARIO)
    }
    boxes = tables.layouts.boxes.shape[1]
    return {
        **limits,
        OF_SCENARIO + "number": (0, LARGEST),
        "layout": (0, len(tables.layouts.box_count) - 1),
        "difficulty": (0, LEVELS),
        "kind": (0, len(KINDS) - 1),
        "loadout": (-1, len(tables.loadouts) - 1),
        "shot": (0, HIT),
        "health": (0, 100),
        IN_SEATS + "obstacle_count": (0, boxes),
        IN_SEATS + "enemy_count": (1, 1),
        IN_SEATS + "target": (arena_core.TARGET.free, arena_core.TARGET.free),
        IN_SEATS + "ray_hit": (arena_core.NO_HIT, 0),
    }


def _check_traits(snapshot: Arrays, low: np.ndarray, high: np.ndarray) -> None:
    begun = snapshot["episode"] > 0
    both = np.tile(begun, 2)
    count = len(IN_ARENA)
    traits = low[-count:], high[-count:]
    check_range("traits", snapshot["traits"][both], low=traits[0], high=traits[1])
    passed = IN_ARENA >= 0
    seats = snapshot[IN_SEATS + "parameters"][both][:, IN_ARENA[passed]]
    check_range(IN_SEATS + "parameters", seats, low=traits[0][passed], high=traits[1][passed])
    healths = snapshot["traits"][both][:, HEALTH]
    if (snapshot["health"][both] > healths).any():
        raise MisuseError("snapshot: health exceeds what an agent begins with")
