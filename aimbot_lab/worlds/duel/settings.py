"""The duel's settings, and a scenario's kinds of matches and parameters as arrays for the kernels.

The parameter `NAME` holds for both agents, `away.NAME` for the away agent alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from math import inf, isfinite
from typing import Annotated, Literal

import numpy as np
from annotated_types import MinLen
from pydantic import Field

from aimbot_lab.foundation.settings import (
    STRICT,
    Bool,
    Float,
    Ge,
    Gt,
    Int,
    Le,
    ParameterValue,
    dataclass,
)
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.arena.settings import Paths, RaySettings, Reach, Reward
from aimbot_lab.worlds.duel.core.state import (
    AWAY,
    KINDS,
    LEVELS,
    OF_SEATS,
    PARAMETERS,
    DuelScenarioTables,
)
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

MAX_LOADOUTS = 64
Weight = Annotated[Float, Ge(0), Le(1e9)]
Loadout = Annotated[Mapping[str, Float], MinLen(1)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DuelRewardWeights:
    """What an agent earns; its reward is that minus what the other earns, term by term."""

    win: Reward = 100.0
    """The match was won."""
    hit: Reward = 10.0
    """A shot that hit the opponent."""
    facing: Reward = 0.2
    """Factor on the arena's reward for looking at a seen opponent: 2 a decision at most."""
    spin_penalty: Reward = 0.2
    """Factor on the arena's penalty for turning."""
    move_penalty: Reward = 0.0
    """A decision in which the agent was displaced."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DuelObservationSettings:
    """What an observation has besides the agent's own numbers and the rays."""

    units: Bool = False
    """Whether it has columns for the opponent, filled where a ray within range hits it."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DuelSettings:
    """The duel: hall, motion, gun, health, rays and rewards."""

    world: Literal["duel"] = "duel"
    """The world."""
    num_envs: Annotated[Int, Ge(1), Le(32768)] = 256
    """Matches stepped together, two agents each."""
    threads: Annotated[Int, Ge(1), Le(64)] = 1
    """Threads that step them."""
    learner: Literal["both", "home"] = "both"
    """Who learns: `both` agents, or only `home`, against the scripted players, which are then the
    targets."""
    agent_radius: Annotated[Float, Ge(0.05), Le(0.5)] = 0.5
    """Radius of an agent's disc in metres; layouts let discs of 0.5 m pass."""
    decision_period: Annotated[Int, Ge(1), Le(20)] = 5
    """Physics ticks per decision."""
    decision_every: Annotated[Int, Ge(1), Le(20)] = 1
    """An agent chooses an action every this many decisions, and repeats it in between."""
    fixed_timestep: Annotated[Float, Ge(0.0001), Le(0.1)] = 0.02
    """Seconds per physics tick."""
    time_limit: Annotated[Float, Ge(0.0001), Le(3600)] = 30.0
    """Seconds after which a match ends."""
    on_timeout: Literal["draw", "health"] = "draw"
    """What a match at its time limit is: a draw, or won by the healthier agent."""
    start: Literal["mirrored", "free"] = "mirrored"
    """Whether both start at the same place of their own frames, or each at its own."""
    move_speed: Annotated[Float, Ge(0), Le(1000)] = 5.0
    """Metres per second."""
    gun_cooldown: Annotated[Float, Ge(0), Le(3600)] = 0.3
    """Seconds between two shots, counted in ticks."""
    gun_range: Reach = 100.0
    """Range of a shot in metres."""
    health: Annotated[Int, Ge(1), Le(100)] = 3
    """Points of health; at 0 the agent is dead."""
    damage: Annotated[Int, Ge(1), Le(100)] = 1
    """Points that a hit takes."""
    mouse_limit: Annotated[Float, Gt(0), Le(1000)] = 5.0
    """The mouse action is clipped to plus or minus this."""
    mouse_factor: Annotated[Float, Gt(0), Le(10)] = 0.08
    """Radians turned per unit of the mouse action."""
    spin_window: Annotated[Int, Ge(1), Le(1000)] = 40
    """Actions over which the net turn is summed."""
    spin_threshold: Annotated[Float, Gt(0), Le(1e6)] = 10.0
    """Net turn in radians from which the penalty for spinning is the turn itself."""
    spin_rate: Annotated[Float, Ge(0), Le(1e6)] = 0.06
    """Penalty per unit of the mouse action below that threshold."""
    facing_distance: Annotated[Float, Ge(0), Le(1e6)] = 0.5
    """An opponent within this distance of the view's centre line earns the full reward, m."""
    loadouts: Annotated[Mapping[str, Loadout], Field(max_length=MAX_LOADOUTS)] = Field(
        default_factory=dict
    )
    """Named sets of parameters of an agent, such as `{sniper: {gun_cooldown: 1.5, damage: 3}}`."""
    loadout: Mapping[str, Weight] = Field(default_factory=dict)
    """Weights with which a match draws one of them; equal by default."""
    mirrored_loadouts: Bool = True
    """Whether both agents have the same loadout."""
    observed_parameters: tuple[str, ...] = ()
    """Parameters of an agent whose values, its own and its opponent's, are observed as v / (v + u),
    u the value of these settings."""
    shipped_layouts: Bool = True
    """Whether the shipped halls are drawn, beside those of `layouts`."""
    layouts: Paths = ()
    """Files and folders of halls of your own; without the shipped ones there must
    be one for each difficulty."""
    rays: RaySettings = RaySettings()
    """What an agent sees with."""
    observation: DuelObservationSettings = DuelObservationSettings()
    """What else it observes."""
    rewards: DuelRewardWeights = DuelRewardWeights()
    """What an agent earns."""

    def __post_init__(self) -> None:
        for name, values in self.loadouts.items():
            _check_loadout(name, values)
        for name in self.loadout:
            if name not in self.loadouts:
                known = ", ".join(self.loadouts) or "none"
                raise ValueError(f"loadout: there is no loadout {name!r}; there are {known}")
        if self.loadout and not any(self.loadout.values()):
            raise ValueError("loadout: a weight must be above 0")
        for name in self.observed_parameters:
            if name not in OF_SEATS:
                known = ", ".join(OF_SEATS)
                raise ValueError(f"observed_parameters: no parameter {name!r}; there are {known}")
        if len(set(self.observed_parameters)) != len(self.observed_parameters):
            raise ValueError("observed_parameters: each can be named once")

    @property
    def decision_seconds(self) -> float:
        """Seconds between two decisions."""
        return self.decision_period * self.fixed_timestep


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SelfPlayDuelSettings(DuelSettings):
    """The duel in which a training by self-play plays home."""

    learner: Literal["both", "home"] = "home"
    """Home alone; the away seats are played by scripts, past selves and, where mirrored, itself."""
    mirrored: Annotated[Int, Ge(0)] = 0
    """How many matches, from the first on, have the learner in both seats."""


