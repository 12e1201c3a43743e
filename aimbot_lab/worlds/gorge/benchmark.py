"""What benchmarks of Gorge Walk measure: rows in full play, and the parts of their step."""

from collections.abc import Callable

import numpy as np

from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.foundation.world_type import StepParts
from aimbot_lab.worlds.gorge.core.timed_parts import begin_all, move_all, observe_all, reward_all
from aimbot_lab.worlds.gorge.gorge import Gorge


def spread_episodes(
    gorge: Gorge, scenario: Scenario, *, seed: int, play: Callable[[int], object]
) -> None:
    """Rows of `gorge` whose episodes are spread over the limit of their steps.

    Random play seldom arrives: without that spread all episodes would end in the same step, and a
    short measurement would hold either no reset or all of them.
    """
    gorge.set_scenario(scenario)
    gorge.reset(seed, step_buffers(gorge).observations)
    play(1)
    limit = gorge.settings.max_steps
    gorge.state.steps[:] = np.random.default_rng(seed).integers(limit, size=gorge.num_envs)


def step_parts(gorge: Gorge, scenario: Scenario, buffers: StepBuffers) -> StepParts:
    """The kernels of a step of `scenario`, each on all rows of `gorge`, which draws from it."""
    del scenario
    state, tables = gorge.state, gorge._tables
    every_row = buffers._replace(finished=np.ones(gorge.num_envs, np.bool_))
    return {
        "movement": lambda actions: move_all(state, tables, actions),
        "reward": lambda actions: reward_all(state, tables, actions, buffers),
        "observation": lambda _: observe_all(state, tables, buffers.observations),
        "reset": lambda _: begin_all(state, tables, every_row),
    }
