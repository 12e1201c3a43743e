"""The entry points that `sim.arena` calls: check actions, start rows, step rows."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.sim.core.clock import is_over
from aimbot_lab.sim.core.episode import begin_episode, is_won, record_end
from aimbot_lab.sim.core.gun import HIT_OTHER, HIT_TARGET, cool_down, shoot
from aimbot_lab.sim.core.handover import (
    BEGIN,
    STEP,
    STRIDE,
    Seat,
    Turns,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.sim.core.motion import turn, walk
from aimbot_lab.sim.core.observation import observe
from aimbot_lab.sim.core.rays import cast_rays
from aimbot_lab.sim.core.reward import (
    attack_terms,
    distance_to_fire_base,
    facing_term,
    goto_terms,
    spin_term,
)
from aimbot_lab.sim.core.state import (
    ATTACK,
    FACING,
    FREE,
    GOTO,
    LOSE,
    MOVE_PENALTY,
    NON_TARGET_HIT,
    SPIN_PENALTY,
    TARGET_HIT,
    WIN,
    ArenaState,
    ArenaTables,
    EpisodeLog,
    Floats32,
)

BRANCHES = (3, 3, 2)
LAST = (np.float32(2.0), np.float32(2.0), np.float32(1.0))  # index of each branch
ZERO = np.float32(0.0)
MOUSE = 3  # column of the mouse in an action


@inlined
def is_possible(actions: Floats32, row: int) -> bool:
    """Whether the action of `row` exists; without a branch, so that it runs on vector registers."""
    mouse = actions[row, MOUSE]
    possible = mouse - mouse == ZERO  # neither infinite nor no number
    for branch in range(MOUSE):
        value = actions[row, branch]
        last = LAST[branch]
        possible = possible & (value >= ZERO) & (value <= last) & (value == np.floor(value))
    return possible


@kernel
def first_bad_action(actions: Floats32) -> int:
    """Row of `actions` [B, 4] with the first impossible value, or -1."""
    bad = 0
    for row in range(actions.shape[0]):
        bad += not is_possible(actions, row)
    if bad == 0:
        return -1
    for row in range(actions.shape[0]):
        if not is_possible(actions, row):
            return row
    return -1


@inlined
def act(state: ArenaState, row: int, actions: Floats32) -> tuple[float, bool, bool, int]:
    """Turn, walk, shoot, let time pass: (clipped mouse, whether moved, fired, what was hit)."""
    mouse = turn(state, row, float(actions[row, MOUSE]))
    moved = walk(state, row, int(actions[row, 0]), int(actions[row, 1]))
    fired, hit = shoot(state, row, int(actions[row, 2]))
    state.decisions[row] += 1
    cool_down(state, row)
    return mouse, moved, fired, hit


@inlined
def earn(state: ArenaState, row: int, term: int, value: float) -> float:
    """Book `value` under `term`; the value."""
    state.terms[row, term] += value
    return value


@inlined
def common_reward(state: ArenaState, row: int, mouse: float, moved: bool, hit: int) -> float:
    """Sum of the terms that every target earns, result apart."""
    reward = earn(state, row, SPIN_PENALTY, spin_term(state, row, mouse))
    if moved:
        reward += earn(state, row, MOVE_PENALTY, state.parameters[row, MOVE_PENALTY])
    if hit == HIT_TARGET:
        reward += earn(state, row, TARGET_HIT, state.parameters[row, TARGET_HIT])
    elif hit == HIT_OTHER:
        reward += earn(state, row, NON_TARGET_HIT, state.parameters[row, NON_TARGET_HIT])
    return reward


@inlined
def target_reward(
    state: ArenaState, tables: ArenaTables, row: int, distance_before: float, fired: bool
) -> float:
    """The term that the present target earns; its rays must be cast."""
    if state.target[row] == FREE:
        return earn(state, row, FACING, facing_term(state, tables, row))
    if state.target[row] == GOTO:
        term, value = goto_terms(state, row, distance_before)
        return earn(state, row, term, value)
    if state.target[row] == ATTACK:
        term, value = attack_terms(state, row, fired)
        return earn(state, row, term, value)
    return 0.0


@inlined
def step_row(
    state: ArenaState, tables: ArenaTables, scratch: Floats32, actions: Floats32, row: int
) -> tuple[float, bool, bool]:
    """One decision of `row` without its reset: (reward, whether finished, whether won)."""
    distance_before = distance_to_fire_base(state, row)
    mouse, moved, fired, hit = act(state, row, actions)
    won = is_won(state, row)
    finished = won or is_over(state, row)
    cast_rays(state, scratch, row)
    reward = common_reward(state, row, mouse, moved, hit)
    reward += target_reward(state, tables, row, distance_before, fired)
    if finished:
        ending = WIN if won else LOSE
        reward += earn(state, row, ending, state.parameters[row, ending])
    return reward, finished, won


@inlined
def begin_row(
    state: ArenaState, tables: ArenaTables, scratch: Floats32, buffers: Any, row: int
) -> None:
    """Begin the next episode in `row`.

    Moves its last observation to the final ones and writes that of the new episode.
    """
    for column in range(buffers.observations.shape[1]):
        buffers.final_observations[row, column] = buffers.observations[row, column]
    begin_episode(state, tables, row)
    cast_rays(state, scratch, row)
    observe(state, tables, buffers.observations, row)


@inlined
def make_decision(
    state: ArenaState,
    tables: ArenaTables,
    scratch: Floats32,
    actions: Floats32,
    buffers: Any,
    log: EpisodeLog,
    row: int,
) -> int:
    """One decision of `row`, written to `buffers` and, where it ends the episode, `log`; 1 then."""
    reward, finished, won = step_row(state, tables, scratch, actions, row)
    buffers.rewards[row] = reward
    buffers.finished[row] = finished
    observe(state, tables, buffers.observations, row)
    if finished:
        record_end(state, log, row, won)
        return 1
    return 0


@inlined
def advance(
    state: ArenaState,
    tables: ArenaTables,
    actions: Floats32,
    buffers: Any,
    log: EpisodeLog,
    seat: Seat,
    turns: Turns,
) -> None:
    """Do the turn's duty on chunk after chunk, the thread's own first, until none is left."""
    threads = turns.taken.size // STRIDE
    for away in range(threads):
        owner = (seat.number + away) % threads
        first, last = take_rows(turns, owner, state.yaw.size)
        while first < last:
            ended = 0
            if turns.duty[0] & STEP:
                for row in range(first, last):
                    ended += make_decision(state, tables, seat.scratch, actions, buffers, log, row)
                turns.ended[seat.number * STRIDE] += ended
            if turns.duty[0] & BEGIN and (ended or not turns.duty[0] & STEP):
                for row in range(first, last):
                    if buffers.finished[row]:
                        begin_row(state, tables, seat.scratch, buffers, row)
            first, last = take_rows(turns, owner, state.yaw.size)


@kernel
def advance_rows(
    state: ArenaState,
    tables: ArenaTables,
    actions: Floats32,
    buffers: tuple[Any, Any],
    log: EpisodeLog,
    seat: Seat,
    turns: Turns,
) -> None:
    """Step the rows, begin the next episode in those that are finished, or both.

    `turns` says what to do and which of the buffers to write, and is told how many episodes
    ended. A worker goes on so as long as there is work in time. `actions` [B, 4] must have been
    checked. Writes rewards, finished flags and observations and, where an episode ended, `log`.
    """
    worker = seat.number - 1
    while worker < 0 or begins(turns.words, worker, seat.looks):
        written = buffers[0] if turns.buffers[0] == 0 else buffers[1]
        advance(state, tables, actions, written, log, seat, turns)
        if worker < 0:
            wait_for_workers(turns.words, seat.looks)
            return
        finish(turns.words, worker)
