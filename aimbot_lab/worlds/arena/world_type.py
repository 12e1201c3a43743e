"""The arena as a kind of world: what is known of it before one is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.world import (
    BatchWorld,
    Scenario,
    StepBuffers,
    WorldSpec,
    new_step_buffers,
)
from aimbot_lab.foundation.world_type import Bounds, MakePlayer, RandomAgent, StepParts, WorldType
from aimbot_lab.worlds.arena.greedy import GreedyAgent
from aimbot_lab.worlds.arena.presets import OWN_PRESETS, lacking_presets
from aimbot_lab.worlds.arena.replays import ArenaReplays
from aimbot_lab.worlds.arena.scenario import (
    DECLARED,
    DIFFICULTIES,
    GAPS,
    crowded_floor,
    parameter_bounds,
    parameter_fault,
)
from aimbot_lab.worlds.arena.scenes.world_scenes import ArenaScenes
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec, observation_width


class ArenaType(WorldType):
    """The FPS arena."""

    name = "arena"
    settings = ArenaSettings
    files = OWN_PRESETS
    benched = True
    shape_keys = ("rays", "observation", "stacked_vectors", "mouse_limit")
    bounding_keys = ("rays", *DECLARED, *GAPS)
    replays = ArenaReplays()
    scenes = ArenaScenes()
    gymnasium_ids = MappingProxyType(
        {
            "aimbot_lab/Goto-v0": {"goto": 1.0},
            "aimbot_lab/Attack-v0": {"attack": 1.0},
            "aimbot_lab/Free-v0": {"free": 1.0},
            "aimbot_lab/Mix-v0": {"goto": 1.0, "attack": 1.0, "free": 1.0},
        }
    )

    def spec(self, settings: ArenaSettings) -> WorldSpec:
        """The shape of an arena with `settings`."""
        return arena_spec(settings)

    def make(self, settings: ArenaSettings) -> BatchWorld:
        """An arena with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.arena.arena import Arena

        return Arena(settings)

    def targets(self, settings: ArenaSettings | None) -> Mapping[str, int]:
        """All but the stay, which never ends."""
        del settings
        return {name: levels for name, levels in DIFFICULTIES.items() if name != "stay"}

    def default_target(self) -> str:
        """Goto, which is learned soonest."""
        return "goto"

    def hardest_target(self) -> str:
        """Attack, in which both ways and shots count."""
        return "attack"

    def baselines(self, settings: ArenaSettings) -> Mapping[str, MakePlayer]:
        """A random player and a greedy one."""
        angles, turn = settings.rays.angles, settings.mouse_factor
        return {
            "random": lambda world, seed: RandomAgent(world.spec, seed),
            "greedy": lambda world, _seed: GreedyAgent(
                world.spec, ray_angles=angles, turn_per_unit=turn
            ),
        }

    def observation_size(self, settings: ArenaSettings) -> int:
        """Numbers of an observation, with earlier ones that are handed out again."""
        return settings.stacked_vectors * observation_width(settings)

    def parameters(self, settings: ArenaSettings | None) -> Mapping[str, Bounds]:
        """Every number that an episode depends on."""
        del settings
        return parameter_bounds()

    def parameter_texts(self) -> Mapping[str, str]:
        """What the setting of each parameter's name says about itself."""
        return {name: _description(name) for name in parameter_bounds()}

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: ArenaSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those that `settings` declare."""
        return parameter_fault(name, value, settings)

    def together_fault(
        self, given: Mapping[str, ParameterValue], settings: ArenaSettings
    ) -> str | None:
        """Whether a block and the enemies fit on the floor."""
        return crowded_floor(given, settings)

    def drawing_fault(
        self, settings: ArenaSettings, target: str, weights: Sequence[float]
    ) -> str | None:
        """Whether each difficulty that has a weight has a block, where no shipped ones are."""
        lacking = lacking_presets(settings, target, weights)
        if not lacking:
            return None
        where = "env.shipped_presets is false, and env.presets holds none"
        return f"no {target} block of difficulty {', '.join(map(str, lacking))} is there: {where}"

    def reward_bound(self, settings: ArenaSettings) -> float:
        """The largest of the reward weights."""
        return float(max(map(abs, asdict(settings.rewards).values())))

    def warm_up(self, settings: ArenaSettings) -> None:
        """Take a step of a single row, which compiles the kernels or reads them from the cache."""
        world = self.make(replace(settings, num_envs=1))
        world.set_scenario(Scenario({"goto": 1.0}))
        buffers = new_step_buffers(1, len(world.spec.observation_names))
        world.reset(0, buffers.observations)
        world.step(np.zeros((1, 4), np.float32), buffers)

    def spread_episodes(
        self, world: Any, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Rows in full play, over the floor and over the time of their episodes."""
        from aimbot_lab.worlds.arena.benchmark import spread_episodes

        spread_episodes(world, scenario, seed=seed, play=play)

    def step_parts(self, world: Any, scenario: Scenario, buffers: StepBuffers) -> StepParts:
        """The kernels of a step."""
        from aimbot_lab.worlds.arena.benchmark import step_parts

        return step_parts(world, scenario, buffers)


def _description(parameter: str) -> str:
    """What the arena's setting of that name says about itself."""
    *sections, key = parameter.split(".")
    kind: Any = ArenaSettings
    for section in sections:
        kind = next(field.type for field in fields(kind) if field.name == section)
    assert is_dataclass(kind)
    properties = TypeAdapter(kind).json_schema()["properties"]
    return str(properties[key]["description"])


ARENA = ArenaType()
