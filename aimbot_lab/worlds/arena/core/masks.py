"""Action masks: which branch indices make sense in the present state."""

from typing import Any

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.packed import pack, unpacked
from aimbot_lab.worlds.arena.core.motion import (
    MOVED,
    decision_reach,
    heading,
    is_crowded,
    is_move,
    touches_any,
    walked,
)
from aimbot_lab.worlds.arena.core.state import AGENT_RADIUS, FLOOR_SIZE, ArenaState, Bools

MASKS = 8  # vertical 0 to 2, horizontal 0 to 2, attack 0 and 1
CERTAIN = 2.0  # times the least move that a reach must be, so that rounding does not decide


@inlined
def is_open(state: ArenaState, row: int) -> bool:
    """Whether every walk is known to be a move, because nothing stands in a decision's reach."""
    reach = decision_reach(state, row)
    if reach < CERTAIN * MOVED:
        return False
    x = state.position[row, 0]
    z = state.position[row, 1]
    low = state.parameters[row, AGENT_RADIUS] + reach
    high = state.parameters[row, FLOOR_SIZE] - low
    return low <= x <= high and low <= z <= high and not touches_any(state, row, x, z, reach)


@inlined
def leads_away(state: ArenaState, row: int, vertical: int, horizontal: int) -> bool:
    """Whether a walk by these branch indices would displace the agent."""
    along_x, along_z = heading(state, row, vertical, horizontal)
    x, z = walked(state, row, along_x, along_z, is_crowded(state, row))
    return is_move(state, row, x, z)


@kernel
def write_masks(state: ArenaState, masks: Bools) -> None:
    """Write `masks` [B, 8], True where an action is allowed.

    Masked: attack while the gun is not ready, and a move that alone, along the present view,
    would not displace the agent. Doing nothing is never masked, so no branch ever is wholly.
    """
    for row in range(state.yaw.size):
        open_floor = is_open(state, row)
        masks[row, 0] = True
        masks[row, 3] = True
        for index in (1, 2):
            masks[row, index] = open_floor or leads_away(state, row, index, 0)
            masks[row, 3 + index] = open_floor or leads_away(state, row, 0, index)
        masks[row, 6] = True
        masks[row, 7] = state.gun_ticks[row] <= 0


@kernel
def keep_masks(arguments: Any, address: int) -> None:
    """Leave the arguments of `write_masks` at `address`, for a `PackedCall`."""
    pack(arguments, address)


@kernel
def write_masks_packed(address: int, kind: Any) -> None:
    """`write_masks` for a `PackedCall`."""
    state, masks = unpacked(address, kind)
    write_masks(state, masks)
