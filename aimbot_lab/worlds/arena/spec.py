"""The arena's spec, and the tables of a scenario."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil, inf, sqrt

import numpy as np

from aimbot_lab.foundation.episodes import own_columns
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import ParameterValue, extremes
from aimbot_lab.foundation.world import (
    ABILITIES,
    Int64Array,
    ObservationBlock,
    Scenario,
    UnitBlock,
    WorldSpec,
)
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import TARGETS, PresetTables, ScenarioTables
from aimbot_lab.worlds.arena.settings import CROWD, ArenaSettings, RaySettings, crowd_fault
from aimbot_lab.worlds.parameters import (
    bounds_of,
    level_weights,
    sampler_fields,
    scenario_values,
    setting_of,
    target_number,
    target_weights,
    value_fault,
)

DIFFICULTIES = {
    name: core.DIFFICULTY_COUNT if code in core.OF_BLOCKS else 0 for name, code in TARGETS.items()
}
NAMES = {code: name for name, code in TARGETS.items()}
DECLARED = ("time_limit", "floor_size", "rays.range")  # they bound the observation
GAPS = ("block_gap_to_walls", "block_gap_to_agent", "agent_radius")  # they narrow the floor


def parameter_values(settings: ArenaSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {name: setting_of(settings, name) for name in core.PARAMETERS}


@cache
def parameter_bounds() -> dict[str, Bounds]:
    """The values that each parameter takes, as its setting declares them."""
    return {name: bounds_of(ArenaSettings, name) for name in core.PARAMETERS}


def parameter_fault(name: str, value: ParameterValue, settings: ArenaSettings | None) -> str | None:
    """What is wrong with giving parameter `name` that value, None where nothing is.

    Without settings only what holds in every arena is checked.
    """
    bounds_it = settings is not None and name in DECLARED
    declared = setting_of(settings, name) if bounds_it else inf
    return value_fault(value, parameter_bounds()[name], setting=name, declared=declared)


def crowded_floor(given: Mapping[str, ParameterValue], settings: ArenaSettings) -> str | None:
    """Why a block or the enemies might not fit with these parameters, None where they do."""
    values = {**parameter_values(settings), **given}
    limits = parameter_bounds()
    highest = {name: min(extremes(values[name])[1], limits[name].high) for name in (*GAPS, *CROWD)}
    needed = 2.0 * (core.BLOCK_SIZE + sum(highest[name] for name in GAPS))
    floor_size = max(extremes(values["floor_size"])[0], limits["floor_size"].low)
    if floor_size >= needed:
        return crowd_fault(highest, floor_size)
    for name in GAPS:
        if extremes(values[name])[1] == inf:
            return f"{name} must be drawn within bounds, so that a block fits beside the agent"
    return (
        f"floor_size must be at least {needed:g} with these gaps, so that a block "
        f"fits beside the agent (got {floor_size:g})"
    )


def scenario_tables(
    scenario: Scenario, settings: ArenaSettings, presets: PresetTables, *, number: int
) -> ScenarioTables:
    """What the next episodes are drawn from, as scenario `number`.

    Raises ConfigurationError for an unknown target or parameter, a value that a parameter does
    not take, and weights that leave nothing to draw.
    """
    usual = parameter_values(settings)
    values = scenario_values(
        scenario.parameters, usual, fault=lambda name, one: parameter_fault(name, one, settings)
    )
    fault = crowded_floor(values, settings)
    if fault is not None:
        raise ConfigurationError(f"scenario: {fault}")
    targets, difficulty = _weights(scenario, presets)
    bounds = {
        name: one if name not in DECLARED else Bounds(one.low, usual[name], one.whole)
        for name, one in parameter_bounds().items()
    }
    return ScenarioTables(
        number=np.array([number]),
        target_weights=targets,
        difficulty_weights=difficulty,
        **sampler_fields(values, bounds, core.PARAMETERS),
    )


def with_difficulty(
    tables: ScenarioTables, presets: PresetTables, target: str, weights: Sequence[float]
) -> ScenarioTables:
    """`tables` one number further, with these weights for the difficulties of `target`.

    Raises ConfigurationError for a target without difficulties and weights that leave nothing
    to draw.
    """
    if not DIFFICULTIES.get(target):
        known = ", ".join(name for name, levels in DIFFICULTIES.items() if levels)
        raise ConfigurationError(f"scenario: {target!r} has no difficulties; {known} have")
    difficulty = tables.difficulty_weights.copy()
    difficulty[TARGETS[target]] = _drawable(target, weights, presets)
    return tables._replace(number=tables.number + 1, difficulty_weights=difficulty)


def _drawable(target: str, weights: Sequence[float], presets: PresetTables) -> core.Floats:
    """Weights of the difficulties, each of which has a preset where it has a weight."""
    given: core.Floats = level_weights(target, weights, DIFFICULTIES[target])
    for difficulty in np.flatnonzero((given > 0) & ~_has_preset(target, presets)) + 1:
        raise ConfigurationError(
            f"scenario: {target} has no preset of difficulty {difficulty}, which has a weight"
        )
    return given


def _has_preset(target: str, presets: PresetTables) -> core.Bools:
    has: core.Bools = presets.kind_count[TARGETS[target], 1:] > 0
    return has


def _weights(scenario: Scenario, presets: PresetTables) -> tuple[core.Floats, core.Floats]:
    targets = target_weights(scenario.targets, TARGETS, core.TARGET_COUNT)
    difficulty = np.zeros((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, levels in DIFFICULTIES.items():
        if levels and targets[TARGETS[name]] > 0:
            difficulty[TARGETS[name]] = _difficulties(name, scenario, presets)
    for name in scenario.difficulty:
        target_number(name, TARGETS)
    return targets, difficulty


def _difficulties(target: str, scenario: Scenario, presets: PresetTables) -> core.Floats:
    """Weights as given for the difficulties of `target`; without any, equal ones."""
    if target in scenario.difficulty:
        return _drawable(target, scenario.difficulty[target], presets)
    equal = _has_preset(target, presets).astype(np.float64)
    if not equal.any():
        raise ConfigurationError(f"scenario: there is no preset of {target}")
    return equal


LABELS = (0.0, 1.0, 2.0, -1.0)  # of a ray's tag: wall, enemy, player, none
ONE_HOT = ("wall", "enemy", "player")


def unit_blocks(settings: ArenaSettings, names: Sequence[str]) -> tuple[UnitBlock, ...]:
    """The kinds of units in observations of columns `names`, of which the newest count."""
    index = {name: column for column, name in enumerate(names)}
    told = settings.observation.rays == "ml-agents"
    rays = _perceived(settings.rays, index) if told else ray_units(settings.rays, index)
    return (rays, _enemies(settings, index)) if settings.observation.units else (rays,)


def ray_units(rays: RaySettings, index: Mapping[str, int]) -> UnitBlock:
    """One unit a ray; its angle is that of the settings, whatever a lesson's parameters are."""
    labelled = rays.tags == "label"
    features = ("tag", "distance") if labelled else (*ONE_HOT, "distance")
    return UnitBlock(
        kind="rays",
        features=features,
        columns=unit_columns("ray", rays.count, features=features, index=index),
        fixed=_directions(rays),
        distance="distance",
        labels={"tag": LABELS} if labelled else {},
    )


