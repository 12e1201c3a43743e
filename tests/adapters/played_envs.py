"""Scenarios of the arena, and how tests play them through Gymnasium and stable-baselines3."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings

GOTO = {"targets": {"goto": 1.0}}
MIX = {"targets": {"free": 1.0, "goto": 1.0, "attack": 1.0}}
ROWS, BINS = 8, (-5.0, -1.0, 0.0, 1.0, 5.0)
STAND = np.array([0, 0, 0, 5])  # aim bin 5 of 11 is 0


def held_actions(vector: VectorEnv, steps: int, *, seed: int = 0):
    random = np.random.default_rng(seed)
    sizes = vector.single_action_space.nvec
    for step in range(steps):
        if step % 10 == 0:
            actions = random.integers(0, sizes, (vector.num_envs, len(sizes)))
        yield actions


def play(env: gymnasium.Env, actions) -> list[tuple[Any, ...]]:
    """What `env` returns for each of `actions`, reset where an episode ended."""
    told = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        first = env.reset()[0] if terminated else observation
        told.append((first, reward, terminated, truncated, observation, info))
    return told


def new_adapter(
    target: str = "goto", *, kind: type[WorldVecEnv] = WorldVecEnv, **arguments: Any
) -> WorldVecEnv:
    """stable-baselines3's view of `ROWS` arenas whose episodes end within 20 decisions."""
    world = Arena(ArenaSettings(num_envs=ROWS, time_limit=2.0))
    world.set_scenario(Scenario({target: 1.0}))
    return kind(world, BINS, seed=3, **arguments)
