"""The duel's shape as every adapter and policy sees it."""

from math import ceil, sqrt

import numpy as np

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.foundation.world import ABILITIES, ObservationBlock, WorldSpec
from aimbot_lab.worlds.arena.spec import LABELS, ONE_HOT, own_number_columns
from aimbot_lab.worlds.duel.core import state as core
from aimbot_lab.worlds.duel.episode_results import EPISODE_COLUMNS
from aimbot_lab.worlds.duel.kinds import KINDS, LEARNED, SCRIPTS, TARGET
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE
from aimbot_lab.worlds.duel.settings import DuelSettings, SelfPlayDuelSettings

Column = tuple[str, float, float]  # name, low, high
ACTION_NAMES = ("vertical", "horizontal", "attack", "mouse")
FEATURES = ("ahead", "right", "hits_left", "looks_ahead", "looks_right")  # of the opponent


def _own_columns(settings: DuelSettings) -> list[Column]:
    observed = settings.observed_parameters
    return [
        *own_number_columns(FLOOR_SIZE, settings.time_limit),
        ("health", 0.0, 1.0),
        ("hit_ahead", -1.0, 1.0),
        ("hit_right", -1.0, 1.0),
        *((f"own_{name}", 0.0, 1.0) for name in observed),
        *((f"opponent_{name}", 0.0, 1.0) for name in observed),
    ]


def _opponent_columns(settings: DuelSettings) -> list[Column]:
    if not settings.observation.units:
        return []
    far = FLOOR_SIZE * sqrt(2.0)
    bounds = ((-far, far), (-far, far), (0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0))
    named = zip(FEATURES, bounds, strict=True)
    return [*((f"opponent_0_{name}", *both) for name, both in named), ("opponent_0_seen", 0.0, 1.0)]


def _ray_columns(settings: DuelSettings) -> list[Column]:
    rays = range(settings.rays.count)
    if settings.rays.tags == "one_hot":
        tags = [(f"ray_{ray}_{kind}", 0.0, 1.0) for ray in rays for kind in ONE_HOT]
    else:
        tags = [(f"ray_{ray}_tag", -1.0, 2.0) for ray in rays]
    return [*tags, *((f"ray_{ray}_distance", 0.0, settings.rays.range) for ray in rays)]


def _blocks(settings: DuelSettings) -> tuple[ObservationBlock, ...]:
    rays = settings.rays.count
    opponent = ObservationBlock("opponent", "units", (1, core.OPPONENT_FEATURES))
    return (
        ObservationBlock("own", "vector", (len(_own_columns(settings)),)),
        *((opponent,) if settings.observation.units else ()),
        ObservationBlock("ray_tags", "rays", (rays, tag_columns(settings))),
        ObservationBlock("ray_distances", "rays", (rays, 1)),
    )


def tag_columns(settings: DuelSettings) -> int:
    """Columns of a ray's tag."""
    return len(ONE_HOT) if settings.rays.tags == "one_hot" else 1


def _units(settings: DuelSettings, names: tuple[str, ...]) -> tuple[UnitBlock, ...]:
    """The rays and, where it is shown, the opponent."""
    labelled, angles = settings.rays.tags == "label", np.array(settings.rays.angles)
    rays = UnitBlock(
        kind="rays",
        features=(*(("tag",) if labelled else ONE_HOT), "distance"),
        columns=_columns("ray", settings.rays.count, names=names, labelled=labelled),
        fixed=np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32),
        distance="distance",
        labels={"tag": LABELS} if labelled else {},
    )
    if not settings.observation.units:
        return (rays,)
    features = ("seen", *FEATURES)
    opponent = UnitBlock(
        kind="opponents",
        features=features,
        columns=np.array([[names.index(f"opponent_0_{name}") for name in features]], np.int64),
        fixed=np.zeros((1, 0), np.float32),
        seen="seen",
        place=("ahead", "right"),
        place_scale=FLOOR_SIZE,
        target=True,
    )
    return rays, opponent


def _columns(prefix: str, slots: int, *, names: tuple[str, ...], labelled: bool) -> np.ndarray:
    features = (*(("tag",) if labelled else ONE_HOT), "distance")
    rows = [[names.index(f"{prefix}_{slot}_{name}") for name in features] for slot in range(slots)]
    return np.array(rows, np.int64)


def targets_of(settings: DuelSettings) -> tuple[str, ...]:
    """The duel itself where both learn, else who sits opposite."""
    if settings.learner == "both":
        return (TARGET,)
    return (*SCRIPTS, *LEARNED) if isinstance(settings, SelfPlayDuelSettings) else SCRIPTS


def duel_spec(settings: DuelSettings) -> WorldSpec:
    """Observation columns with their ranges, action branches, targets and reward terms."""
    columns = [
        *_own_columns(settings),
        *_opponent_columns(settings),
        *_ray_columns(settings),
    ]
    names, lows, highs = zip(*columns, strict=True)
    targets = targets_of(settings)
    return WorldSpec(
        observation_names=names,
        observation_low=np.array(lows, np.float32),
        observation_high=np.array(highs, np.float32),
        branches=core.BRANCHES,
        continuous=1,
        continuous_limit=settings.mouse_limit,
        turn_per_unit=settings.mouse_factor,
        targets={name: KINDS.index(name) for name in targets},
        difficulties=dict.fromkeys(targets, core.LEVELS),
        reward_terms=core.REWARD_TERMS,
        parameters=core.PARAMETERS,
        action_names=ACTION_NAMES,
        decision_seconds=settings.decision_seconds,
        abilities=frozenset(ABILITIES) - (set() if settings.learner == "both" else {"parts"}),
        agents=core.AGENTS if settings.learner == "both" else 1,
        episode_columns=EPISODE_COLUMNS,
        time_column="seconds",
        result_columns=(),
        has_draws=True,
        blocks=_blocks(settings),
        units=_units(settings, names),
        max_steps=ceil(settings.time_limit / settings.decision_seconds),
    )
