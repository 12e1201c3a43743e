"""What a step earns: ten terms, each a factor that settings or a lesson give."""

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.gorge.core.movement import MoveResult
from aimbot_lab.worlds.gorge.core.state import (
    BUMP,
    DISTANCE,
    FINISH,
    FULL_MEMORY,
    REVISIT,
    SITES,
    STEP_PENALTY,
    STEP_SCORE,
    TREASURE,
    TREASURE_DISTANCE,
    GorgeState,
    GorgeTables,
)

FAR = 1 << 30  # steps, more than any way takes


@inlined
def earn(state: GorgeState, row: int, term: int, amount: float) -> float:
    """What `amount` of `term` earns, added to the episode's sum of the term."""
    earned = state.parameters[row, term] * amount
    state.terms[row, term] += earned
    return earned


@inlined
def reward_of(state: GorgeState, tables: GorgeTables, row: int, deed: MoveResult) -> float:
    """What the step earned, without `win` and `lose`; terms are added in their order."""
    reward = 0.0
    if deed.points != 0.0:
        reward += earn(state, row, TREASURE, deed.points)
    if deed.arrived:
        reward += earn(state, row, FINISH, deed.end_points)
        reward += earn(state, row, STEP_SCORE, deed.step_points)
    if state.parameters[row, STEP_PENALTY] != 0.0:
        reward += earn(state, row, STEP_PENALTY, 1.0)
    if deed.bumped:
        if state.parameters[row, BUMP] != 0.0:
            reward += earn(state, row, BUMP, 1.0)
        return reward
    if state.parameters[row, REVISIT] != 0.0:
        reward += earn(state, row, REVISIT, min(deed.visits, FULL_MEMORY) / 10.0)
    if state.parameters[row, DISTANCE] != 0.0:
        to_end = tables.maps.to_end[state.map[row]]
        reward += earn(state, row, DISTANCE, float(to_end[deed.before] - to_end[deed.after]))
    if state.parameters[row, TREASURE_DISTANCE] != 0.0 and deed.there != 0 and not deed.arrived:
        nearer = nearest(state, tables, row, deed.there, deed.before)
        nearer -= nearest(state, tables, row, deed.there, deed.after)
        reward += earn(state, row, TREASURE_DISTANCE, float(nearer))
    return reward


@inlined
def nearest(state: GorgeState, tables: GorgeTables, row: int, there: int, cell: int) -> int:
    """Steps of the shortest way from `cell` to a treasure of the set `there`, not by the end."""
    fewest = FAR
    for site in range(SITES):
        if (there >> site) & 1:
            fewest = min(fewest, tables.maps.to_site[state.map[row], site, cell])
    return fewest
