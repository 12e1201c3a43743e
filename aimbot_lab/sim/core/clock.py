"""Time in an episode, counted in decisions."""

from aimbot_lab.foundation.jit import inlined
from aimbot_lab.sim.core.state import (
    DECISION_PERIOD,
    FIXED_TIMESTEP,
    STAY,
    TIME_LIMIT,
    ArenaState,
)


@inlined
def decision_seconds(state: ArenaState, row: int) -> float:
    """Seconds that one decision takes."""
    return state.parameters[row, DECISION_PERIOD] * state.parameters[row, FIXED_TIMESTEP]


@inlined
def is_over(state: ArenaState, row: int) -> bool:
    """Whether the time is up; never in Stay."""
    if state.target[row] == STAY:
        return False
    limit = round(state.parameters[row, TIME_LIMIT] / decision_seconds(state, row))
    return state.decisions[row] >= limit


@inlined
def time_left(state: ArenaState, row: int) -> float:
    """Seconds until the episode is lost, 0 once it is; stands still in Stay."""
    if state.target[row] == STAY:
        return state.parameters[row, TIME_LIMIT]
    if is_over(state, row):
        return 0.0
    gone = state.decisions[row] * decision_seconds(state, row)
    return max(state.parameters[row, TIME_LIMIT] - gone, 0.0)
