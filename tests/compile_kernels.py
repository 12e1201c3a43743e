"""Compiles the kernels of our worlds before tests need them.

Those of one world share most of their parts, which each process that compiles one compiles, too.
"""

from typing import Any

import numpy as np

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings, ObservationSettings
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.parameters import step_buffers
from aimbot_lab.worlds.registry import type_of

ARENAS = (
    ObservationSettings(),
    ObservationSettings(units=True),
    ObservationSettings(camera=CameraSettings()),
)
WORLDS: tuple[tuple[Any, str], ...] = (
    *((ArenaSettings(num_envs=1, observation=seen), "goto") for seen in ARENAS),
    (DuelSettings(num_envs=1), "duel"),
    (GorgeSettings(num_envs=1), "walk"),
)

for settings, target in WORLDS:
    kind, scenario = type_of(settings), Scenario({target: 1.0})
    world = kind.make(settings)
    world.set_scenario(scenario)
    buffers = step_buffers(world)
    world.reset(0, buffers.observations)
    still = np.zeros((len(buffers.rewards), len(world.spec.action_names)), np.float32)
    world.step(still, buffers)
    for part in kind.step_parts(world, scenario, buffers).values():
        part(still)
