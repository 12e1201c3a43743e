"""Single parts of a step as entry points, so that a benchmark can time each alone.

They are compiled when first called, which no training does.
"""

from typing import Any

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.worlds.arena.core.motion import turn
from aimbot_lab.worlds.duel.core.begin import begin_match
from aimbot_lab.worlds.duel.core.motion import walk_both
from aimbot_lab.worlds.duel.core.observation import observe
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    MOUSE,
    DuelState,
    DuelTables,
    Floats32,
    LayoutTables,
)


@kernel
def move_all(state: DuelState, layouts: LayoutTables, actions: Floats32) -> None:
    """Turn and walk all seats by `actions` [N, 4]."""
    matches = state.layout.size
    for match in range(matches):
        for seat in (match, match + matches):
            for k in range(ACTION_COLUMNS):
                state.held[seat, k] = actions[seat, k]
            turn(state.seats, seat, float(actions[seat, MOUSE]))
        walk_both(state, layouts, match, match + matches)


@kernel
def observe_all(state: DuelState, tables: DuelTables, observations: Floats32) -> None:
    """Write the `observations` [N, D] of all seats."""
    matches = state.layout.size
    for match in range(matches):
        observe(state, tables, observations, match, match + matches)
        observe(state, tables, observations, match + matches, match)


@kernel
def begin_all(state: DuelState, tables: DuelTables, scratch: Floats32, buffers: Any) -> None:
    """Begin the next match in every row, with rays and observations."""
    for match in range(state.layout.size):
        begin_match(state, tables, scratch, buffers, match)
