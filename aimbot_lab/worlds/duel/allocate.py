"""State arrays and tables for the kernels, built from settings and layouts."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.kernels.lanes import LANES
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.allocate import new_state as new_arena_state
from aimbot_lab.worlds.arena.allocate import new_tables as new_arena_tables
from aimbot_lab.worlds.arena.capacity import with_room
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.core.state import ArenaTables
from aimbot_lab.worlds.arena.scenario import parameter_values as arena_values
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.duel.core import state as core
from aimbot_lab.worlds.duel.core.state import (
    DuelState,
    DuelTables,
    LayoutTables,
    MatchLog,
)
from aimbot_lab.worlds.duel.kinds import TARGET
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE, Layout
from aimbot_lab.worlds.duel.scenario import parameter_values, scenario_tables
from aimbot_lab.worlds.duel.settings import DuelSettings

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


def layout_tables(layouts: Sequence[Layout]) -> LayoutTables:
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


def _extents(layouts: Sequence[Layout], lanes: int) -> core.Floats32:
    """Middles and half sides of all boxes [4 L, lanes] in m, in columns without a box NO_BOX."""
    extents = np.zeros((len(layouts), core.EXTENT, lanes), np.float32)
    extents[:, [core.HALF_X, core.HALF_Z]] = NO_BOX
    for number, layout in enumerate(layouts):
        for slot, (low_x, low_z, high_x, high_z) in enumerate(layout.all_boxes):
            middle = (low_x + high_x) / 2, (low_z + high_z) / 2
            extents[number, :, slot] = *middle, (high_x - low_x) / 2, (high_z - low_z) / 2
    return extents.reshape(-1, lanes)


def new_tables(settings: DuelSettings, layouts: Sequence[Layout]) -> DuelTables:
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
    state.target[:] = arena_core.TARGET.free  # whoever is seen is a target
    state.preset[:] = -1
    state.enemy_count[:] = 1
    state.enemy_is_target[:] = True
    return state


def stream_seeds(seed: int) -> tuple[int, int, int]:
    """Seeds of the streams of matches, home seats and away seats, which depend on `seed`."""
    return seed % 2**64, derive_seed(seed, "home"), derive_seed(seed, "away")


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
