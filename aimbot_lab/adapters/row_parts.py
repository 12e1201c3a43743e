"""States of environments that share out the rows of one among them, joined and cut again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.adapters.sb3 import WorldVecEnv

BY_ROW = ("returns", "seen")  # arrays beside the world's; of the running scale of rewards, and seen


def joined_states(env: WorldVecEnv, states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What `env.state()` would be with all rows, from the `states` of all parts in their order."""
    world: Any = env.world  # a worlds.row_parts.PartWorld
    rewards = [state["rewards"] for state in states]
    return {
        **_joined(states),
        "world": world.joined([state["world"] for state in states]),
        "rewards": _joined(rewards),
    }


def part_of_state(env: WorldVecEnv, whole: Mapping[str, Any]) -> dict[str, Any]:
    """Of the state of all rows that of those which `env` has."""
    world: Any = env.world
    rows = slice(world.first_row, world.first_row + env.num_envs)
    return {
        **_cut(whole, rows),
        "world": world.part_of(whole["world"]),
        "rewards": _cut(whole["rewards"], rows),
    }


def _joined(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: np.concatenate([state[name] for state in states]) if name in BY_ROW else value
        for name, value in states[0].items()
    }


def _cut(state: Mapping[str, Any], rows: slice) -> dict[str, Any]:
    return {name: value[rows] if name in BY_ROW else value for name, value in state.items()}