def _perceived(rays: RaySettings, index: Mapping[str, int]) -> UnitBlock:
    """One unit a ray, from left to right, of the columns that ML-Agents has."""
    features = (*ONE_HOT, "nothing", "fraction")
    columns = unit_columns("ray", rays.count, features=features, index=index)
    return UnitBlock(kind="rays", features=features, columns=columns, fixed=_directions(rays))


def _directions(rays: RaySettings) -> np.ndarray:
    """Sine and cosine [R, 2] of each ray's angle to the gun's line."""
    angles = np.array(rays.angles)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _enemies(settings: ArenaSettings, index: Mapping[str, int]) -> UnitBlock:
    features = ("seen", "ahead", "right", "hits_left", "is_target")
    return UnitBlock(
        kind="enemies",
        features=features,
        columns=unit_columns("enemy", core.ENEMY_SLOTS, features=features, index=index),
        fixed=np.zeros((core.ENEMY_SLOTS, 0), np.float32),
        seen="seen",
        place=("ahead", "right"),
        place_scale=settings.floor_size,
        target=True,
    )


def unit_columns(
    prefix: str, slots: int, *, features: Sequence[str], index: Mapping[str, int]
) -> np.ndarray:
    """[slots, features] of the columns PREFIX_SLOT_FEATURE of an observation."""
    named = [[f"{prefix}_{slot}_{name}" for name in features] for slot in range(slots)]
    return np.array([[index[name] for name in row] for row in named], np.int64)


