"""Time in an episode, counted in decisions."""

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.arena.core.state import (
    DECISION_PERIOD,
    FIXED_TIMESTEP,
    STAY,
    TIME_LIMIT,
    ArenaState,
)

ROUNDING = 1e-6  # of a decision, that a division may lack


@inlined
def decision_seconds(state: ArenaState, row: int) -> float:
    """Seconds that one decision takes."""
    return state.parameters[row, DECISION_PERIOD] * state.parameters[row, FIXED_TIMESTEP]


@inlined
def is_over(state: ArenaState, row: int) -> bool:
    """Whether another decision would take longer than the limit; never in Stay."""
    if state.target[row] == STAY:
        return False
    limit = state.parameters[row, TIME_LIMIT] / decision_seconds(state, row)
    return state.decisions[row] >= int(limit + ROUNDING)


@inlined
def time_left(state: ArenaState, row: int) -> float:
    """Seconds until the episode is lost, 0 once it is; stands still in Stay."""
    if state.target[row] == STAY:
        return state.parameters[row, TIME_LIMIT]
    if is_over(state, row):
        return 0.0
    gone = state.decisions[row] * decision_seconds(state, row)
    return max(state.parameters[row, TIME_LIMIT] - gone, 0.0)
