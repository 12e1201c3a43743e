"""Time in an episode, counted in decisions, and what an agent has to recall: it is held while it
sees the FireBase, which then is hidden.
"""

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.worlds.arena.core.state import AT, OWN, TARGET, ArenaState, Bools, Floats32

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
