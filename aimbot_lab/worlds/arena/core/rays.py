"""What the agent sees: a fan of rays against the floor's walls, obstacles and enemies.

Obstacles outside, rays inside: the inner loops have a fixed length and no branch, so that they
run on vector registers. Distances are taken relative to the agent in double precision before
they are rounded to single, so that they are as exact far from the origin as near it.
"""

import math

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.portable_math import sin_cos
from aimbot_lab.worlds.arena.core.state import (
    ENEMY_RADIUS,
    FLOOR_SIZE,
    MIDDLE_SHARE,
    RAY_LANES,
    RAY_RANGE,
    VIEW_ANGLE,
    WALL_HIT,
    ArenaState,
    ArenaTables,
    Floats32,
)

TINY = np.float32(1e-7)  # keeps a ray's direction away from 0, so that no 0 * inf appears
ZERO = np.float32(0.0)
ONE = np.float32(1.0)
NO_BIT, ONE_BIT, LAST_BIT = np.int32(0), np.int32(1), np.int32(31)
SLACK = 1e-3  # m
BITS = 8  # objects looked at together
WORD = 32  # enemies that a mask holds
LOWEST = np.array([(bits & -bits).bit_length() - 1 for bits in range(1 << BITS)])
"""Number of the lowest bit that is set."""
Extent = tuple[float, float, float, float]  # m: middle x and z from the agent, half sides


@inlined
def spread_fan(state: ArenaState, tables: ArenaTables, row: int) -> None:
    """Write the angles of `row`'s rays for the view angle and middle share now in force.

    The middle rays span their share of the view from edge to edge; the side rays go on evenly
    from there to the view's edge. Lanes beyond the last ray look straight ahead, unread.
    """
    half_view = math.radians(0.5 * state.parameters[row, VIEW_ANGLE])
    half_middle = half_view * state.parameters[row, MIDDLE_SHARE]
    sine, cosine = sin_cos(half_view)
    state.view_edge[row, 0] = cosine
    state.view_edge[row, 1] = sine
    arm = tables.middle_rays // 2
    last = arm + tables.side_rays
    for ray in range(state.ray_cos.shape[1]):
        step = ray - last
        angle = 0.0
        if 0 < abs(step) <= arm:
            angle = half_middle * abs(step) / arm
        elif arm < abs(step) <= last:
            share = (abs(step) - arm) / tables.side_rays
            angle = half_middle + (half_view - half_middle) * share
        sine, cosine = sin_cos(angle)
        state.ray_cos[row, ray] = cosine
        state.ray_sin[row, ray] = sine if step > 0 else -sine


@inlined
def ray_count(tables: ArenaTables) -> int:
    """Rays in a fan."""
    return tables.middle_rays + 2 * tables.side_rays


@inlined
def cast_rays(state: ArenaState, scratch: Floats32, row: int) -> None:
    """Write `ray_distance` and `ray_hit` of `row` for its present pose, range not applied."""
    sine = state.ahead[row, 0]
    cosine = state.ahead[row, 1]
    for first in range(0, state.ray_cos.shape[1], RAY_LANES):
        aim(state, scratch, row, first, (np.float32(sine), np.float32(cosine)))
    meet_obstacles(state, scratch, row, sine, cosine)
    meet_enemies(state, scratch, row, sine, cosine)


@inlined
def meet_obstacles(
    state: ArenaState, scratch: Floats32, row: int, sine: float, cosine: float
) -> None:
    """Shorten the rays where an obstacle is nearer.

    Those in view are found without a branch, which a processor would guess wrong every other time.
    """
    for base in range(0, state.obstacle_count[row], BITS):
        seen = 0
        for k in range(base, min(base + BITS, state.obstacle_count[row])):
            seen |= in_view(state, row, sine, cosine, obstacle_extent(state, row, k)) << (k - base)
        while seen:
            for first in range(0, state.ray_cos.shape[1], RAY_LANES):
                meet_box(state, scratch, row, base + LOWEST[seen], first)
            seen &= seen - 1


