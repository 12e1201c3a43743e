"""Single parts of a step as entry points, so that a benchmark can time each alone.

They are compiled when first called, which no training does.
"""

from typing import Any

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.worlds.arena.core.gun import MISSED
from aimbot_lab.worlds.arena.core.motion import turn, walk
from aimbot_lab.worlds.arena.core.observation import observe
from aimbot_lab.worlds.arena.core.rays import cast_rays
from aimbot_lab.worlds.arena.core.reward import Deed, distance_to_fire_base, reward_for
from aimbot_lab.worlds.arena.core.state import ArenaState, ArenaTables, Floats32
from aimbot_lab.worlds.arena.core.step import MOUSE, begin_row


@kernel
def cast_all_rays(state: ArenaState, scratch: Floats32, span: tuple[int, int]) -> None:
    """Cast the rays of the rows `span[0]` to `span[1]`; `scratch` [4, R padded]."""
    for row in range(span[0], span[1]):
        cast_rays(state, scratch, row)


@kernel
def move_all(state: ArenaState, actions: Floats32, span: tuple[int, int]) -> None:
    """Turn and walk the rows `span[0]` to `span[1]` by `actions` [B, 4]."""
    for row in range(span[0], span[1]):
        turn(state, row, float(actions[row, MOUSE]))
        walk(state, row, int(actions[row, 0]), int(actions[row, 1]))


@kernel
def observe_all(
    state: ArenaState, tables: ArenaTables, observations: Floats32, span: tuple[int, int]
) -> None:
    """Write the `observations` [B, D] of the rows `span[0]` to `span[1]`."""
    for row in range(span[0], span[1]):
        observe(state, tables, observations, row, False, True)


@kernel
def reward_all(
    state: ArenaState, tables: ArenaTables, actions: Floats32, buffers: Any, span: tuple[int, int]
) -> None:
    """Earn what the rows `span[0]` to `span[1]` would for `actions` [B, 4] that hit nothing.

    Writes the rewards of `buffers`. An agent counts as moved, and as having fired, where its
    action says so.
    """
    for row in range(span[0], span[1]):
        moved = actions[row, 0] + actions[row, 1] > 0.0
        before = distance_to_fire_base(state, row)
        mouse, fired = float(actions[row, MOUSE]), actions[row, 2] > 0.0
        deed = Deed(before, mouse, moved, fired, MISSED)
        buffers.rewards[row] = reward_for(state, tables, row, deed)


@kernel
def begin_all(
    state: ArenaState, tables: ArenaTables, scratch: Floats32, buffers: Any, span: tuple[int, int]
) -> None:
    """Begin the next episode in the rows `span[0]` to `span[1]`, with rays and observation."""
    for row in range(span[0], span[1]):
        begin_row(state, tables, scratch, buffers, row)
