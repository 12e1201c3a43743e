"""The gun: one hitscan line along the view's centre, in double precision."""

import math

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.arena.core.state import AT, TARGET, ArenaState

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
