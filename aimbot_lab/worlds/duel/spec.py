"""The duel's shape as every adapter and policy sees it."""

from math import ceil, sqrt

import numpy as np

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.foundation.world import ABILITIES, ObservationBlock, WorldSpec
from aimbot_lab.worlds.arena.spec import (
    own_number_columns,
    ray_blocks,
    ray_columns,
    ray_units,
    unit_columns,
)
from aimbot_lab.worlds.duel.core import state as core
from aimbot_lab.worlds.duel.core.state import KINDS, LEARNED, SCRIPTS, TARGET
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE
from aimbot_lab.worlds.duel.settings import DuelSettings, SelfPlayDuelSettings
from aimbot_lab.worlds.episode_log import own_columns

Column = tuple[str, float, float]  # name, low, high
OWN_COLUMNS = own_columns(core.MatchLog)
EPISODE_COLUMNS = (*OWN_COLUMNS, "score")
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


def _blocks(settings: DuelSettings) -> tuple[ObservationBlock, ...]:
    opponent = ObservationBlock("opponent", "units", (1, core.OPPONENT_FEATURES))
    return (
        ObservationBlock("own", "vector", (len(_own_columns(settings)),)),
        *((opponent,) if settings.observation.units else ()),
        *ray_blocks(settings.rays),
    )


def _units(settings: DuelSettings, names: tuple[str, ...]) -> tuple[UnitBlock, ...]:
    """The rays and, where it is shown, the opponent."""
    index = {name: column for column, name in enumerate(names)}
    rays = ray_units(settings.rays, index)
    if not settings.observation.units:
        return (rays,)
    features = ("seen", *FEATURES)
    opponent = UnitBlock(
        kind="opponents",
        features=features,
        columns=unit_columns("opponent", 1, features=features, index=index),
        fixed=np.zeros((1, 0), np.float32),
        seen="seen",
        place=("ahead", "right"),
        place_scale=FLOOR_SIZE,
        target=True,
    )
    return rays, opponent


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
        *ray_columns(settings.rays),
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
