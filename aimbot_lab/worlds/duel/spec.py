"""The duel's spec, and its words in replays."""

from collections.abc import Mapping
from math import ceil, sqrt
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN, own_columns
from aimbot_lab.foundation.world import ABILITIES, ObservationBlock, UnitBlock, WorldSpec
from aimbot_lab.worlds.arena.spec import (
    FIRED,
    HIT,
    own_number_columns,
    ray_blocks,
    ray_columns,
    ray_units,
    unit_columns,
)
from aimbot_lab.worlds.duel.core import state as core
from aimbot_lab.worlds.duel.core.state import (
    HEALTH,
    KINDS,
    LEARNED,
    NO_SHOT,
    REFERENCE,
    SCRIPTS,
    SELF,
    TARGET,
    DuelState,
)
from aimbot_lab.worlds.duel.core.state import HIT as SHOT_HIT
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE
from aimbot_lab.worlds.duel.settings import DuelSettings, SelfPlayDuelSettings

HURT = "wounds"  # event
SEATS = ("home", "away")
LEARNER = "the learner"
PAST_SELVES = {SELF: "itself, now or before", REFERENCE: "itself when the lesson began"}
ENDINGS = {WIN: "WON", DRAW: "DRAW"}


def goal(state: DuelState, match: int = 0) -> str:
    """What home is to do in `match` of `state`, and how much of it is left."""
    mine, theirs = (int(health) for health in state.health[[match, match + len(state.layout)]])
    return f"shoot the opponent: {theirs} hits left, own health {mine}"


def events(state: DuelState) -> dict[str, int]:
    """What the last decision of match 0 brought the home agent."""
    home, away = (int(shot) for shot in state.shot[:2])
    return {
        FIRED: int(home != NO_SHOT),
        HIT: int(home == SHOT_HIT),
        HURT: int(away == SHOT_HIT),
    }


def verdict(state: DuelState, *, names: tuple[str, str], decides: bool) -> tuple[int, str, str]:
    """Outcome of match 0 of `state`, which has ended, for home; who won; and why.

    `names` are those of home and away; `decides`: health decides at the time limit.
    """
    home, away = (int(health) for health in state.health[:2])
    most = [round(float(health)) for health in state.traits[:2, HEALTH]]
    if home <= 0 and away <= 0:
        return DRAW, "A draw", "each shot the other down in the same moment"
    if home > 0 and away > 0:
        left = f"the time is up: health {home} of {most[0]} against {away} of {most[1]}"
        if home == away or not decides:
            return DRAW, "A draw", left
        winner = int(away > home)
        return LOSS if winner else WIN, f"{names[winner]} wins", left
    winner = int(away > 0)
    health, of = (home, away)[winner], most[winner]
    why = f"{names[1 - winner]} was shot down; {names[winner]} has {health} of {of} health left"
    return LOSS if winner else WIN, f"{names[winner]} wins", why


def seat_names(about: Mapping[str, Any], kind: str) -> tuple[str, str]:
    """Who plays home and away in a match of `kind`, by what a replay says `about` itself."""
    usual = SEATS if kind == TARGET else (LEARNER, PAST_SELVES.get(kind, kind))
    home, away = (str(about.get(seat, name)) for seat, name in zip(SEATS, usual, strict=True))
    return home, away


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
