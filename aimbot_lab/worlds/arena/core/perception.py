"""Rays as ML-Agents' RayPerceptionSensor tells them, in its order."""

import numpy as np

from aimbot_lab.foundation.kernels.jit import called
from aimbot_lab.worlds.arena.core.rays import ray_count
from aimbot_lab.worlds.arena.core.state import (
    AT,
    PERCEPTION,
    WALL_HIT,
    ArenaState,
    ArenaTables,
    Floats32,
)

ZERO, ONE = np.float32(0.0), np.float32(1.0)


@called
def write_perception(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, at: int
) -> None:
    """Write five numbers a ray from column `at` on; the rays must be cast.

    A one-hot tag (wall, enemy, player), 1 where the ray met nothing, the share of its length at
    which it met something, 1 where it did not. The middle ray comes first, then the next one to
    its right, to its left, and so on (RayPerceptionSensor.cs of com.unity.ml-agents).
    """
    limit = np.float32(state.parameters[row, AT.rays_range])
    rays = ray_count(tables)
    for place in range(rays):
        step = (place + 1) // 2
        ray = rays // 2 + (step if place % 2 == 1 else -step)
        seen = state.ray_distance[row, ray] <= limit
        is_wall = state.ray_hit[row, ray] == WALL_HIT
        first = at + PERCEPTION * place
        observations[row, first] = ONE if seen and is_wall else ZERO
        observations[row, first + 1] = ONE if seen and not is_wall else ZERO
        observations[row, first + 2] = ZERO
        observations[row, first + 3] = ZERO if seen else ONE
        observations[row, first + 4] = state.ray_distance[row, ray] / limit if seen else ONE
