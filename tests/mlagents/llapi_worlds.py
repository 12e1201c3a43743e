"""Worlds as environments of ML-Agents, for the tests beside this."""

import numpy as np

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents import ActionTuple, LabEnvironment
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from tests.worlds.race import Race

ROWS = 8
GOTO = Scenario({"goto": 1.0})


def arena(rows: int = ROWS) -> Arena:
    return Arena(ArenaSettings(num_envs=rows, time_limit=3.0))


def race(rows: int = ROWS, *, agents: int = 2, **given: object) -> LabEnvironment:
    """Runners on a line; the action 2 is a step to the right, and three of them win."""
    return LabEnvironment(Race(rows, agents), name="Race", **given)  # type: ignore[arg-type]


def to_the_right(rows: int = ROWS) -> ActionTuple:
    return ActionTuple(discrete=np.full((rows, 1), 2))


def played(env: LabEnvironment, steps: int, seed: int = 0) -> None:
    """Act evenly drawn for all agents."""
    np.random.seed(seed)
    for _ in range(steps):
        for name, spec in env.behavior_specs.items():
            env.set_actions(name, spec.action_spec.random_action(len(env.get_steps(name)[0])))
        env.step()
