"""What rays and shots hit: the fan of rays that the agent sees by, and the gun.

Obstacles outside, rays inside, eight of them at once and without a branch. Distances are taken
relative to the agent in double precision before they are rounded to single, so that they are as
exact far from the origin as near it.
"""

import math
from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.lanes import LANES, load, root, spread, store, where
from aimbot_lab.foundation.kernels.rng import sin_cos
from aimbot_lab.worlds.arena.core.state import (
    AT,
    TARGET,
    WALL_HIT,
    ArenaState,
    ArenaTables,
    Floats32,
)

NEVER = 1e30  # m, where a line meets nothing
MISSED, HIT_OTHER, HIT_TARGET = range(3)


@inlined
def line_to_box(
    x: float, z: float, along_x: float, along_z: float, box: tuple[float, float, float, float]
) -> float:
    """Metres from (x, z) along a unit direction to `box` [4], or NEVER (slab method)."""
    near, far = -NEVER, NEVER
    if along_x != 0.0:
        first, second = (box[0] - x) / along_x, (box[2] - x) / along_x
        near = max(near, min(first, second))
        far = min(far, max(first, second))
    elif x < box[0] or x > box[2]:
        return NEVER
    if along_z != 0.0:
        first, second = (box[1] - z) / along_z, (box[3] - z) / along_z
        near = max(near, min(first, second))
        far = min(far, max(first, second))
    elif z < box[1] or z > box[3]:
        return NEVER
    return near if near <= far and near > 0.0 else NEVER


@inlined
def line_to_wall(state: ArenaState, row: int, along_x: float, along_z: float) -> float:
    """Metres from the agent along a unit direction to the floor's edge."""
    size = state.parameters[row, AT.floor_size]
    distance = NEVER
    if along_x != 0.0:
        distance = ((size if along_x > 0.0 else 0.0) - state.position[row, 0]) / along_x
    if along_z != 0.0:
        edge = size if along_z > 0.0 else 0.0
        distance = min(distance, (edge - state.position[row, 1]) / along_z)
    return distance


@inlined
def line_to_obstacle(state: ArenaState, row: int, along_x: float, along_z: float) -> float:
    """Metres from the agent along a unit direction to the nearest obstacle, or NEVER."""
    distance = NEVER
    for k in range(state.obstacle_count[row]):
        box = (
            state.obstacles[row, k, 0],
            state.obstacles[row, k, 1],
            state.obstacles[row, k, 2],
            state.obstacles[row, k, 3],
        )
        met = line_to_box(state.position[row, 0], state.position[row, 1], along_x, along_z, box)
        distance = min(distance, met)
    return distance


@inlined
def is_target(state: ArenaState, row: int, k: int) -> bool:
    """Whether enemy `k` counts: all in Free, those that stand in the FireBase in Attack.

    Which stand in it was settled where the preset was read: on the floor, rounding may put one
    on the rim outside.
    """
    if state.target[row] == TARGET.free:
        return True
    return bool(state.target[row] == TARGET.attack and state.enemy_is_target[row, k])


@inlined
def shoot(state: ArenaState, row: int, attack: int) -> tuple[bool, int]:
    """(whether a shot was fired, what it hit); takes a hit off the first enemy on the line."""
    if not fires(state, row, attack):
        return False, MISSED
    ahead_x, ahead_z = state.ahead[row, 0], state.ahead[row, 1]
    return True, strike(state, row, line_to_obstacle(state, row, ahead_x, ahead_z))


@inlined
def fires(state: ArenaState, row: int, attack: int) -> bool:
    """Whether a shot is fired, which keeps the gun busy from now on."""
    if attack == 0 or state.gun_ticks[row] > 0:
        return False
    cooldown = state.parameters[row, AT.gun_cooldown] / state.parameters[row, AT.fixed_timestep]
    state.gun_ticks[row] = int(round(cooldown))
    return True


@inlined
def strike(state: ArenaState, row: int, reach: float) -> int:
    """What a shot hits that no obstacle stops within `reach` metres; takes a hit off it."""
    sine = state.ahead[row, 0]
    cosine = state.ahead[row, 1]
    reach = min(line_to_wall(state, row, sine, cosine), reach)
    chosen = -1
    radius = state.parameters[row, AT.enemy_radius]
    for k in range(state.enemy_count[row]):
        if state.enemy_hits_left[row, k] > 0:
            x = state.enemies[row, k, 0] - state.position[row, 0]
            z = state.enemies[row, k, 1] - state.position[row, 1]
            across = x * cosine - z * sine
            rest = radius * radius - across * across
            along = x * sine + z * cosine
            if rest >= 0.0 and along > 0.0 and along - math.sqrt(rest) < reach:
                reach = along - math.sqrt(rest)
                chosen = k
    if chosen < 0 or reach > state.parameters[row, AT.gun_range]:
        return MISSED
    state.enemy_hits_left[row, chosen] -= 1
    return HIT_TARGET if is_target(state, row, chosen) else HIT_OTHER


@inlined
def cool_down(state: ArenaState, row: int) -> None:
    """Let one decision's ticks pass for the gun."""
    left = state.gun_ticks[row] - int(state.parameters[row, AT.decision_period])
    state.gun_ticks[row] = max(left, 0)


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
Box = tuple[float, float, float, float]  # m: least x and z, greatest x and z