def one_match(settings: DuelSettings) -> DuelSettings:
    """The same duel with one match, both seats of which are played from outside."""
    own = {one.name: getattr(settings, one.name) for one in fields(DuelSettings)}
    return DuelSettings(**{**own, "num_envs": 1, "threads": 1, "learner": "both"})


def _check_loadout(name: str, values: Mapping[str, float]) -> None:
    """Raise ValueError unless every value is one that the parameter takes."""
    for trait, value in values.items():
        if trait not in OF_SEATS:
            known = ", ".join(OF_SEATS)
            raise ValueError(f"loadouts: {name}: no parameter {trait!r}; there are {known}")
        bounds = bounds_of(DuelSettings, trait)
        if not (isfinite(value) and bounds.low <= value <= bounds.high):
            raise ValueError(f"loadouts: {name}: {trait} must {bounds} (got {value:g})")
        if bounds.whole and value != int(value):
            raise ValueError(f"loadouts: {name}: {trait} must be a whole number (got {value:g})")


DECLARED = ("time_limit", "rays.range")  # they bound the observation


def parameter_values(settings: DuelSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {name: setting_of(settings, name.removeprefix(AWAY)) for name in PARAMETERS}


@cache
def parameter_bounds() -> dict[str, Bounds]:
    """The values that each parameter takes, as its setting declares them."""
    return {name: bounds_of(DuelSettings, name.removeprefix(AWAY)) for name in PARAMETERS}


def parameter_fault(name: str, value: ParameterValue, settings: DuelSettings | None) -> str | None:
    """What is wrong with giving parameter `name` that value, None where nothing is.

    Without settings only what holds in every duel is checked.
    """
    setting = name.removeprefix(AWAY)
    declared = setting_of(settings, setting) if settings and setting in DECLARED else inf
    return value_fault(value, parameter_bounds()[name], setting=setting, declared=declared)


def scenario_tables(
    scenario: Scenario, settings: DuelSettings, *, kinds: Collection[str], number: int
) -> DuelScenarioTables:
    """What the next matches are drawn from, as scenario `number`; their targets are `kinds`.

    Raises ConfigurationError for an unknown target or parameter, a value that a parameter does
    not take, and weights that leave nothing to draw.
    """
    numbers = {name: KINDS.index(name) for name in kinds}
    weights = target_weights(scenario.targets, numbers, len(KINDS))
    difficulties = np.ones((len(KINDS), LEVELS))
    for name, given in scenario.difficulty.items():
        difficulties[target_number(name, numbers)] = level_weights(name, given, LEVELS)
    usual = parameter_values(settings)
    values = scenario_values(
        scenario.parameters,
        usual,
        fault=lambda name, value: parameter_fault(name, value, settings),
    )
    bounds = {
        name: one
        if name.removeprefix(AWAY) not in DECLARED
        else Bounds(one.low, usual[name], one.whole)
        for name, one in parameter_bounds().items()
    }
    return DuelScenarioTables(
        number=np.array([number]),
        kind_weights=weights,
        difficulty_weights=difficulties,
        **sampler_fields(values, bounds, PARAMETERS),
        handicap=np.array([AWAY + name in scenario.parameters for name in OF_SEATS]),
    )
