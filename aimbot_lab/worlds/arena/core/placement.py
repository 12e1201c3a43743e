"""Where things stand at an episode's start: the agent, enemies in the hall, target blocks."""

import math

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.rng import uniform, uniform_index
from aimbot_lab.worlds.arena.core.state import AT, BLOCK_SIZE, ArenaState, ArenaTables

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
    """Put enemies that are no targets on random places that overlap nothing.

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
