"""The entry points that `sim.arena` calls: check actions, start rows, step rows."""

import math
from typing import Any

from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.sim.core.clock import is_over
from aimbot_lab.sim.core.episode import begin_episode, is_won, record_end
from aimbot_lab.sim.core.gun import HIT_OTHER, HIT_TARGET, cool_down, shoot
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
MOUSE = 3  # column of the mouse in an action


@kernel
def first_bad_action(actions: Floats32) -> int:
    """Flat index into `actions` [B, 4] of the first impossible value, or -1."""
    columns = actions.shape[1]
    for row in range(actions.shape[0]):
        for branch in range(MOUSE):
            value = actions[row, branch]
            if not (0.0 <= value < BRANCHES[branch]) or value != math.floor(value):
                return row * columns + branch
        if not math.isfinite(actions[row, MOUSE]):
            return row * columns + MOUSE
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


@kernel
def step_rows(
    state: ArenaState,
    tables: ArenaTables,
    scratch: Floats32,
    actions: Floats32,
    buffers: Any,
    log: EpisodeLog,
    span: tuple[int, int],
) -> int:
    """Step the rows `span[0]` to `span[1]`; how many of them finished their episode.

    `actions` [B, 4] must have been checked. Writes rewards, finished flags and observations of
    `buffers` and, where finished, `log`; finished rows wait for `begin_rows`. `scratch`
    [4, R padded] belongs to the calling thread.
    """
    ended = 0
    for row in range(span[0], span[1]):
        reward, finished, won = step_row(state, tables, scratch, actions, row)
        buffers.rewards[row] = reward
        buffers.finished[row] = finished
        observe(state, tables, buffers.observations, row)
        if finished:
            record_end(state, log, row, won)
            ended += 1
    return ended


@kernel
def begin_rows(
    state: ArenaState, tables: ArenaTables, scratch: Floats32, buffers: Any, span: tuple[int, int]
) -> None:
    """Begin the next episode in every finished row from `span[0]` to `span[1]`.

    Moves their last observation to the final ones and writes that of the new episode.
    """
    for row in range(span[0], span[1]):
        if buffers.finished[row]:
            for column in range(buffers.observations.shape[1]):
                buffers.final_observations[row, column] = buffers.observations[row, column]
            begin_episode(state, tables, row)
            cast_rays(state, scratch, row)
            observe(state, tables, buffers.observations, row)
