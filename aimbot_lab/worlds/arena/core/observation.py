"""The observation: 13 numbers about target and agent, enemies, a picture, rays.

Enemies have columns where units are shown, a picture where there is a camera. Rays are tags, then
distances, or what ML-Agents tells of them.
"""

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.lanes import LANES, load, spread, store, where
from aimbot_lab.worlds.arena.core.camera import write_picture
from aimbot_lab.worlds.arena.core.clock import hide_fire_base, time_left
from aimbot_lab.worlds.arena.core.enemy_slots import write_enemies
from aimbot_lab.worlds.arena.core.rays import ray_count
from aimbot_lab.worlds.arena.core.reward import in_fire_base
from aimbot_lab.worlds.arena.core.state import (
    AT,
    NO_HIT,
    OWN,
    PERCEPTION,
    TAG_KINDS,
    WALL_HIT,
    ArenaState,
    ArenaTables,
    Floats32,
)

WALL_TAG, ENEMY_TAG, NO_TAG = np.float32(0.0), np.float32(1.0), np.float32(-1.0)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@inlined
def observe(
    state: ArenaState,
    tables: ArenaTables,
    observations: Floats32,
    row: int,
    plain: bool,
    sensed: bool,
) -> None:
    """Write the observation of `row` into `observations` [B, S * D]; its rays must be cast.

    Earlier observations of the episode come first, oldest first, zeros where there were none.
    `plain` may be True where `allocate.observation_kind` says so, `sensed` must be where there is a
    picture or rays are told as ML-Agents does: as constants they make code without what is not
    there, which is faster.
    """
    older = state.history.shape[1]
    newest = observations.shape[1] - older
    for column in range(older):
        observations[row, column] = state.history[row, column]
    write_head(state, observations, row, older)
    if not plain:
        if tables.recalls:
            hide_fire_base(state, observations, row, older)
        if tables.enemy_columns > 0:
            write_enemies(state, tables, observations, row, older + len(OWN))
    rays_from = older + len(OWN)
    if not plain:
        rays_from += tables.enemy_columns
        if sensed and tables.camera.channels > 0:
            rays_from = write_picture(state, tables, observations, row, rays_from)
    if sensed and tables.perception:
        write_perception(state, tables, observations, row, rays_from)
    elif tables.one_hot:
        write_one_hot(state, tables, observations, row, rays_from)
    else:
        write_labels(state, tables, observations, row, rays_from, ENEMY_TAG)
    for column in range(older):
        state.history[row, column] = observations[row, column + newest]


@inlined
def forget(state: ArenaState, row: int) -> None:
    """Empty the earlier observations, for a new episode."""
    for column in range(state.history.shape[1]):
        state.history[row, column] = 0.0


@inlined
def write_head(state: ArenaState, observations: Floats32, row: int, at: int) -> None:
    """Target and agent, from column `at` on."""
    observations[row, at + OWN.target] = state.target[row]
    observations[row, at + OWN.fire_base_x] = state.fire_base[row, 0]
    observations[row, at + OWN.fire_base_y] = 0.0
    observations[row, at + OWN.fire_base_z] = state.fire_base[row, 1]
    observations[row, at + OWN.fire_base_diameter] = state.fire_base[row, 2]
    observations[row, at + OWN.in_fire_base] = 1.0 if in_fire_base(state, row) else 0.0
    observations[row, at + OWN.time_left] = time_left(state, row)
    observations[row, at + OWN.gun_ready] = 1.0 if state.gun_ticks[row] <= 0 else 0.0
    observations[row, at + OWN.agent_x] = state.position[row, 0]
    observations[row, at + OWN.agent_y] = 0.0
    observations[row, at + OWN.agent_z] = state.position[row, 1]
    observations[row, at + OWN.cos_yaw] = state.ahead[row, 1]
    observations[row, at + OWN.sin_yaw] = state.ahead[row, 0]


@inlined
def write_labels(
    state: ArenaState,
    tables: ArenaTables,
    observations: Floats32,
    row: int,
    at: int,
    enemy_tag: np.float32,
) -> None:
    """One tag per ray from column `at` on, then one distance per ray."""
    limit = np.float32(state.parameters[row, AT.rays_range])
    rays = ray_count(tables)
    whole = rays - rays % LANES  # more lanes would write into what follows
    for ray in range(0, whole, LANES):
        distance = load(state.ray_distance, row, ray)
        seen = distance <= spread(limit)
        is_wall = load(state.ray_hit, row, ray) == spread(np.int32(WALL_HIT))
        tag = where(is_wall, spread(WALL_TAG), spread(enemy_tag))
        store(observations, row, at + ray, where(seen, tag, spread(NO_TAG)))
        store(observations, row, at + rays + ray, where(seen, distance, spread(ZERO)))
    for ray in range(whole, rays):
        near = state.ray_distance[row, ray] <= limit
        kind = WALL_TAG if state.ray_hit[row, ray] == WALL_HIT else enemy_tag
        observations[row, at + ray] = kind if near else NO_TAG
        observations[row, at + rays + ray] = state.ray_distance[row, ray] if near else ZERO


@inlined
def write_one_hot(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, at: int
) -> None:
    """Three numbers per ray, all 0 where nothing was hit, then one distance per ray."""
    limit = np.float32(state.parameters[row, AT.rays_range])
    distances_at = at + TAG_KINDS * ray_count(tables)
    for ray in range(ray_count(tables)):
        seen = state.ray_distance[row, ray] <= limit
        hit = state.ray_hit[row, ray] if seen else NO_HIT
        first = at + TAG_KINDS * ray
        observations[row, first] = ONE if hit == WALL_HIT else ZERO
        observations[row, first + 1] = ONE if hit >= 0 else ZERO
        observations[row, first + 2] = ZERO
        observations[row, distances_at + ray] = state.ray_distance[row, ray] if seen else ZERO


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
