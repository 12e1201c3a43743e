"""Turning and walking: a disc that slides along walls, obstacles and living enemies."""

import math

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.portable_math import sin_cos
from aimbot_lab.worlds.arena.core.state import AT, SPIN_UNIT, ArenaState

PUSHES = 12  # before a move is taken back
NEVER = 1e30  # m, squared, to what is not there
SKIN = 1e-9  # m of overlap that counts as touching
MOVED = 1e-6  # m from which a decision counts as a move
DIAGONAL = math.sqrt(0.5)


@inlined
def look_ahead(state: ArenaState, row: int) -> None:
    """Work out the sine and cosine of the yaw."""
    sine, cosine = sin_cos(state.yaw[row])
    state.ahead[row, 0] = sine
    state.ahead[row, 1] = cosine


@inlined
def turn(state: ArenaState, row: int, mouse: float) -> float:
    """Turn the agent by the clipped `mouse`, which is returned; keeps the spin window's sum."""
    limit = state.parameters[row, AT.mouse_limit]
    mouse = min(max(mouse, -limit), limit)
    angle = mouse * state.parameters[row, AT.mouse_factor]
    yaw = state.yaw[row] + angle
    if yaw > math.pi or yaw <= -math.pi:
        yaw -= 2.0 * math.pi * math.ceil((yaw - math.pi) / (2.0 * math.pi))
    state.yaw[row] = yaw
    look_ahead(state, row)
    slot = state.decisions[row] % state.spin_turns.shape[1]
    units = np.int64(np.rint(mouse / SPIN_UNIT))
    state.spin_sum[row] += units - state.spin_turns[row, slot]
    state.spin_turns[row, slot] = units
    return mouse


@inlined
def touches_any(state: ArenaState, row: int, x: float, z: float, margin: float) -> bool:
    """Whether an obstacle or living enemy is within `margin` metres of the disc at (x, z)."""
    return touches_obstacle(state, row, x, z, margin) or touches_enemy(state, row, x, z, margin)


@inlined
def touches_obstacle(state: ArenaState, row: int, x: float, z: float, margin: float) -> bool:
    """Whether an obstacle is within `margin` metres of the disc at (x, z)."""
    reach = state.parameters[row, AT.agent_radius] + margin
    for k in range(state.obstacle_count[row]):
        gap_x = max(state.obstacles[row, k, 0] - x, x - state.obstacles[row, k, 2])
        gap_z = max(state.obstacles[row, k, 1] - z, z - state.obstacles[row, k, 3])
        if gap_x < reach and gap_z < reach:
            return True
    return False


@inlined
def touches_enemy(state: ArenaState, row: int, x: float, z: float, margin: float) -> bool:
    """Whether a living enemy is within `margin` metres of the disc at (x, z)."""
    reach = state.parameters[row, AT.agent_radius] + margin + state.parameters[row, AT.enemy_radius]
    for k in range(state.enemy_count[row]):
        if (
            state.enemy_hits_left[row, k] > 0
            and abs(state.enemies[row, k, 0] - x) < reach
            and abs(state.enemies[row, k, 1] - z) < reach
        ):
            return True
    return False


@inlined
def nearest_obstacle(state: ArenaState, row: int, x: float, z: float) -> tuple[float, float, float]:
    """The point of all obstacles that is nearest to (x, z), and its squared distance."""
    found_x, found_z, least = x, z, NEVER
    for k in range(state.obstacle_count[row]):
        near_x = min(max(x, state.obstacles[row, k, 0]), state.obstacles[row, k, 2])
        near_z = min(max(z, state.obstacles[row, k, 1]), state.obstacles[row, k, 3])
        squared = (x - near_x) * (x - near_x) + (z - near_z) * (z - near_z)
        if squared < least:
            found_x, found_z, least = near_x, near_z, squared
    return found_x, found_z, least


@inlined
def nearest_enemy(state: ArenaState, row: int, x: float, z: float) -> tuple[float, float, float]:
    """The centre of the living enemy that is nearest to (x, z), and its squared distance."""
    found_x, found_z, least = x, z, NEVER
    for k in range(state.enemy_count[row]):
        near_x = state.enemies[row, k, 0]
        near_z = state.enemies[row, k, 1]
        squared = (x - near_x) * (x - near_x) + (z - near_z) * (z - near_z)
        if squared < least and state.enemy_hits_left[row, k] > 0:
            found_x, found_z, least = near_x, near_z, squared
    return found_x, found_z, least


