"""How many enemies find a free place on the floor.

Where the discs that stand already leave a tenth of the places, a thousand draws find a free one
but once in 10^45.
"""

from math import pi

from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE

TAKEN_SHARE = 0.9  # of the places, that may be taken


def most_free_enemies(floor_size: float, enemy_radius: float, agent_radius: float) -> int:
    """Enemies that surely find a place in an empty hall."""
    return _most(floor_size, enemy_radius, agent_radius, taken=0.0)


def most_bystanders(floor_size: float, enemy_radius: float, agent_radius: float) -> int:
    """Enemies that surely find a place beside a target block."""
    side = BLOCK_SIZE + 2.0 * (enemy_radius + 2.0 * agent_radius)
    return _most(floor_size, enemy_radius, agent_radius, taken=side * side)


def _most(floor_size: float, enemy_radius: float, agent_radius: float, *, taken: float) -> int:
    span = floor_size - 2.0 * enemy_radius
    taken += pi * (enemy_radius + agent_radius) ** 2
    left = TAKEN_SHARE * span * span - taken
    return max(0, 1 + int(left / (pi * (2.0 * enemy_radius) ** 2))) if left > 0 else 0
