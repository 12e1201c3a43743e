"""The observation: 13 numbers about target and agent, then ray tags, then ray distances."""

import math

import numpy as np

from aimbot_lab.foundation.jit import inlined
from aimbot_lab.sim.core.clock import time_left
from aimbot_lab.sim.core.reward import in_fire_base
from aimbot_lab.sim.core.state import (
    NO_HIT,
    RAY_RANGE,
    WALL_HIT,
    ArenaState,
    ArenaTables,
    Floats32,
)

RAYS_FROM = 13  # first index after target and agent
WALL_TAG, ENEMY_TAG, NO_TAG = np.float32(0.0), np.float32(1.0), np.float32(-1.0)
TAG_KINDS = 3  # columns of a one-hot tag: wall, enemy, player
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@inlined
def observe(state: ArenaState, tables: ArenaTables, observations: Floats32, row: int) -> None:
    """Write the observation of `row` into `observations` [B, D]; its rays must be cast."""
    observations[row, 0] = state.target[row]
    observations[row, 1] = state.fire_base[row, 0]
    observations[row, 2] = 0.0
    observations[row, 3] = state.fire_base[row, 1]
    observations[row, 4] = state.fire_base[row, 2]
    observations[row, 5] = 1.0 if in_fire_base(state, row) else 0.0
    observations[row, 6] = time_left(state, row)
    observations[row, 7] = 1.0 if state.gun_ticks[row] <= 0 else 0.0
    observations[row, 8] = state.position[row, 0]
    observations[row, 9] = 0.0
    observations[row, 10] = state.position[row, 1]
    observations[row, 11] = math.cos(state.yaw[row])
    observations[row, 12] = math.sin(state.yaw[row])
    limit = np.float32(state.parameters[row, RAY_RANGE])
    if tables.one_hot:
        write_one_hot(state, tables, observations, row, limit)
    else:
        write_labels(state, tables, observations, row, limit)


@inlined
def write_labels(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, limit: np.float32
) -> None:
    """One tag per ray, then one distance per ray."""
    for ray in range(tables.ray_count):
        seen = state.ray_distance[row, ray] <= limit
        tag = WALL_TAG if state.ray_hit[row, ray] == WALL_HIT else ENEMY_TAG
        observations[row, RAYS_FROM + ray] = tag if seen else NO_TAG
        distance = state.ray_distance[row, ray] if seen else ZERO
        observations[row, RAYS_FROM + tables.ray_count + ray] = distance


@inlined
def write_one_hot(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, limit: np.float32
) -> None:
    """Three numbers per ray, all 0 where nothing was hit, then one distance per ray."""
    distances_from = RAYS_FROM + TAG_KINDS * tables.ray_count
    for ray in range(tables.ray_count):
        seen = state.ray_distance[row, ray] <= limit
        hit = state.ray_hit[row, ray] if seen else NO_HIT
        first = RAYS_FROM + TAG_KINDS * ray
        observations[row, first] = ONE if hit == WALL_HIT else ZERO
        observations[row, first + 1] = ONE if hit >= 0 else ZERO
        observations[row, first + 2] = ZERO
        observations[row, distances_from + ray] = state.ray_distance[row, ray] if seen else ZERO
