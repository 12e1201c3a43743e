"""Time in an episode, counted in decisions."""

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.arena.core.state import AT, TARGET, ArenaState

ROUNDING = 1e-6  # of a decision, that a division may lack


@inlined
def decision_seconds(state: ArenaState, row: int) -> float:
    """Seconds that one decision takes."""
    return state.parameters[row, AT.decision_period] * state.parameters[row, AT.fixed_timestep]


@inlined
def is_over(state: ArenaState, row: int) -> bool:
    """Whether another decision would take longer than the limit; never in Stay."""
    if state.target[row] == TARGET.stay:
        return False
    limit = state.parameters[row, AT.time_limit] / decision_seconds(state, row)
    return state.decisions[row] >= int(limit + ROUNDING)


@inlined
def time_left(state: ArenaState, row: int) -> float:
    """Seconds until the episode is lost, 0 once it is; stands still in Stay."""
    if state.target[row] == TARGET.stay:
        return state.parameters[row, AT.time_limit]
    if is_over(state, row):
        return 0.0
    gone = state.decisions[row] * decision_seconds(state, row)
    return max(state.parameters[row, AT.time_limit] - gone, 0.0)
