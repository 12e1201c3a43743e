"""Action masks: which branch indices make sense in the present state."""

from aimbot_lab.foundation.jit import kernel
from aimbot_lab.sim.core.motion import heading, is_move, walked
from aimbot_lab.sim.core.state import ArenaState, Bools

MASKS = 8  # vertical 0 to 2, horizontal 0 to 2, attack 0 and 1


@kernel
def write_masks(state: ArenaState, masks: Bools) -> None:
    """Write `masks` [B, 8], True where an action is allowed.

    Masked: attack while the gun is not ready, and a move that alone, along the present view,
    would not displace the agent. Doing nothing is never masked, so no branch ever is wholly.
    """
    for row in range(state.yaw.size):
        masks[row, 0] = True
        masks[row, 3] = True
        for index in (1, 2):
            along_x, along_z = heading(state, row, index, 0)
            x, z = walked(state, row, along_x, along_z)
            masks[row, index] = is_move(state, row, x, z)
            along_x, along_z = heading(state, row, 0, index)
            x, z = walked(state, row, along_x, along_z)
            masks[row, 3 + index] = is_move(state, row, x, z)
        masks[row, 6] = True
        masks[row, 7] = state.gun_ticks[row] <= 0
