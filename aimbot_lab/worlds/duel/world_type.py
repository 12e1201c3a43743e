"""The duel as a kind of world: what is known of it before one is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.world import BatchWorld, Scenario, StepBuffers, WorldSpec, step_buffers
from aimbot_lab.foundation.world_type import Bounds, MakePlayer, Opponents, StepParts, WorldType
from aimbot_lab.worlds.duel.core.state import AWAY, LEVELS
from aimbot_lab.worlds.duel.kinds import LEARNED, SCRIPTS, TARGET
from aimbot_lab.worlds.duel.layouts import OWN_LAYOUTS, lacking_fault
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.replays import DuelReplays
from aimbot_lab.worlds.duel.scenario import (
    DECLARED,
    parameter_bounds,
    parameter_fault,
)
from aimbot_lab.worlds.duel.scenes import DuelScenes
from aimbot_lab.worlds.duel.settings import DuelSettings, SelfPlayDuelSettings
from aimbot_lab.worlds.duel.spec import duel_spec, targets_of


class DuelType(WorldType):
    """Two agents in one hall."""

    name = "duel"
    settings = DuelSettings
    files = OWN_LAYOUTS
    benched = True
    shape_keys = ("rays", "observation", "observed_parameters", "mouse_limit")
    bounding_keys = ("rays", *DECLARED)
    replays = DuelReplays()
    scenes = DuelScenes()
    self_play_targets = LEARNED

    def spec(self, settings: DuelSettings) -> WorldSpec:
        """The shape of a duel with `settings`."""
        return duel_spec(settings)

    def make(self, settings: DuelSettings) -> BatchWorld:
        """A duel with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.duel.duel import Duel
        from aimbot_lab.worlds.duel.opposed import OpposedWorld

        return Duel(settings) if settings.learner == "both" else OpposedWorld(settings)

    def rows(self, settings: DuelSettings) -> int:
        """Matches, and once more those that are mirrored, whose away seats are rows as well."""
        mirrored = settings.mirrored if isinstance(settings, SelfPlayDuelSettings) else 0
        return settings.num_envs + mirrored

    def single_settings(self, settings: DuelSettings) -> DuelSettings:
        """`settings` with home as the only learner."""
        return replace(settings, learner="home")

    def match_settings(self, settings: DuelSettings) -> DuelSettings:
        """`settings` with both agents played from outside."""
        return replace(settings, learner="both")

    def self_play_settings(self, settings: DuelSettings, share: float) -> SelfPlayDuelSettings:
        """The duel with this `share` of its matches mirrored."""
        own = {one.name: getattr(settings, one.name) for one in fields(DuelSettings)}
        mirrored = round(share * settings.num_envs)
        return SelfPlayDuelSettings(**{**own, "learner": "home"}, mirrored=mirrored)

    def make_opposed(self, settings: SelfPlayDuelSettings, opponents: Opponents) -> BatchWorld:
        """A duel against `opponents`, not yet reset."""
        from aimbot_lab.worlds.duel.opposed import OpposedWorld

        return OpposedWorld(settings, opponents=opponents, mirrored=settings.mirrored)

    def targets(self, settings: DuelSettings | None) -> Mapping[str, int]:
        """The duel itself where both agents learn, else who sits opposite; without settings all."""
        names = (TARGET, *SCRIPTS) if settings is None else targets_of(settings)
        return dict.fromkeys(names, LEVELS)

    def baselines(self, settings: DuelSettings) -> Mapping[str, MakePlayer]:
        """Scripted players, from the weakest to the strongest; each plays all seats."""
        return make_players(settings)

    def parameters(self, settings: DuelSettings | None) -> Mapping[str, Bounds]:
        """Every number that a match depends on."""
        del settings
        return parameter_bounds()

    def parameter_texts(self) -> Mapping[str, str]:
        """What the setting of each parameter's name says about itself."""
        return {name: _description(name) for name in parameter_bounds()}

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: DuelSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those that `settings` declare."""
        return parameter_fault(name, value, settings)

    def drawing_fault(
        self, settings: DuelSettings, target: str, weights: Sequence[float]
    ) -> str | None:
        """Whether each difficulty has a layout, where no shipped ones are."""
        del target, weights
        return lacking_fault(settings)

    def reward_bound(self, settings: DuelSettings) -> float:
        """The largest of the reward weights."""
        return float(max(map(abs, asdict(settings.rewards).values())))

    def warm_up(self, settings: DuelSettings) -> None:
        """Step a single match, which compiles the kernels or reads them from the cache."""
        world = self.make(replace(settings, num_envs=1))
        world.set_scenario(Scenario(dict.fromkeys(world.spec.targets, 1.0)))
        buffers = step_buffers(world)
        world.reset(0, buffers.observations)
        world.step(np.zeros((len(buffers.rewards), 4), np.float32), buffers)

    def spread_episodes(
        self, world: Any, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Matches in full play, over the hall and over the time of their episodes."""
        world.set_scenario(scenario)
        world.reset(seed, step_buffers(world).observations)
        play(1)
        decisions = world.state.seats.decisions
        spread = np.random.default_rng(seed).integers(world.spec.max_steps, size=world.num_envs)
        decisions[:] = np.tile(spread, 2)

    def step_parts(self, world: Any, scenario: Scenario, buffers: StepBuffers) -> StepParts:
        """The kernels of a step."""
        from aimbot_lab.worlds.duel.benchmark import step_parts

        return step_parts(world, scenario, buffers)


def _description(parameter: str) -> str:
    """What the duel's setting of that name says about itself."""
    plain = parameter.removeprefix(AWAY)
    *sections, key = plain.split(".")
    kind: Any = DuelSettings
    for section in sections:
        kind = next(field.type for field in fields(kind) if field.name == section)
    assert is_dataclass(kind)
    text = str(TypeAdapter(kind).json_schema()["properties"][key]["description"])
    return text if plain == parameter else f"The away agent's: {text}"


DUEL = DuelType()
