"""What the agent sees: a fan of rays against the floor's walls, obstacles and enemies.

Obstacles outside, rays inside: the inner loops have a fixed length and no branch, so that they
run on vector registers. Distances are taken relative to the agent in double precision before
they are rounded to single, so that they are as exact far from the origin as near it.
"""

import math

import numpy as np

from aimbot_lab.foundation.jit import inlined
from aimbot_lab.sim.core.state import (
    ENEMY_RADIUS,
    RAY_LANES,
    RAY_RANGE,
    WALL_HIT,
    ArenaState,
    ArenaTables,
    Floats32,
)

TINY = np.float32(1e-7)  # keeps a ray's direction away from 0, so that no 0 * inf appears
ZERO = np.float32(0.0)
ONE = np.float32(1.0)
FAR = np.float32(1e30)


@inlined
def cast_rays(state: ArenaState, tables: ArenaTables, scratch: Floats32, row: int) -> None:
    """Write `ray_distance` and `ray_hit` of `row` for its present pose, range not applied."""
    sine = math.sin(state.yaw[row])
    cosine = math.cos(state.yaw[row])
    for first in range(0, tables.ray_cos.size, RAY_LANES):
        aim(state, tables, scratch, row, first, np.float32(sine), np.float32(cosine))
    for k in range(state.obstacle_count[row]):
        if box_in_view(state, tables, row, k, sine, cosine):
            for first in range(0, tables.ray_cos.size, RAY_LANES):
                meet_box(state, scratch, row, k, first)
    for k in range(state.enemy_count[row]):
        if state.enemy_hits_left[row, k] > 0 and disc_in_view(state, tables, row, k, sine, cosine):
            for first in range(0, tables.ray_cos.size, RAY_LANES):
                meet_disc(state, scratch, row, k, first)


@inlined
def box_in_view(
    state: ArenaState, tables: ArenaTables, row: int, k: int, sine: float, cosine: float
) -> bool:
    """Whether obstacle `k` reaches into the view: not wholly behind one of its three edges."""
    half_x = 0.5 * (state.obstacles[row, k, 2] - state.obstacles[row, k, 0])
    half_z = 0.5 * (state.obstacles[row, k, 3] - state.obstacles[row, k, 1])
    x = 0.5 * (state.obstacles[row, k, 0] + state.obstacles[row, k, 2]) - state.position[row, 0]
    z = 0.5 * (state.obstacles[row, k, 1] + state.obstacles[row, k, 3]) - state.position[row, 1]
    return in_view(tables, x, z, half_x, half_z, sine, cosine)


@inlined
def disc_in_view(
    state: ArenaState, tables: ArenaTables, row: int, k: int, sine: float, cosine: float
) -> bool:
    """Whether enemy `k` (its bounding square) reaches into the view."""
    radius = state.parameters[row, ENEMY_RADIUS]
    x = state.enemies[row, k, 0] - state.position[row, 0]
    z = state.enemies[row, k, 1] - state.position[row, 1]
    return in_view(tables, x, z, radius, radius, sine, cosine)


@inlined
def in_view(
    tables: ArenaTables,
    x: float,
    z: float,
    half_x: float,
    half_z: float,
    sine: float,
    cosine: float,
) -> bool:
    """Whether a box at (x, z) from the agent can meet a ray; errs on the side of yes."""
    slack = 1e-3
    if x * sine + z * cosine + abs(sine) * half_x + abs(cosine) * half_z < -slack:
        return False
    edge_cos = tables.view_edge[0]
    edge_sin = tables.view_edge[1]
    for side in (-1.0, 1.0):
        # Inward normal of the view's edge: the edge's direction turned towards the middle.
        normal_x = edge_sin * sine - side * edge_cos * cosine
        normal_z = edge_sin * cosine + side * edge_cos * sine
        if x * normal_x + z * normal_z + abs(normal_x) * half_x + abs(normal_z) * half_z < -slack:
            return False
    return True