@inlined
def slide(
    state: ArenaState, row: int, x: float, z: float, high: float
) -> tuple[float, float, bool]:
    """(x, z) pushed out of everything it overlaps, and whether that succeeded.

    Each push leads straight out of what (x, z) is deepest in, so that a wall of flush boxes
    pushes as the whole wall does: the nearest point of them all lies on its face.
    """
    low = state.parameters[row, AT.agent_radius]
    reach = low + state.parameters[row, AT.enemy_radius]
    for _ in range(PUSHES):
        near_x, near_z, squared = nearest_obstacle(state, row, x, z)
        enemy_x, enemy_z, enemy_squared = nearest_enemy(state, row, x, z)
        in_box = squared < (low - SKIN) * (low - SKIN)
        in_enemy = enemy_squared < (reach - SKIN) * (reach - SKIN)
        if not (in_box or in_enemy):
            return x, z, True
        away, radius = math.sqrt(squared), low
        if in_enemy and reach - math.sqrt(enemy_squared) > low - away:
            near_x, near_z = enemy_x, enemy_z
            away, radius = math.sqrt(enemy_squared), reach
        if away == 0.0:
            return x, z, False
        x = min(max(near_x + (x - near_x) * (radius / away), low), high)
        z = min(max(near_z + (z - near_z) * (radius / away), low), high)
    return x, z, False


@inlined
def heading(state: ArenaState, row: int, vertical: int, horizontal: int) -> tuple[float, float]:
    """Unit direction (x, z) of a walk, (0, 0) for none.

    Branch indices: `vertical` 1 forward, 2 back; `horizontal` 1 right, 2 left.
    """
    ahead = (1.0 if vertical == 1 else -1.0) if vertical != 0 else 0.0
    aside = (1.0 if horizontal == 1 else -1.0) if horizontal != 0 else 0.0
    if vertical != 0 and horizontal != 0:
        ahead *= DIAGONAL
        aside *= DIAGONAL
    sine = state.ahead[row, 0]
    cosine = state.ahead[row, 1]
    return ahead * sine + aside * cosine, ahead * cosine - aside * sine


@inlined
def decision_reach(state: ArenaState, row: int) -> float:
    """Metres that a decision's walk leads at most."""
    tick = state.parameters[row, AT.move_speed] * state.parameters[row, AT.fixed_timestep]
    return tick * int(state.parameters[row, AT.decision_period])


@inlined
def is_crowded(state: ArenaState, row: int) -> bool:
    """Whether a decision's walk could meet an obstacle or a living enemy."""
    x, z = state.position[row, 0], state.position[row, 1]
    return touches_any(state, row, x, z, decision_reach(state, row))


@inlined
def walked(
    state: ArenaState, row: int, along_x: float, along_z: float, crowded: bool
) -> tuple[float, float]:
    """Where a decision's walk along a unit direction leads, tick by tick.

    Each tick moves the centre, then pushes it out of what it overlaps; where it is `crowded`, a
    tick longer than half the radius is split, so that nothing is tunnelled through.
    """
    radius = state.parameters[row, AT.agent_radius]
    tick = state.parameters[row, AT.move_speed] * state.parameters[row, AT.fixed_timestep]
    ticks = int(state.parameters[row, AT.decision_period])
    x = state.position[row, 0]
    z = state.position[row, 1]
    splits = max(1, int(math.ceil(tick / (0.5 * radius)))) if crowded else 1
    step_x = along_x * tick / splits
    step_z = along_z * tick / splits
    high = state.parameters[row, AT.floor_size] - radius
    for _ in range(ticks * splits):
        next_x = min(max(x + step_x, radius), high)
        next_z = min(max(z + step_z, radius), high)
        if crowded:
            next_x, next_z, free = slide(state, row, next_x, next_z, high)
            if not free:
                break
        # A step that leads nowhere is followed by others like it: this bounds a fast walk's cost.
        if next_x == x and next_z == z:
            break
        x, z = next_x, next_z
    return x, z


@inlined
def is_move(state: ArenaState, row: int, x: float, z: float) -> bool:
    """Whether (x, z) is another place than the agent's."""
    away_x = x - state.position[row, 0]
    away_z = z - state.position[row, 1]
    return away_x * away_x + away_z * away_z > MOVED * MOVED


@inlined
def walk(state: ArenaState, row: int, vertical: int, horizontal: int) -> bool:
    """Walk one decision; whether the agent was displaced."""
    if vertical == 0 and horizontal == 0:
        return False
    along_x, along_z = heading(state, row, vertical, horizontal)
    x, z = walked(state, row, along_x, along_z, is_crowded(state, row))
    moved = is_move(state, row, x, z)
    state.position[row, 0] = x
    state.position[row, 1] = z
    return moved
