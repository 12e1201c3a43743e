"""State arrays and tables of the arena: made from settings and presets, widened, kept and checked.

Kernels check no bounds, and a snapshot may come from a file: values that choose are checked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.lanes import LANES
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.kernels.threads import SPIN_LIMIT
from aimbot_lab.foundation.settings import CONSTANT, RANGES, UNIFORM
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import (
    DIFFICULTY_COUNT,
    NO_HIT,
    OF_ENEMIES,
    PARAMETERS,
    REWARD_TERMS,
    SUMS,
    TARGET_COUNT,
    TARGETS,
    TERM_OF,
    ArenaState,
    ArenaTables,
    PresetTables,
    RayWorkspace,
    ScenarioTables,
)
from aimbot_lab.worlds.arena.presets import Preset
from aimbot_lab.worlds.arena.scenes.placing import OF_SCENES
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings
from aimbot_lab.worlds.arena.spec import enemy_columns, scenario_tables, target_columns
from aimbot_lab.worlds.kernel_world import (
    LARGEST,
    OF_SCENARIO,
    Arrays,
    check_arrays,
    check_range,
    check_samplers,
    content_line,
    setting_lines,
)
from aimbot_lab.worlds.parameters import sampler_arrays

Kind = Literal["plain", "full", "sensed"]
COUNTERS = (
    "target",
    "difficulty",
    "preset",
    "block_turns",
    "obstacle_count",
    "enemy_count",
    "decisions",
    "gun_ticks",
    "spin_sum",
    "episode",
    "order",
    "scenario",
)  # [B] whole numbers of the state that begin at 0


def in_order(presets: Sequence[Preset]) -> tuple[Preset, ...]:
    """All presets, sorted by target and difficulty."""
    return tuple(sorted(presets, key=lambda preset: (TARGETS[preset.target], preset.difficulty)))


def preset_tables(presets: Sequence[Preset]) -> PresetTables:
    """All presets, sorted by target and difficulty, with where each kind begins."""
    ordered = in_order(presets)
    most = max((len(preset.obstacles) for preset in ordered), default=0)
    kinds = (core.TARGET_COUNT, core.DIFFICULTY_COUNT + 1)
    tables = PresetTables(
        kind_first=np.zeros(kinds, np.int64),
        kind_count=np.zeros(kinds, np.int64),
        obstacles=np.zeros((len(ordered), max(most, 1), 4)),
        obstacle_count=np.array([len(preset.obstacles) for preset in ordered], np.int64),
        enemies=np.zeros((len(ordered), core.MAX_ENEMIES, 2)),
        enemy_count=np.array([len(preset.enemies) for preset in ordered], np.int64),
        fire_base=np.array([preset.fire_base for preset in ordered]).reshape(-1, 3),
    )
    for index, preset in enumerate(ordered):
        kind = TARGETS[preset.target], preset.difficulty
        if tables.kind_count[kind] == 0:
            tables.kind_first[kind] = index
        tables.kind_count[kind] += 1
        for slot, box in enumerate(preset.obstacles):
            tables.obstacles[index, slot] = box
        for slot, spot in enumerate(preset.enemies):
            tables.enemies[index, slot] = spot
    return tables


def new_tables(settings: ArenaSettings, presets: Sequence[Preset]) -> ArenaTables:
    """Tables whose scenario, until one is set, is Stay under number 0."""
    kinds = preset_tables(presets)
    return ArenaTables(
        presets=kinds,
        scenario=scenario_tables(Scenario({"stay": 1.0}), settings, kinds, number=0),
        middle_rays=settings.rays.middle_count,
        side_rays=settings.rays.side_count,
        one_hot=settings.rays.tags == "one_hot",
        target_columns=len(target_columns(settings)),
        enemy_columns=enemy_columns(settings),
        recalls=settings.recall_seconds > 0,
        perception=settings.observation.rays == "ml-agents",
        camera=_camera_tables(settings.observation.camera),
        rows=RowNumbers(0, settings.num_envs),
    )


def _camera_tables(camera: CameraSettings | None) -> core.CameraTables:
    if camera is None:
        return core.CameraTables(0, 0, 0, 1.0)
    half_width = float(np.tan(np.radians(0.5 * camera.view_angle)))
    return core.CameraTables(camera.width, camera.height, camera.channels, half_width)


def observation_kind(tables: ArenaTables) -> Kind:
    """`plain`: the agent's own numbers and plain rays; `sensed`: also a picture or ML-Agents' rays.

    `full`: also enemies, or something to recall.
    """
    if tables.perception or tables.camera.channels > 0:
        return "sensed"
    others = tables.target_columns + tables.enemy_columns
    return "full" if others > 0 or tables.recalls else "plain"


def new_state(
    settings: ArenaSettings, tables: ArenaTables, history: int, *, room: int | None = None
) -> ArenaState:
    """State of all rows before any episode began.

    `history` is the number of values of earlier observations that are handed out again, `room`
    that of enemies to a row, without which it is what the scenario needs.
    """
    room = enemy_room(tables.scenario) if room is None else room
    rows, lanes = settings.num_envs, -(-settings.rays.count // LANES) * LANES
    boxes = tables.presets.obstacles.shape[1]
    counters: dict[str, Any] = {name: np.zeros(rows, np.int64) for name in COUNTERS}
    return ArenaState(
        position=np.tile(np.array(settings.start_position, np.float64), (rows, 1)),
        yaw=np.full(rows, np.radians(settings.start_yaw)),
        ahead=np.zeros((rows, 2)),
        fire_base=np.zeros((rows, 3)),
        obstacles=np.zeros((rows, boxes, 4)),
        enemies=np.zeros((rows, room, 2)),
        enemy_hits_left=np.zeros((rows, room), np.int64),
        enemy_is_target=np.zeros((rows, room), np.bool_),
        spin_turns=np.zeros((rows, settings.spin_window), np.int64),
        terms=np.zeros((rows, core.SUMS)),
        parameters=np.zeros((rows, len(core.PARAMETERS))),
        history=np.zeros((rows, history), np.float32),
        block=np.zeros((rows, 2)),
        streams=np.zeros(rows, np.uint64),
        sampler_key=np.zeros(1, np.uint64),
        clock=np.zeros(1, np.int64),
        ray_cos=np.zeros((rows, lanes), np.float32),
        ray_sin=np.zeros((rows, lanes), np.float32),
        view_edge=np.zeros((rows, 2)),
        ray_distance=np.zeros((rows, lanes), np.float32),
        ray_hit=np.full((rows, lanes), core.NO_HIT, np.int32),
        **counters,
    )


def new_workspaces(count: int, lanes: int) -> tuple[RayWorkspace, ...]:
    """Places of `count` threads, for fans of `lanes` rays."""
    return tuple(
        RayWorkspace(number, SPIN_LIMIT, np.zeros((4, lanes), np.float32))
        for number in range(count)
    )


OF_ROOM = (*OF_ENEMIES, "obstacles")  # what grows
MAX_ENEMIES_OF_ROW = core.MAX_ENEMIES + core.MAX_PLACED
MAX_OBSTACLES_OF_ROW = 1024


def enemy_room(scenario: ScenarioTables) -> int:
    """Most enemies that an episode of this scenario has; a target block's at least."""
    free, beside = (_highest(scenario, k) for k in (core.AT.free_enemies, core.AT.bystanders))
    return max(free, core.MAX_ENEMIES + beside)


