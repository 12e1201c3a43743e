"""Arrays for the kernels, built from settings, presets and a scenario."""

from collections.abc import Mapping, Sequence

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.sim.core import state as core
from aimbot_lab.sim.core.state import ArenaState, ArenaTables, EpisodeLog
from aimbot_lab.sim.presets import Preset
from aimbot_lab.sim.settings import ArenaSettings, RaySettings

TARGETS = {"free": core.FREE, "goto": core.GOTO, "attack": core.ATTACK, "stay": core.STAY}
DIFFICULTIES = {"free": 0, "goto": 5, "attack": 5, "stay": 0}
START_POSITION = (2.0, 2.0)  # m, where an agent's first episode begins


def parameter_values(settings: ArenaSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    values: dict[str, float] = {}
    for name in core.PARAMETERS:
        owner: object = settings
        for part in name.split("."):
            owner = getattr(owner, part)
        values[name] = float(owner)  # type: ignore[arg-type]
    return values


def ray_angles(rays: RaySettings) -> core.Floats:
    """Angles [R] in rad of the rays to the view's centre line, left to right.

    The middle rays span their share of the view from edge to edge; the side rays go on evenly
    from there to the view's edge.
    """
    half_view = np.radians(rays.view_angle) / 2
    half_middle = half_view * rays.middle_share
    middle = np.linspace(-half_middle, half_middle, rays.middle_count)
    if rays.middle_count == 1:
        middle = np.zeros(1)
    right = np.linspace(half_middle, half_view, rays.side_count + 1)[1:]
    return np.concatenate([-right[::-1], middle, right])


def _padded_rays(rays: RaySettings) -> tuple[core.Floats32, core.Floats32]:
    angles = ray_angles(rays)
    padding = -len(angles) % core.RAY_LANES
    padded = np.concatenate([angles, np.zeros(padding)])
    return np.cos(padded).astype(np.float32), np.sin(padded).astype(np.float32)


def _preset_arrays(presets: Sequence[Preset]) -> dict[str, np.ndarray]:
    """Tables of all presets, sorted by target and difficulty, with where each kind begins."""
    kinds = (core.TARGET_COUNT, core.DIFFICULTY_COUNT + 1)
    ordered = sorted(presets, key=lambda preset: (TARGETS[preset.target], preset.difficulty))
    most = max((len(preset.obstacles) for preset in ordered), default=0)
    arrays = {
        "preset_first": np.zeros(kinds, np.int64),
        "preset_count": np.zeros(kinds, np.int64),
        "preset_obstacles": np.zeros((len(ordered), max(most, 1), 4)),
        "preset_obstacle_count": np.zeros(len(ordered), np.int64),
        "preset_enemies": np.zeros((len(ordered), core.MAX_ENEMIES, 2)),
        "preset_enemy_count": np.zeros(len(ordered), np.int64),
        "preset_fire_base": np.zeros((len(ordered), 3)),
    }
    for index, preset in enumerate(ordered):
        kind = TARGETS[preset.target], preset.difficulty
        if arrays["preset_count"][kind] == 0:
            arrays["preset_first"][kind] = index
        arrays["preset_count"][kind] += 1
        arrays["preset_fire_base"][index] = preset.fire_base
        arrays["preset_obstacle_count"][index] = len(preset.obstacles)
        arrays["preset_enemy_count"][index] = len(preset.enemies)
        for slot, box in enumerate(preset.obstacles):
            arrays["preset_obstacles"][index, slot] = box
        for slot, spot in enumerate(preset.enemies):
            arrays["preset_enemies"][index, slot] = spot
    return arrays


def new_tables(settings: ArenaSettings, presets: Sequence[Preset]) -> ArenaTables:
    """Tables without a scenario; `with_scenario` completes them."""
    cosines, sines = _padded_rays(settings.rays)
    half_view = np.radians(settings.rays.view_angle) / 2
    return ArenaTables(
        floor_size=settings.floor_size,
        ray_count=settings.rays.count,
        one_hot=settings.rays.tags == "one_hot",
        ray_cos=cosines,
        ray_sin=sines,
        view_edge=np.array([np.cos(half_view), np.sin(half_view)]),
        **_preset_arrays(presets),
        scenario_number=0,
        target_weights=np.zeros(core.TARGET_COUNT),
        difficulty_weights=np.ones((core.TARGET_COUNT, core.DIFFICULTY_COUNT)),
        scenario_parameters=np.array(list(parameter_values(settings).values())),
    )


def with_scenario(tables: ArenaTables, settings: ArenaSettings, scenario: Scenario) -> ArenaTables:
    """Tables from which the next episodes are drawn, one scenario number further.

    Raises ConfigurationError for an unknown target or parameter and for weights that leave
    nothing to draw.
    """
    targets = np.zeros(core.TARGET_COUNT)
    for name, weight in scenario.targets.items():
        targets[_known("target", name, TARGETS)] = weight
    difficulty = np.ones((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, weights in scenario.difficulty.items():
        difficulty[_known("target", name, TARGETS)] = weights
    parameters = parameter_values(settings)
    for name, value in scenario.parameters.items():
        _known("parameter", name, parameters)
        parameters[name] = value
    counts = tables.preset_count[:, 1:]
    for name in (name for name, levels in DIFFICULTIES.items() if levels):
        code = TARGETS[name]
        drawable = difficulty[code] * (counts[code] > 0)
        if targets[code] > 0 and not drawable.sum() > 0:
            raise ConfigurationError(f"scenario: no preset of {name} at a difficulty with a weight")
        difficulty[code] = drawable
    if not targets.sum() > 0:
        raise ConfigurationError("scenario: the weights of the targets sum to 0")
    return tables._replace(
        scenario_number=tables.scenario_number + 1,
        target_weights=targets,
        difficulty_weights=difficulty,
        scenario_parameters=np.array(list(parameters.values())),
    )


def _known(kind: str, name: str, allowed: Mapping[str, float]) -> int:
    if name not in allowed:
        raise ConfigurationError(f"scenario: no {kind} {name!r}; there are {', '.join(allowed)}")
    return int(allowed[name])


def new_state(settings: ArenaSettings, tables: ArenaTables) -> ArenaState:
    """State arrays of `settings.num_envs` rows before any episode began."""
    rows, lanes = settings.num_envs, tables.ray_cos.size
    boxes = tables.preset_obstacles.shape[1]
    return ArenaState(
        position=np.tile(np.array(START_POSITION), (rows, 1)),
        yaw=np.zeros(rows),
        target=np.full(rows, core.STAY, np.int64),
        difficulty=np.zeros(rows, np.int64),
        preset=np.full(rows, -1, np.int64),
        block=np.zeros((rows, 2)),
        block_turns=np.zeros(rows, np.int64),
        fire_base=np.zeros((rows, 3)),
        obstacles=np.zeros((rows, boxes, 4)),
        obstacle_count=np.zeros(rows, np.int64),
        enemies=np.zeros((rows, core.MAX_ENEMIES, 2)),
        enemy_hits_left=np.zeros((rows, core.MAX_ENEMIES), np.int64),
        enemy_count=np.zeros(rows, np.int64),
        decisions=np.zeros(rows, np.int64),
        gun_ticks=np.zeros(rows, np.int64),
        spin_turns=np.zeros((rows, settings.spin_window), np.int64),
        spin_sum=np.zeros(rows, np.int64),
        terms=np.zeros((rows, len(core.REWARD_TERMS))),
        ray_distance=np.zeros((rows, lanes), np.float32),
        ray_hit=np.full((rows, lanes), core.NO_HIT, np.int32),
        parameters=np.zeros((rows, len(core.PARAMETERS))),
        streams=np.zeros(rows, np.uint64),
        order=np.zeros(rows, np.int64),
        scenario=np.zeros(rows, np.int64),
        clock=np.zeros(1, np.int64),
    )


def new_log(num_envs: int) -> EpisodeLog:
    """Arrays for how each row's last episode ended."""
    return EpisodeLog(
        won=np.zeros(num_envs, np.bool_),
        target=np.zeros(num_envs, np.int64),
        difficulty=np.zeros(num_envs, np.int64),
        length=np.zeros(num_envs, np.int64),
        seconds=np.zeros(num_envs),
        order=np.zeros(num_envs, np.int64),
        scenario=np.zeros(num_envs, np.int64),
        terms=np.zeros((num_envs, len(core.REWARD_TERMS))),
    )