def clock(state: core.ArenaState, row: int = 0) -> tuple[float, float]:
    """Seconds of the episode of `row` so far, and those that are left of it."""
    numbers = state.parameters[row]
    period = numbers[core.AT.decision_period] * numbers[core.AT.fixed_timestep]
    passed = float(state.decisions[row] * period)
    return passed, max(float(numbers[core.AT.time_limit]) - passed, 0.0)


FIRED, HIT = "shots", "hits"  # events of a recorded episode
Column = tuple[str, float, float]  # name, low, high
CAMERA, PERCEPTION = "CameraSensor", "RayPerceptionSensor"  # sensors of ML-Agents
PICTURE = "camera"  # block


def own_number_columns(floor: float, time_limit: float) -> list[Column]:
    """The agent's own numbers, on a floor of that side."""
    bounds = dict.fromkeys(core.OWN._fields, (0.0, 1.0))
    places = [f"{thing}_{axis}" for thing in ("fire_base", "agent") for axis in "xyz"]
    bounds.update(dict.fromkeys(places, (0.0, floor)))
    bounds.update(dict.fromkeys(("cos_yaw", "sin_yaw"), (-1.0, 1.0)))
    bounds["target"] = 0.0, float(core.TARGET_COUNT - 1)
    bounds["fire_base_diameter"] = 0.0, core.BLOCK_SIZE
    bounds["time_left"] = 0.0, time_limit
    return [(name, *both) for name, both in bounds.items()]


def target_columns(settings: ArenaSettings) -> list[Column]:
    """The target's type, where it is one-hot."""
    shown = core.TARGETS if settings.observation.target == "one_hot" else ()
    return [(f"target_{name}", 0.0, 1.0) for name in shown]


def enemy_columns(settings: ArenaSettings) -> int:
    """Columns of an observation that are about enemies."""
    return core.ENEMY_SLOTS * (core.SLOT_FEATURES + 1) if settings.observation.units else 0


def _enemy_columns(settings: ArenaSettings) -> list[Column]:
    if not settings.observation.units:
        return []
    slots, far = range(core.ENEMY_SLOTS), settings.floor_size * sqrt(2.0)
    each: list[Column] = [("ahead", -far, far), ("right", -far, far)]
    each += [("hits_left", 0.0, 1.0), ("is_target", 0.0, 1.0)]
    places = [(f"enemy_{slot}_{name}", low, high) for slot in slots for name, low, high in each]
    return places + [(f"enemy_{slot}_seen", 0.0, 1.0) for slot in slots]


def perception_names(rays: int) -> list[str]:
    """Columns of `rays` rays as ML-Agents orders them: the middle one, then right, left, right ...

    A ray's number is its place from left to right, as everywhere in the arena.
    """
    middle = rays // 2
    order = [middle + side * step for step in range(1, middle + 1) for side in (1, -1)]
    kinds = ("wall", "enemy", "player", "nothing", "fraction")
    return [f"ray_{ray}_{kind}" for ray in (middle, *order) for kind in kinds]


def _columns(settings: ArenaSettings) -> list[Column]:
    columns = [
        *own_number_columns(settings.floor_size, settings.time_limit),
        *target_columns(settings),
        *_enemy_columns(settings),
    ]
    if settings.observation.rays == "ml-agents":
        return columns + [(name, 0.0, 1.0) for name in perception_names(settings.rays.count)]
    return columns + ray_columns(settings.rays)


def ray_columns(rays: RaySettings) -> list[Column]:
    """Tags of all rays, left to right, then their distances."""
    numbers = range(rays.count)
    if rays.tags == "one_hot":
        tags = [(f"ray_{ray}_{kind}", 0.0, 1.0) for ray in numbers for kind in ONE_HOT]
    else:
        tags = [(f"ray_{ray}_tag", -1.0, 2.0) for ray in numbers]
    return tags + [(f"ray_{ray}_distance", 0.0, rays.range) for ray in numbers]


def ray_blocks(rays: RaySettings, suffix: str = "") -> tuple[ObservationBlock, ObservationBlock]:
    """Those of `ray_columns`."""
    kinds = core.TAG_KINDS if rays.tags == "one_hot" else 1
    return (
        ObservationBlock(f"ray_tags{suffix}", "rays", (rays.count, kinds)),
        ObservationBlock(f"ray_distances{suffix}", "rays", (rays.count, 1)),
    )