def _highest(scenario: ScenarioTables, k: int) -> int:
    """Highest whole number that parameter `k` takes."""
    kind, values = scenario.sampler[k], scenario.sampler_values[k]
    if kind == CONSTANT:
        drawn = values[0]
    elif kind == UNIFORM:
        drawn = values[1]
    elif kind == RANGES:
        drawn = scenario.sampler_ranges[k, : scenario.sampler_range_count[k], 1].max()
    else:  # no highest one of its own
        drawn = scenario.bounds[k, 1]
    return int(np.clip(np.floor(drawn), *scenario.bounds[k]))


def with_room(state: ArenaState, room: int, *, obstacles: int = 0) -> ArenaState:
    """`state` with arrays for at least `room` enemies and `obstacles` obstacles a row.

    All others are the same arrays; the same state where nothing has to grow.
    """
    wider = {}
    for name in OF_ROOM:
        array, wanted = getattr(state, name), obstacles if name == "obstacles" else room
        if wanted > array.shape[1]:
            wider[name] = np.zeros((array.shape[0], wanted, *array.shape[2:]), array.dtype)
            wider[name][:, : array.shape[1]] = array
    return state._replace(**wider) if wider else state


def room_fault(state: ArenaState, row: int, *, enemies: int, obstacles: int = 0) -> str | None:
    """Why `row` can't hold these in addition; None: it can."""
    if state.enemy_count[row] + enemies > MAX_ENEMIES_OF_ROW:
        return f"a row holds {MAX_ENEMIES_OF_ROW} enemies at most, those that are down among them"
    if state.obstacle_count[row] + obstacles > MAX_OBSTACLES_OF_ROW:
        return f"a row holds {MAX_OBSTACLES_OF_ROW} obstacles at most"
    return None


def write_state(state: ArenaState, values: Mapping[str, np.ndarray]) -> None:
    """Overwrite `state` with arrays by name, which may have room for fewer things."""
    for name, array in state._asdict().items():
        if name in OF_ROOM:
            array[...] = 0
            array[:, : values[name].shape[1]] = values[name]
        else:
            array[...] = values[name]


