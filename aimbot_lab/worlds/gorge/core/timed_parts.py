"""Single parts of a step as entry points, so that a benchmark can time each alone.

They are compiled when first called, which no training does.
"""

from typing import Any

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.worlds.gorge.core.movement import Deed, move
from aimbot_lab.worlds.gorge.core.observation import observe
from aimbot_lab.worlds.gorge.core.reward import reward_of
from aimbot_lab.worlds.gorge.core.state import SIDE, Floats32, GorgeState, GorgeTables
from aimbot_lab.worlds.gorge.core.step import begin_row


@kernel
def move_all(state: GorgeState, tables: GorgeTables, actions: Floats32) -> None:
    """Move all rows by `actions` [B, 1], with memory and score."""
    for row in range(state.x.size):
        move(state, tables, row, int(actions[row, 0]))


@kernel
def reward_all(state: GorgeState, tables: GorgeTables, actions: Floats32, buffers: Any) -> None:
    """Earn what all rows would where up bumps and any other of `actions` [B, 1] stays."""
    for row in range(state.x.size):
        cell = SIDE * state.x[row] + state.z[row]
        bumped, there = actions[row, 0] == 0.0, state.left[row]
        deed = Deed(cell, cell, bumped, False, 1, there, 0.0, 0.0, 0.0)
        buffers.rewards[row] = reward_of(state, tables, row, deed)


@kernel
def observe_all(state: GorgeState, tables: GorgeTables, observations: Floats32) -> None:
    """Write the `observations` [B, D] of all rows."""
    for row in range(state.x.size):
        observe(state, tables, observations, row)


@kernel
def begin_all(state: GorgeState, tables: GorgeTables, buffers: Any) -> None:
    """Begin the next episode in all rows, with its first observation."""
    for row in range(state.x.size):
        begin_row(state, tables, buffers, row)
