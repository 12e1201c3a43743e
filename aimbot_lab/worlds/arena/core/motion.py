"""Moving and turning, where things are placed, and which moves are masked."""

import math
from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined, kernel, unpacked
from aimbot_lab.foundation.kernels.rng import sin_cos, uniform, uniform_index
from aimbot_lab.worlds.arena.core.state import (
    AT,
    BLOCK_SIZE,
    SPIN_UNIT,
    ArenaState,
    ArenaTables,
    Bools,
)

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


TRIES = 1000  # draws of a place before the fallback


@inlined
def clear_floor(state: ArenaState, row: int) -> None:
    """Take every block, obstacle and enemy of the last episode away."""
    state.obstacle_count[row] = 0
    state.enemy_count[row] = 0
    state.preset[row] = -1
    state.block[row, 0] = 0.0
    state.block[row, 1] = 0.0
    state.block_turns[row] = 0
    for k in range(3):
        state.fire_base[row, k] = 0.0


@inlined
def place_agent_anywhere(state: ArenaState, row: int) -> None:
    """Put the agent on a random place of the empty floor; its yaw stays."""
    radius = state.parameters[row, AT.agent_radius]
    span = state.parameters[row, AT.floor_size] - 2.0 * radius
    state.position[row, 0] = radius + span * uniform(state.streams, row)
    state.position[row, 1] = radius + span * uniform(state.streams, row)


@inlined
def keep_on_floor(state: ArenaState, row: int) -> None:
    """Move the agent in from the outer walls, should its radius have grown."""
    radius = state.parameters[row, AT.agent_radius]
    for axis in range(2):
        inside = max(state.position[row, axis], radius)
        state.position[row, axis] = min(inside, state.parameters[row, AT.floor_size] - radius)


@inlined
def metres_away(x: float, z: float) -> float:
    """Length of (x, z)."""
    return math.sqrt(x * x + z * z)


@inlined
def apart(state: ArenaState, row: int, k: int, x: float, z: float) -> bool:
    """Whether a new enemy at (x, z) overlaps neither the agent nor the first `k` enemies."""
    radius = state.parameters[row, AT.enemy_radius]
    reach = radius + state.parameters[row, AT.agent_radius]
    if metres_away(x - state.position[row, 0], z - state.position[row, 1]) < reach:
        return False
    for other in range(k):
        gap_x = x - state.enemies[row, other, 0]
        if metres_away(gap_x, z - state.enemies[row, other, 1]) < 2.0 * radius:
            return False
    return True


@inlined
def place_free_enemies(state: ArenaState, row: int) -> None:
    """Put Free's enemies on random places that overlap nothing."""
    radius = state.parameters[row, AT.enemy_radius]
    span = state.parameters[row, AT.floor_size] - 2.0 * radius
    count = int(state.parameters[row, AT.free_enemies])
    for k in range(count):
        x, z = 0.0, 0.0
        for _ in range(TRIES):
            x = radius + span * uniform(state.streams, row)
            z = radius + span * uniform(state.streams, row)
            if apart(state, row, k, x, z):
                break
        stand_enemy(state, row, k, x, z)
        state.enemy_is_target[row, k] = True
    state.enemy_count[row] = count


@inlined
def place_bystanders(state: ArenaState, row: int) -> None:
    """Put enemies other than targets on random places that overlap nothing.

    They keep so far from the block that the agent can pass between.
    """
    radius = state.parameters[row, AT.enemy_radius]
    span = state.parameters[row, AT.floor_size] - 2.0 * radius
    keep = radius + 2.0 * state.parameters[row, AT.agent_radius]
    first = state.enemy_count[row]
    count = first + int(state.parameters[row, AT.bystanders])
    for k in range(first, count):
        x, z = 0.0, 0.0
        for _ in range(TRIES):
            x = radius + span * uniform(state.streams, row)
            z = radius + span * uniform(state.streams, row)
            if metres_to_block(state, row, x, z) >= keep and apart(state, row, k, x, z):
                break
        stand_enemy(state, row, k, x, z)
        state.enemy_is_target[row, k] = False
    state.enemy_count[row] = count


@inlined
def metres_to_block(state: ArenaState, row: int, x: float, z: float) -> float:
    """Distance from (x, z) to the row's block."""
    corner_x, corner_z = state.block[row, 0], state.block[row, 1]
    gap_x = max(corner_x - x, 0.0, x - corner_x - BLOCK_SIZE)
    gap_z = max(corner_z - z, 0.0, z - corner_z - BLOCK_SIZE)
    return metres_away(gap_x, gap_z)


@inlined
def stand_enemy(state: ArenaState, row: int, k: int, x: float, z: float) -> None:
    """Enemy `k` at (x, z), unhurt."""
    state.enemies[row, k, 0] = x
    state.enemies[row, k, 1] = z
    state.enemy_hits_left[row, k] = int(state.parameters[row, AT.enemy_hits_to_kill])


@inlined
def block_is_clear(state: ArenaState, row: int, corner_x: float, corner_z: float) -> bool:
    """Whether a block at that corner leaves the free floor around the agent's disc."""
    x, z = state.position[row, 0], state.position[row, 1]
    gap_x = max(corner_x - x, 0.0, x - corner_x - BLOCK_SIZE)
    gap_z = max(corner_z - z, 0.0, z - corner_z - BLOCK_SIZE)
    keep = state.parameters[row, AT.agent_radius] + state.parameters[row, AT.block_gap_to_agent]
    return gap_x * gap_x + gap_z * gap_z >= keep * keep


