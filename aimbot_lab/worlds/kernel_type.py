"""The base of kinds of worlds that kernels step: arena, duel and Gorge Walk."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.foundation.world_type import StepParts, WorldType
from aimbot_lab.worlds.parameters import type_of


class KernelType(WorldType):
    """What such kinds of worlds have in common."""

    benched = True

    def parameter_texts(self) -> Mapping[str, str]:
        """What the setting of each parameter's name says about itself."""
        return {name: setting_text(self.settings, name) for name in self.parameters(None) or ()}

    def reward_bound(self, settings: Any) -> float:
        """The largest of the reward weights."""
        return float(max(map(abs, asdict(settings.rewards).values())))

    def warm_up(self, settings: Any) -> None:
        """Take a step of a single row, which compiles the kernels or reads them from the cache."""
        world = self.make(replace(settings, num_envs=1))
        world.set_scenario(Scenario(dict.fromkeys(self.targets(settings), 1.0)))
        buffers = step_buffers(world)
        world.reset(0, buffers.observations)
        shape = len(buffers.rewards), len(world.spec.action_names)
        world.step(np.zeros(shape, np.float32), buffers)

    def spread_episodes(
        self, world: Any, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Rows in full play, as the world spreads them over the time of their episodes."""
        world.spread_episodes(scenario, seed=seed, play=play)

    def step_parts(self, world: Any, scenario: Scenario, buffers: StepBuffers) -> StepParts:
        """The kernels of a step, each on all rows of `world`, which draws from `scenario`."""
        del scenario
        frames = world.frames  # of one with pictures, which kernels write elsewhere
        parts: StepParts = world.step_parts(buffers if frames is None else frames.buffers)
        return parts


def setting_text(settings: type[Any], name: str) -> str:
    """What the class `settings` says about its setting `name`, such as `rays.range`."""
    section, _, key = name.rpartition(".")
    kind = type_of(settings, section) if section else settings
    return str(TypeAdapter(kind).json_schema()["properties"][key]["description"])