@inlined
def aim(
    state: ArenaState,
    tables: ArenaTables,
    scratch: Floats32,
    row: int,
    first: int,
    sine: np.float32,
    cosine: np.float32,
) -> None:
    """Directions of one group of rays and their distances to the floor's walls."""
    west = np.float32(-state.position[row, 0])
    south = np.float32(-state.position[row, 1])
    east = np.float32(tables.floor_size - state.position[row, 0])
    north = np.float32(tables.floor_size - state.position[row, 1])
    for lane in range(RAY_LANES):
        ray = first + lane
        along_x = sine * tables.ray_cos[ray] + cosine * tables.ray_sin[ray]
        along_z = cosine * tables.ray_cos[ray] - sine * tables.ray_sin[ray]
        along_x = (TINY if along_x >= ZERO else -TINY) if abs(along_x) < TINY else along_x
        along_z = (TINY if along_z >= ZERO else -TINY) if abs(along_z) < TINY else along_z
        inverse_x = ONE / along_x
        inverse_z = ONE / along_z
        to_x = (east if along_x > ZERO else west) * inverse_x
        to_z = (north if along_z > ZERO else south) * inverse_z
        scratch[0, ray] = along_x
        scratch[1, ray] = along_z
        scratch[2, ray] = inverse_x
        scratch[3, ray] = inverse_z
        state.ray_distance[row, ray] = to_x if to_x < to_z else to_z
        state.ray_hit[row, ray] = WALL_HIT


@inlined
def meet_box(state: ArenaState, scratch: Floats32, row: int, k: int, first: int) -> None:
    """Shorten one group of rays where obstacle `k` is nearer (slab method)."""
    min_x = np.float32(state.obstacles[row, k, 0] - state.position[row, 0])
    min_z = np.float32(state.obstacles[row, k, 1] - state.position[row, 1])
    max_x = np.float32(state.obstacles[row, k, 2] - state.position[row, 0])
    max_z = np.float32(state.obstacles[row, k, 3] - state.position[row, 1])
    for lane in range(RAY_LANES):
        ray = first + lane
        x_1 = min_x * scratch[2, ray]
        x_2 = max_x * scratch[2, ray]
        z_1 = min_z * scratch[3, ray]
        z_2 = max_z * scratch[3, ray]
        near_x, far_x = (x_1, x_2) if x_1 < x_2 else (x_2, x_1)
        near_z, far_z = (z_1, z_2) if z_1 < z_2 else (z_2, z_1)
        near = near_x if near_x > near_z else near_z
        far = far_x if far_x < far_z else far_z
        old = state.ray_distance[row, ray]
        state.ray_distance[row, ray] = near if (near <= far and near > ZERO and near < old) else old


@inlined
def meet_disc(state: ArenaState, scratch: Floats32, row: int, k: int, first: int) -> None:
    """Shorten one group of rays where enemy `k` is nearer than everything before it.

    With c the centre and d the ray's direction: hit where |c x d| <= r, at c.d - sqrt(r^2 -
    |c x d|^2).
    """
    x = np.float32(state.enemies[row, k, 0] - state.position[row, 0])
    z = np.float32(state.enemies[row, k, 1] - state.position[row, 1])
    radius = np.float32(state.parameters[row, ENEMY_RADIUS])
    index = np.int32(k)
    for lane in range(RAY_LANES):
        ray = first + lane
        along = x * scratch[0, ray] + z * scratch[1, ray]
        across = x * scratch[1, ray] - z * scratch[0, ray]
        rest = radius * radius - across * across
        near = along - np.sqrt(rest if rest > ZERO else ZERO)
        old = state.ray_distance[row, ray]
        nearer = rest >= ZERO and near > ZERO and near < old
        state.ray_distance[row, ray] = near if nearer else old
        state.ray_hit[row, ray] = index if nearer else state.ray_hit[row, ray]


@inlined
def detected_enemies(state: ArenaState, tables: ArenaTables, row: int) -> int:
    """Bit k is set where a ray within range hits enemy `k`."""
    limit = np.float32(state.parameters[row, RAY_RANGE])
    found = 0
    for ray in range(tables.ray_count):
        if state.ray_hit[row, ray] >= 0 and state.ray_distance[row, ray] <= limit:
            found |= 1 << state.ray_hit[row, ray]
    return found