@inlined
def meet_enemies(
    state: ArenaState, scratch: Floats32, row: int, sine: float, cosine: float
) -> None:
    """Shorten the rays where a living enemy is nearer, and write which."""
    for base in range(0, state.enemy_count[row], BITS):
        seen = 0
        for k in range(base, min(base + BITS, state.enemy_count[row])):
            alive = state.enemy_hits_left[row, k] > 0
            seen |= (alive & is_disc_in_view(state, row, sine, cosine, k)) << (k - base)
        while seen:
            for first in range(0, state.ray_cos.shape[1], RAY_LANES):
                meet_disc(state, scratch, row, base + LOWEST[seen], first)
            seen &= seen - 1


@inlined
def obstacle_extent(state: ArenaState, row: int, k: int) -> Extent:
    """Middle of obstacle `k` from the agent, and its half sides."""
    box = state.obstacles
    return (
        0.5 * (box[row, k, 0] + box[row, k, 2]) - state.position[row, 0],
        0.5 * (box[row, k, 1] + box[row, k, 3]) - state.position[row, 1],
        0.5 * (box[row, k, 2] - box[row, k, 0]),
        0.5 * (box[row, k, 3] - box[row, k, 1]),
    )


@inlined
def in_view(state: ArenaState, row: int, sine: float, cosine: float, extent: Extent) -> bool:
    """Whether a box can meet a ray: not wholly behind an edge of the view.

    Errs on the side of yes.
    """
    x, z, half_x, half_z = extent
    edge_cos = state.view_edge[row, 0]
    edge_sin = state.view_edge[row, 1]
    seen = x * sine + z * cosine + abs(sine) * half_x + abs(cosine) * half_z >= -SLACK
    for side in (-1.0, 1.0):
        # Inward normal of the view's edge: the edge's direction turned towards the middle.
        normal_x = edge_sin * sine - side * edge_cos * cosine
        normal_z = edge_sin * cosine + side * edge_cos * sine
        reach = abs(normal_x) * half_x + abs(normal_z) * half_z
        seen &= x * normal_x + z * normal_z + reach >= -SLACK
    return bool(seen)


@inlined
def is_disc_in_view(state: ArenaState, row: int, sine: float, cosine: float, k: int) -> bool:
    """Whether enemy `k` can meet a ray; as `in_view`, which would take it for a square."""
    x = state.enemies[row, k, 0] - state.position[row, 0]
    z = state.enemies[row, k, 1] - state.position[row, 1]
    behind = -state.parameters[row, ENEMY_RADIUS] - SLACK
    ahead = x * sine + z * cosine
    right = x * cosine - z * sine
    inward = state.view_edge[row, 1] * ahead
    away = state.view_edge[row, 0] * abs(right)
    return (ahead >= behind) & (inward - away >= behind)


@inlined
def aim(
    state: ArenaState, scratch: Floats32, row: int, first: int, ahead: tuple[np.float32, np.float32]
) -> None:
    """Directions of one group of rays and their distances to the floor's walls."""
    sine, cosine = ahead
    west = np.float32(-state.position[row, 0])
    south = np.float32(-state.position[row, 1])
    east = np.float32(state.parameters[row, FLOOR_SIZE] - state.position[row, 0])
    north = np.float32(state.parameters[row, FLOOR_SIZE] - state.position[row, 1])
    for lane in range(RAY_LANES):
        ray = first + lane
        along_x = sine * state.ray_cos[row, ray] + cosine * state.ray_sin[row, ray]
        along_z = cosine * state.ray_cos[row, ray] - sine * state.ray_sin[row, ray]
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
def detected_enemies(state: ArenaState, tables: ArenaTables, row: int, base: int) -> int:
    """Bit k is set where a ray within range hits enemy `base + k`; WORD of them from `base` on."""
    limit = np.float32(state.parameters[row, RAY_RANGE])
    found = NO_BIT
    for ray in range(ray_count(tables)):
        hit = state.ray_hit[row, ray] - np.int32(base)
        seen = (hit >= 0) & (hit < WORD) & (state.ray_distance[row, ray] <= limit)
        found |= (ONE_BIT << (hit & LAST_BIT)) if seen else NO_BIT
    return int(found)