SAMPLER_RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and presets are compared
# by what they hold.
NOT_COMPARED = ("num_envs", "threads", "shipped_presets", "presets")
OLDEST = 35  # parameters of the oldest snapshots that are read; of those that came later 0 is none
ADDED = frozenset(
    {
        "observation.camera=None",
        "observation.rays='plain'",
        "observation.units=False",
        *(f"{name}={none}" for name in PARAMETERS[OLDEST:] for none in (0.0, 0, False)),
    }
)
"""Defaults of settings that snapshots of before do not name."""
COUNTED = ("decisions", "gun_ticks", "episode", "order", "scenario", "clock")
OF_PARAMETERS = (*sampler_arrays(()), "bounds", "whole")  # a scenario's arrays [P, ...]


def fingerprint(settings: ArenaSettings, presets: PresetTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit an arena."""
    told = setting_lines(settings, without=NOT_COMPARED)
    lines = [line for line in told if line not in ADDED]
    return np.array([*lines, content_line("presets", presets)])


def with_new_parameters(snapshot: Arrays, own: Arrays) -> Arrays:
    """`snapshot` with the parameters that arenas of earlier versions did not have, each at 0.

    The same where it has them, or is nothing that such an arena wrote.
    """
    named = [OF_SCENARIO + name for name in OF_PARAMETERS]
    if any(_lacking(snapshot.get(name), 0, len(PARAMETERS), OLDEST) is None for name in named):
        return snapshot
    longer = {name: _with_zeros(snapshot[name], 0, len(PARAMETERS)) for name in named}
    for name in (OF_SCENARIO + "bounds", OF_SCENARIO + "whole"):
        longer[name][len(snapshot[name]) :] = own[name][len(snapshot[name]) :]
    return with_new_columns({**snapshot, **longer})


def with_new_columns(arrays: Arrays) -> Arrays:
    """`arrays` of a state of an earlier version, in which what it lacks is 0.

    That is parameters, the sums of the terms among them, and counts.
    """
    numbers: Any = arrays.get("parameters")
    sums: Any = arrays.get("terms")
    lacking = _lacking(numbers, 1, len(PARAMETERS), OLDEST)
    terms = 0 if lacking is None else int(TERM_OF[-lacking - 1]) + 1
    if lacking is None or _lacking(sums, 1, terms + len(core.COUNT), terms) is None:
        return arrays
    before = _with_zeros(sums[:, :terms], 1, len(REWARD_TERMS))
    longer = np.concatenate([before, sums[:, terms:]], axis=1)
    return {
        **arrays,
        "parameters": _with_zeros(numbers, 1, len(PARAMETERS)),
        "terms": _with_zeros(longer, 1, SUMS),
    }


def _lacking(array: Any, axis: int, count: int, least: int) -> int | None:
    """How many of `count` entries `array` lacks along `axis`; None where it has not `least`."""
    if not isinstance(array, np.ndarray) or array.ndim <= axis:
        return None
    return count - array.shape[axis] if least <= array.shape[axis] <= count else None


def _with_zeros(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    more = count - array.shape[axis]
    return np.pad(array, [(0, more if number == axis else 0) for number in range(array.ndim)])


def check_snapshot(snapshot: Arrays, own: Arrays) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the arena of `own`."""
    named = {name: array for name, array in snapshot.items() if name not in OF_SCENES}
    check_arrays(named, own, growing=(SAMPLER_RANGES, *OF_ROOM))
    for name in OF_ENEMIES:
        given, first = snapshot[name], snapshot[OF_ENEMIES[0]]
        if given.shape[1] != first.shape[1] or given.shape[1] > MAX_ENEMIES_OF_ROW:
            raise MisuseError(f"snapshot: {name} has room for {given.shape[1]} enemies")
    if snapshot["obstacles"].shape[1] > MAX_OBSTACLES_OF_ROW:
        raise MisuseError(f"snapshot: obstacles has room for {snapshot['obstacles'].shape[1]}")


def check_values(snapshot: Arrays, own: Arrays, tables: ArenaTables) -> None:
    """Raise MisuseError where a value of `snapshot` would lead a kernel out of its arrays."""
    enemies, boxes = (snapshot[name].shape[1] for name in ("enemies", "obstacles"))
    limits = {
        **dict.fromkeys((*COUNTED, OF_SCENARIO + "number"), (0, LARGEST)),
        "target": (0, TARGET_COUNT - 1),
        "difficulty": (0, DIFFICULTY_COUNT),
        "preset": (-1, max(len(tables.presets.obstacle_count) - 1, 0)),
        "block_turns": (0, 3),
        "obstacle_count": (0, boxes),
        "enemy_count": (0, enemies),
        "ray_hit": (NO_HIT, enemies - 1),
        **check_samplers(snapshot, own, OF_SCENARIO),
    }
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)