@inlined
def draw_block_place(state: ArenaState, row: int) -> tuple[float, float]:
    """Corner of a block at a random place; as a last resort the corner farthest off."""
    low = state.parameters[row, AT.block_gap_to_walls]
    span = state.parameters[row, AT.floor_size] - BLOCK_SIZE - 2.0 * low
    for _ in range(TRIES):
        x = low + span * uniform(state.streams, row)
        z = low + span * uniform(state.streams, row)
        if block_is_clear(state, row, x, z):
            return x, z
    middle = 0.5 * state.parameters[row, AT.floor_size]
    x = low if state.position[row, 0] > middle else low + span
    z = low if state.position[row, 1] > middle else low + span
    return x, z


@inlined
def turned(x: float, z: float, turns: int) -> tuple[float, float]:
    """A point of the block's frame after `turns` quarter turns about the block's middle."""
    if turns == 1:
        return z, BLOCK_SIZE - x
    if turns == 2:
        return BLOCK_SIZE - x, BLOCK_SIZE - z
    if turns == 3:
        return BLOCK_SIZE - z, x
    return x, z


@inlined
def place_block(state: ArenaState, tables: ArenaTables, row: int, preset: int) -> None:
    """Set `preset` up at a random place in a random rotation, with its enemies."""
    corner_x, corner_z = draw_block_place(state, row)
    turns = uniform_index(state.streams, row, 4)
    state.preset[row] = preset
    state.block[row, 0] = corner_x
    state.block[row, 1] = corner_z
    state.block_turns[row] = turns
    base = tables.presets.fire_base
    x, z = turned(base[preset, 0], base[preset, 1], turns)
    state.fire_base[row, 0] = corner_x + x
    state.fire_base[row, 1] = corner_z + z
    state.fire_base[row, 2] = base[preset, 2]
    state.obstacle_count[row] = tables.presets.obstacle_count[preset]
    for k in range(tables.presets.obstacle_count[preset]):
        place_obstacle(state, tables, row, preset, k)
    state.enemy_count[row] = tables.presets.enemy_count[preset]
    for k in range(tables.presets.enemy_count[preset]):
        spot = tables.presets.enemies
        x, z = turned(spot[preset, k, 0], spot[preset, k, 1], turns)
        stand_enemy(state, row, k, corner_x + x, corner_z + z)
        state.enemy_is_target[row, k] = True


@inlined
def place_obstacle(state: ArenaState, tables: ArenaTables, row: int, preset: int, k: int) -> None:
    """Set obstacle `k` of the preset up in the block that `row` already has."""
    box = tables.presets.obstacles
    turns = state.block_turns[row]
    x_1, z_1 = turned(box[preset, k, 0], box[preset, k, 1], turns)
    x_2, z_2 = turned(box[preset, k, 2], box[preset, k, 3], turns)
    state.obstacles[row, k, 0] = state.block[row, 0] + min(x_1, x_2)
    state.obstacles[row, k, 1] = state.block[row, 1] + min(z_1, z_2)
    state.obstacles[row, k, 2] = state.block[row, 0] + max(x_1, x_2)
    state.obstacles[row, k, 3] = state.block[row, 1] + max(z_1, z_2)


MASKS = 8  # vertical 0 to 2, horizontal 0 to 2, attack 0 and 1
CERTAIN = 2.0  # times the least move that a reach must be, so that rounding does not decide


@inlined
def is_far_from_walls(state: ArenaState, row: int, margin: float) -> bool:
    """Whether no wall is within `margin` metres of the agent."""
    low = state.parameters[row, AT.agent_radius] + margin
    high = state.parameters[row, AT.floor_size] - low
    x, z = state.position[row, 0], state.position[row, 1]
    return bool((low <= min(x, z)) & (max(x, z) <= high))


@inlined
def leads_away(state: ArenaState, row: int, vertical: int, horizontal: int, crowded: bool) -> bool:
    """Whether a walk by these branch indices would displace the agent."""
    along_x, along_z = heading(state, row, vertical, horizontal)
    if not crowded:  # the walls alone are in the way, and rounding seldom decides
        reach = decision_reach(state, row)
        low = state.parameters[row, AT.agent_radius]
        high = state.parameters[row, AT.floor_size] - low
        x, z = state.position[row, 0], state.position[row, 1]
        away_x = min(max(x + reach * along_x, low), high) - x
        away_z = min(max(z + reach * along_z, low), high) - z
        if max(abs(away_x), abs(away_z)) >= CERTAIN * MOVED:
            return True
    x, z = walked(state, row, along_x, along_z, crowded)
    return is_move(state, row, x, z)


@kernel
def write_masks(state: ArenaState, masks: Bools) -> None:
    """Write `masks` [B, 8], True where an action is allowed.

    Masked: attack while the gun is not ready, and a move that alone, along the present view,
    would not displace the agent. Doing nothing is never masked, so no branch ever is wholly.
    """
    for row in range(state.yaw.size):
        reach = decision_reach(state, row)
        crowded = is_crowded(state, row)
        free = reach >= CERTAIN * MOVED and not crowded and is_far_from_walls(state, row, reach)
        masks[row, 0] = True
        masks[row, 3] = True
        for index in (1, 2):
            masks[row, index] = free or leads_away(state, row, index, 0, crowded)
            masks[row, 3 + index] = free or leads_away(state, row, 0, index, crowded)
        masks[row, 6] = True
        masks[row, 7] = state.gun_ticks[row] <= 0


@kernel
def write_masks_packed(address: int, kind: Any) -> None:
    """`write_masks` for a `PackedCall`."""
    state, masks = unpacked(address, kind)
    write_masks(state, masks)
