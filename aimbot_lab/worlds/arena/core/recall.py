"""What an agent has to recall: it is held while it sees the FireBase, which then is hidden."""

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.worlds.arena.core.clock import ROUNDING, decision_seconds
from aimbot_lab.worlds.arena.core.state import AT, OWN, ArenaState, Bools, Floats32


@inlined
def is_held(state: ArenaState, row: int) -> bool:
    """Whether the agent of `row` stands still in its next decision, whatever it does."""
    limit = state.parameters[row, AT.recall_seconds] / decision_seconds(state, row)
    return state.decisions[row] < limit - ROUNDING


@inlined
def is_hidden(state: ArenaState, row: int) -> bool:
    """Whether the FireBase is hidden from the agent of `row`, after it was shown."""
    return state.parameters[row, AT.recall_seconds] > 0.0 and not is_held(state, row)


@inlined
def hide_fire_base(state: ArenaState, observations: Floats32, row: int, at: int) -> None:
    """Empty the columns about the FireBase where it was shown; those of `row` begin `at`."""
    if is_hidden(state, row):
        for column in range(at + OWN.fire_base_x, at + OWN.in_fire_base + 1):
            observations[row, column] = 0.0


@kernel
def write_held(state: ArenaState, held: Bools) -> None:
    """Write `held` [B], whether the agent of each row stands still in its next decision."""
    for row in range(held.size):
        held[row] = is_held(state, row)
