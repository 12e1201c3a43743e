"""Action masks: which branch indices make sense in the present state."""

from typing import Any

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.packed import unpacked
from aimbot_lab.worlds.arena.core.motion import (
    MOVED,
    decision_reach,
    heading,
    is_crowded,
    is_move,
    walked,
)
from aimbot_lab.worlds.arena.core.state import AT, ArenaState, Bools

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
