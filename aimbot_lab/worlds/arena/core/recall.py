"""What an agent has to recall: it is held while it sees the FireBase, which then is hidden."""

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.worlds.arena.core.clock import ROUNDING, decision_seconds
from aimbot_lab.worlds.arena.core.state import RECALL_SECONDS, ArenaState, Bools, Floats32

FIRST_HIDDEN, HIDDEN = 1, 5  # columns of an observation: the FireBase, and whether one is in it


@inlined
def is_held(state: ArenaState, row: int) -> bool:
    """Whether the agent of `row` stands still in its next decision, whatever it does."""
    limit = state.parameters[row, RECALL_SECONDS] / decision_seconds(state, row)
    return state.decisions[row] < limit - ROUNDING


@inlined
def is_hidden(state: ArenaState, row: int) -> bool:
    """Whether the FireBase is hidden from the agent of `row`, after it was shown."""
    return state.parameters[row, RECALL_SECONDS] > 0.0 and not is_held(state, row)


@inlined
def hide_fire_base(state: ArenaState, observations: Floats32, row: int, at: int) -> None:
    """Empty the columns about the FireBase where it was shown; those of `row` begin `at`."""
    if is_hidden(state, row):
        for column in range(at + FIRST_HIDDEN, at + FIRST_HIDDEN + HIDDEN):
            observations[row, column] = 0.0


@kernel
def write_held(state: ArenaState, held: Bools) -> None:
    """Write `held` [B], whether the agent of each row stands still in its next decision."""
    for row in range(held.size):
        held[row] = is_held(state, row)