@inlined
def spread_fan(state: ArenaState, tables: ArenaTables, row: int) -> None:
    """Write the angles of `row`'s rays for the view angle and middle share now in force.

    The middle rays span their share of the view from edge to edge; the side rays go on evenly
    from there to the view's edge. Lanes beyond the last ray look straight ahead, unread.
    """
    half_view = math.radians(0.5 * state.parameters[row, AT.rays_view_angle])
    half_middle = half_view * state.parameters[row, AT.rays_middle_share]
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
    aim(state, scratch, row)
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
            meet_box(state, scratch, row, obstacle(state, row, base + LOWEST[seen]))
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
            meet_disc(state, scratch, row, base + LOWEST[seen])
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
    behind = -state.parameters[row, AT.enemy_radius] - SLACK
    ahead = x * sine + z * cosine
    right = x * cosine - z * sine
    inward = state.view_edge[row, 1] * ahead
    away = state.view_edge[row, 0] * abs(right)
    return (ahead >= behind) & (inward - away >= behind)


@inlined
def off_zero(along: Any) -> Any:
    """Parts of directions, at least TINY long."""
    tiny = spread(TINY)
    least = where(along >= spread(ZERO), tiny, spread(-TINY))
    return where(abs(along) < tiny, least, along)


@inlined
def aim(state: ArenaState, scratch: Floats32, row: int) -> None:
    """Directions of the rays and their distances to the floor's walls."""
    sine = spread(np.float32(state.ahead[row, 0]))
    cosine = spread(np.float32(state.ahead[row, 1]))
    west = spread(np.float32(-state.position[row, 0]))
    south = spread(np.float32(-state.position[row, 1]))
    east = spread(np.float32(state.parameters[row, AT.floor_size] - state.position[row, 0]))
    north = spread(np.float32(state.parameters[row, AT.floor_size] - state.position[row, 1]))
    zero, one = spread(ZERO), spread(ONE)
    for first in range(0, state.ray_cos.shape[1], LANES):
        ray_cos, ray_sin = load(state.ray_cos, row, first), load(state.ray_sin, row, first)
        along_x = off_zero(sine * ray_cos + cosine * ray_sin)
        along_z = off_zero(cosine * ray_cos - sine * ray_sin)
        inverse_x, inverse_z = one / along_x, one / along_z
        to_x = where(along_x > zero, east, west) * inverse_x
        to_z = where(along_z > zero, north, south) * inverse_z
        store(scratch, 0, first, along_x)
        store(scratch, 1, first, along_z)
        store(scratch, 2, first, inverse_x)
        store(scratch, 3, first, inverse_z)
        store(state.ray_distance, row, first, where(to_x < to_z, to_x, to_z))
        store(state.ray_hit, row, first, spread(np.int32(WALL_HIT)))


@inlined
def obstacle(state: ArenaState, row: int, k: int) -> Box:
    """Obstacle `k`, in metres: least x and z, greatest x and z."""
    box = state.obstacles
    return box[row, k, 0], box[row, k, 1], box[row, k, 2], box[row, k, 3]


@inlined
def meet_box(state: ArenaState, scratch: Floats32, row: int, box: Box) -> None:
    """Shorten the rays where `box` is nearer (slab method)."""
    at_x, at_z = state.position[row, 0], state.position[row, 1]
    low_x, low_z = spread(np.float32(box[0] - at_x)), spread(np.float32(box[1] - at_z))
    high_x, high_z = spread(np.float32(box[2] - at_x)), spread(np.float32(box[3] - at_z))
    for first in range(0, state.ray_cos.shape[1], LANES):
        inverse_x, inverse_z = load(scratch, 2, first), load(scratch, 3, first)
        x_1, x_2 = low_x * inverse_x, high_x * inverse_x
        z_1, z_2 = low_z * inverse_z, high_z * inverse_z
        x_first, z_first = x_1 < x_2, z_1 < z_2
        near_x, far_x = where(x_first, x_1, x_2), where(x_first, x_2, x_1)
        near_z, far_z = where(z_first, z_1, z_2), where(z_first, z_2, z_1)
        near = where(near_x > near_z, near_x, near_z)
        far = where(far_x < far_z, far_x, far_z)
        old = load(state.ray_distance, row, first)
        nearer = (near <= far) & (near > spread(ZERO)) & (near < old)
        store(state.ray_distance, row, first, where(nearer, near, old))


@inlined
def meet_disc(state: ArenaState, scratch: Floats32, row: int, k: int) -> None:
    """Shorten the rays where enemy `k` is nearer than everything before it.

    With c the centre and d the ray's direction: hit where |c x d| <= r, at c.d - sqrt(r^2 -
    |c x d|^2).
    """
    x = spread(np.float32(state.enemies[row, k, 0] - state.position[row, 0]))
    z = spread(np.float32(state.enemies[row, k, 1] - state.position[row, 1]))
    radius = np.float32(state.parameters[row, AT.enemy_radius])
    zero, index = spread(ZERO), spread(np.int32(k))
    for first in range(0, state.ray_cos.shape[1], LANES):
        along_x, along_z = load(scratch, 0, first), load(scratch, 1, first)
        across = x * along_z - z * along_x
        rest = spread(radius * radius) - across * across
        near = (x * along_x + z * along_z) - root(where(rest > zero, rest, zero))
        old = load(state.ray_distance, row, first)
        nearer = (rest >= zero) & (near > zero) & (near < old)
        store(state.ray_distance, row, first, where(nearer, near, old))
        hit = load(state.ray_hit, row, first)
        store(state.ray_hit, row, first, where(nearer, index, hit))


@inlined
def detected_enemies(state: ArenaState, tables: ArenaTables, row: int, base: int) -> int:
    """Bit k is set where a ray within range hits enemy `base + k`; WORD of them from `base` on."""
    limit = np.float32(state.parameters[row, AT.rays_range])
    found = NO_BIT
    for ray in range(ray_count(tables)):
        hit = state.ray_hit[row, ray] - np.int32(base)
        seen = (hit >= 0) & (hit < WORD) & (state.ray_distance[row, ray] <= limit)
        found |= (ONE_BIT << (hit & LAST_BIT)) if seen else NO_BIT
    return int(found)
