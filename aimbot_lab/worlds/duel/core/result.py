"""Who won, and what each decision earned: zero-sum, term by term."""

from typing import Any

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.arena.core.clock import decision_seconds, is_over
from aimbot_lab.worlds.arena.core.gun import NEVER
from aimbot_lab.worlds.arena.core.reward import (
    distance_to_view_line,
    facing_by_distance,
    spin_term,
)
from aimbot_lab.worlds.duel.core.observation import sees
from aimbot_lab.worlds.duel.core.state import (
    DRAW,
    FACING_TERM,
    HIT,
    HIT_TERM,
    LOSS,
    MOVE_TERM,
    REWARD_TERMS,
    RUNNING,
    SPIN_TERM,
    WIN,
    WIN_TERM,
    DuelState,
    DuelTables,
    MatchLog,
)


@inlined
def outcome_of(state: DuelState, tables: DuelTables, seat: int, other: int) -> int:
    """LOSS, DRAW or WIN of `seat`, or RUNNING."""
    mine, theirs = state.health[seat], state.health[other]
    if mine > 0 and theirs > 0:
        if not is_over(state.seats, seat):
            return RUNNING
        if not tables.health_decides:
            return DRAW
    if mine == theirs or (mine <= 0 and theirs <= 0):
        return DRAW
    return WIN if mine > theirs else LOSS


@inlined
def earn(state: DuelState, match: int, seat: int, outcome: int) -> None:
    """Write the own terms of `seat`; its rays must be cast."""
    weights = state.parameters
    won, hit = outcome == WIN, state.shot[seat] == HIT
    state.earned[seat, WIN_TERM] = weights[match, WIN_TERM] if won else 0.0
    state.earned[seat, HIT_TERM] = weights[match, HIT_TERM] if hit else 0.0
    state.earned[seat, FACING_TERM] = facing_of(state, seat)
    state.earned[seat, SPIN_TERM] = spin_term(state.seats, seat, state.mouse[seat])
    state.earned[seat, MOVE_TERM] = weights[match, MOVE_TERM] if state.moved[seat] else 0.0


@inlined
def facing_of(state: DuelState, seat: int) -> float:
    """The arena's facing term, with the opponent as the only enemy."""
    nearest = NEVER
    if sees(state, seat):
        seats = state.seats
        x = seats.enemies[seat, 0, 0] - seats.position[seat, 0]
        z = seats.enemies[seat, 0, 1] - seats.position[seat, 1]
        nearest = distance_to_view_line(seats, seat, x, z)
    return facing_by_distance(state.seats, seat, nearest)


@inlined
def reward_of(state: DuelState, seat: int, other: int) -> float:
    """Own terms less the other's, one by one, booked for both; the other's is its negative."""
    reward = 0.0
    for k in range(len(REWARD_TERMS)):
        gained = state.earned[seat, k] - state.earned[other, k]
        state.terms[seat, k] += gained
        state.terms[other, k] -= gained
        reward += gained
    return reward


@inlined
def settle(
    state: DuelState, tables: DuelTables, buffers: Any, log: MatchLog, match: int, away: int
) -> int:
    """Write what the decision brought to `buffers` and, where it ended the match, `log`; 1 then."""
    result = outcome_of(state, tables, match, away)
    finished = result != RUNNING
    earn(state, match, match, result)
    earn(state, match, away, -result if finished else RUNNING)
    reward = reward_of(state, match, away)
    buffers.rewards[match] = reward
    buffers.rewards[away] = 0.0 - reward  # no -0
    for seat in (match, away):
        buffers.finished[seat] = finished
        buffers.truncated[seat] = False  # the time is observed
    if finished:
        record_end(state, log, match, away, result)
    return int(finished)


@inlined
def record_end(state: DuelState, log: MatchLog, match: int, away: int, result: int) -> None:
    """Keep how the match ended, before its reset overwrites it."""
    seats = state.seats
    log.outcome[match] = result
    log.outcome[away] = -result
    log.kind[match] = state.kind[match]
    log.difficulty[match] = state.difficulty[match]
    log.length[match] = seats.decisions[match]
    log.seconds[match] = seats.decisions[match] * decision_seconds(seats, match)
    for seat in (match, away):
        log.order[seat] = seats.order[seat]
        log.scenario[seat] = seats.scenario[seat]
        for k in range(len(REWARD_TERMS)):
            log.terms[seat, k] = state.terms[seat, k]