def observation_width(settings: ArenaSettings) -> int:
    """Columns of a single observation, without making their names."""
    each = 1 + (core.TAG_KINDS if settings.rays.tags == "one_hot" else 1)  # tag and distance
    if settings.observation.rays == "ml-agents":
        each = core.PERCEPTION
    return _pixels_from(settings) + each * settings.rays.count


def _pixels_from(settings: ArenaSettings) -> int:
    """Columns before the picture and the rays."""
    return len(core.OWN) + len(target_columns(settings)) + enemy_columns(settings)


def pixel_count(settings: ArenaSettings) -> int:
    """Numbers of a single picture, which kernels write between enemies and rays."""
    camera = settings.observation.camera
    return 0 if camera is None else camera.width * camera.height * camera.channels


def picture_columns(settings: ArenaSettings) -> dict[str, Int64Array]:
    """Where kernels write the pixels [H, W, C] of each picture: row by row from above.

    Earlier observations stand before later ones, and their pictures are the first channels.
    """
    camera = settings.observation.camera
    if camera is None:
        return {}
    size, first = pixel_count(settings), _pixels_from(settings)
    one = np.arange(first, first + size).reshape(camera.height, camera.width, camera.channels)
    width = observation_width(settings) + size
    ages = [one + width * age for age in range(settings.stacked_vectors)]
    return {PICTURE: np.concatenate(ages, axis=2)}


def _stacked(settings: ArenaSettings) -> list[Column]:
    """Columns of all observations handed out together; the newest has the plain names."""
    newest = _columns(settings)
    ages = range(settings.stacked_vectors - 1, 0, -1)
    # Before an episode's first observation there are zeros, whatever the declared range.
    older = [
        (f"{name}@-{age}", min(low, 0.0), max(high, 0.0))
        for age in ages
        for name, low, high in newest
    ]
    return older + newest


def _blocks(settings: ArenaSettings) -> tuple[ObservationBlock, ...]:
    """The agent's own numbers and the rays, of every observation handed out together."""
    own, rays = len(core.OWN) + len(target_columns(settings)), settings.rays.count
    slots = core.ENEMY_SLOTS, core.SLOT_FEATURES
    told, blocks = settings.observation, []
    for age in range(settings.stacked_vectors - 1, -1, -1):
        suffix = f"@-{age}" if age else ""
        blocks += [
            ObservationBlock(f"own{suffix}", "vector", (own,)),
            *([ObservationBlock(f"enemies{suffix}", "units", slots)] if told.units else []),
        ]
        if told.rays == "ml-agents":
            shape = rays, core.PERCEPTION
            blocks.append(ObservationBlock(f"perception{suffix}", "rays", shape, PERCEPTION))
            continue
        blocks += ray_blocks(settings.rays, suffix)
    stacked = settings.stacked_vectors
    sensor = CAMERA if stacked == 1 else f"StackingSensor_size{stacked}_{CAMERA}"
    shown = [
        ObservationBlock(name, "image", columns.shape, sensor)
        for name, columns in picture_columns(settings).items()
    ]
    return (*blocks, *shown)


def arena_spec(settings: ArenaSettings) -> WorldSpec:
    """Observation columns with their ranges, action branches, targets and reward terms."""
    names, lows, highs = zip(*_stacked(settings), strict=True)
    return WorldSpec(
        observation_names=names,
        observation_low=np.array(lows, np.float32),
        observation_high=np.array(highs, np.float32),
        branches=core.BRANCHES,
        continuous=1,
        continuous_limit=settings.mouse_limit,
        turn_per_unit=settings.mouse_factor,
        targets=core.TARGETS,
        difficulties=DIFFICULTIES,
        reward_terms=core.REWARD_TERMS,
        parameters=core.PARAMETERS,
        action_names=("vertical", "horizontal", "attack", "mouse"),
        decision_seconds=settings.decision_seconds,
        abilities=frozenset(ABILITIES),
        episode_columns=(*own_columns(core.EpisodeLog), *core.COUNT._fields),
        time_column="seconds",
        blocks=_blocks(settings),
        units=unit_blocks(settings, names),
        max_steps=ceil(settings.time_limit / settings.decision_seconds),
    )
