"""What benchmarks of the arena measure: rows in full play, and the parts of their step."""

from collections.abc import Callable

import numpy as np

from aimbot_lab.foundation.world import Scenario, StepBuffers
from aimbot_lab.foundation.world_type import StepParts
from aimbot_lab.worlds.arena.allocate import new_tables
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.core.timed_parts import (
    begin_all,
    cast_all_rays,
    move_all,
    observe_all,
    reward_all,
)
from aimbot_lab.worlds.arena.presets import chosen_presets
from aimbot_lab.worlds.arena.scenario import scenario_tables


def spread_episodes(
    arena: Arena, scenario: Scenario, *, seed: int, play: Callable[[int], object]
) -> None:
    """Rows of `arena`, spread over the floor and over the time of their episodes.

    First episodes are of Free, since those begin at random places; then come staggered ones.
    Without that spread all episodes would end in the same step, and a short measurement would
    hold either no reset or all of them.
    """
    state, settings = arena.state, arena.settings
    decisions = round(settings.time_limit / settings.decision_seconds)
    arena.set_scenario(Scenario({"free": 1.0}))
    arena.reset(seed, np.empty((arena.num_envs, len(arena.spec.observation_names)), np.float32))
    arena.set_scenario(scenario)
    state.decisions[:] = decisions
    play(1)
    state.decisions[:] = np.random.default_rng(seed).integers(decisions, size=len(state.yaw))


def step_parts(arena: Arena, scenario: Scenario, buffers: StepBuffers) -> StepParts:
    """The kernels of a step of `scenario`, each on all rows of `arena`, which draws from it."""
    state, settings = arena.state, arena.settings
    tables = new_tables(settings, chosen_presets(settings, None))
    drawn_from = scenario_tables(scenario, settings, tables.presets, number=1)
    tables = tables._replace(scenario=drawn_from)
    scratch = np.zeros((4, state.ray_cos.shape[1]), np.float32)
    span = 0, settings.num_envs
    every_row = buffers._replace(finished=np.ones(settings.num_envs, np.bool_))
    return {
        "rays": lambda _: cast_all_rays(state, scratch, span),
        "movement": lambda actions: move_all(state, actions, span),
        "reward": lambda actions: reward_all(state, tables, actions, buffers, span),
        "observation": lambda _: observe_all(state, tables, buffers.observations, span),
        "reset": lambda _: begin_all(state, tables, scratch, every_row, span),
    }
