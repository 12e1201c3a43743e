"""Decisions of all rows: how episodes begin, run and end."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined, kernel, unpacked
from aimbot_lab.foundation.kernels.rng import draw_parameters, uniform_index, weighted_index
from aimbot_lab.foundation.kernels.threads import (
    BEGIN,
    STEP,
    STRIDE,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.worlds.arena.core.motion import (
    clear_floor,
    keep_on_floor,
    look_ahead,
    place_agent_anywhere,
    place_block,
    place_bystanders,
    place_free_enemies,
    turn,
    walk,
)
from aimbot_lab.worlds.arena.core.observation import forget, observe
from aimbot_lab.worlds.arena.core.rays import (
    MISSED,
    cast_rays,
    cool_down,
    is_target,
    shoot,
    spread_fan,
)
from aimbot_lab.worlds.arena.core.reward import (
    Deed,
    book,
    decision_seconds,
    distance_to_fire_base,
    is_over,
    reward_for,
)
from aimbot_lab.worlds.arena.core.state import (
    AT,
    LOST,
    OF_BLOCKS,
    SUMS,
    TARGET,
    WON,
    ArenaState,
    ArenaTables,
    EpisodeLog,
    Floats32,
)


@inlined
def begin_episode(state: ArenaState, tables: ArenaTables, row: int) -> None:
    """Draw the next episode of `row` from the scenario in force and set it up."""
    state.scenario[row] = tables.scenario.number[0]
    number = tables.rows.first + row
    state.order[row] = state.clock[0] * tables.rows.total + number
    state.episode[row] += 1
    draw_parameters(state, tables.scenario, row, number)
    clear_counters(state, row)
    forget(state, row)
    clear_floor(state, row)
    keep_on_floor(state, row)
    spread_fan(state, tables, row)
    look_ahead(state, row)
    target = weighted_index(state.streams, row, tables.scenario.target_weights)
    state.target[row] = target
    state.difficulty[row] = 0
    if target == TARGET.free:
        place_agent_anywhere(state, row)
        place_free_enemies(state, row)
    elif target in OF_BLOCKS:
        weights = tables.scenario.difficulty_weights[target]
        level = weighted_index(state.streams, row, weights) + 1
        state.difficulty[row] = level
        first = tables.presets.kind_first[target, level]
        count = tables.presets.kind_count[target, level]
        place_block(state, tables, row, first + uniform_index(state.streams, row, count))
        place_bystanders(state, row)


@inlined
def clear_counters(state: ArenaState, row: int) -> None:
    """Set clock, gun, spin window and the terms' sums to a beginning's."""
    state.decisions[row] = 0
    state.gun_ticks[row] = 0
    state.spin_sum[row] = 0
    for k in range(state.spin_turns.shape[1]):
        state.spin_turns[row, k] = 0
    for k in range(SUMS):
        state.terms[row, k] = 0.0


@inlined
def is_won(state: ArenaState, row: int) -> bool:
    """Whether the target is reached in the present state."""
    if state.target[row] == TARGET.goto:
        return distance_to_fire_base(state, row) <= state.parameters[row, AT.goto_win_radius]
    if state.target[row] == TARGET.stay:
        return False
    for k in range(state.enemy_count[row]):
        if state.enemy_hits_left[row, k] > 0 and is_target(state, row, k):
            return False
    return True


@inlined
def record_end(state: ArenaState, log: EpisodeLog, row: int, won: bool) -> None:
    """Keep how the episode of `row` ended, before its reset overwrites it."""
    log.outcome[row] = WON if won else LOST
    log.target[row] = state.target[row]
    log.difficulty[row] = state.difficulty[row]
    log.length[row] = state.decisions[row]
    log.seconds[row] = state.decisions[row] * decision_seconds(state, row)
    log.order[row] = state.order[row]
    log.scenario[row] = state.scenario[row]
    for k in range(SUMS):
        log.terms[row, k] = state.terms[row, k]


LAST = (np.float32(2.0), np.float32(2.0), np.float32(1.0))  # index of each branch
ZERO = np.float32(0.0)
CHUNK = 16  # rows that a thread takes at a time, some 5 microseconds of work
MOUSE = 3  # column of the mouse in an action


@inlined
def is_possible(actions: Floats32, row: int) -> bool:
    """Whether the action of `row` exists; without a branch, so that it runs on vector registers."""
    mouse = actions[row, MOUSE]
    possible = mouse - mouse == ZERO  # finite: neither infinite nor NaN
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
def act(state: ArenaState, row: int, actions: Floats32) -> Deed:
    """Turn, walk, shoot, let time pass."""
    distance_before = distance_to_fire_base(state, row)
    mouse = turn(state, row, float(actions[row, MOUSE]))
    moved = walk(state, row, int(actions[row, 0]), int(actions[row, 1]))
    fired, hit = shoot(state, row, int(actions[row, 2]))
    state.decisions[row] += 1
    cool_down(state, row)
    return Deed(distance_before, mouse, moved, fired, hit)


@inlined
def settle(
    state: ArenaState, tables: ArenaTables, buffers: Any, log: EpisodeLog, row: int, deed: Deed
) -> int:
    """Write what the deed brought to `buffers` and, where it ended the episode, `log`; 1 then."""
    reward = reward_for(state, tables, row, deed)
    won = is_won(state, row)
    finished = won or is_over(state, row)
    if finished:
        ending = AT.rewards_win if won else AT.rewards_lose
        reward += book(state, row, ending, state.parameters[row, ending])
        record_end(state, log, row, won)
    buffers.rewards[row] = reward
    buffers.finished[row] = finished
    buffers.truncated[row] = False  # a time-out is a loss: the time is observed
    return int(finished)


@called
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
    observe(state, tables, buffers.observations, row, False, True)


@kernel
def advance_packed(address: int, kind: Any) -> None:
    """`advance_rows` for a `PackedCall`, with enemies or recall."""
    advance_rows(unpacked(address, kind), False, False)


@kernel
def advance_plain_packed(address: int, kind: Any) -> None:
    """`advance_rows` for a `PackedCall` where observations are plain."""
    advance_rows(unpacked(address, kind), True, False)


@kernel
def advance_sensed_packed(address: int, kind: Any) -> None:
    """`advance_rows` for a `PackedCall` where there is a picture, or rays as ML-Agents has them."""
    advance_rows(unpacked(address, kind), False, True)


@inlined
def advance_rows(arguments: Any, plain: bool, sensed: bool) -> None:
    """Step the rows, begin the next episode in those that are finished, or both.

    `arguments`: state, tables, actions [B, 4], two step buffers, the log of episodes, this
    thread's workspace, the queue. `plain` and `sensed` as `observe` has them, constants.

    `queue` says what to do and which of the buffers to write, and receives how many episodes
    ended; a worker goes on so as long as there is work in time. `actions` [B, 4] must have been
    checked. Writes rewards, finished flags, observations and, where an episode ended, `log`.
    """
    state, tables, actions, buffers, log, workspace, queue = arguments
    worker = workspace.thread_id - 1
    while worker < 0 or begins(queue.sync_flags, worker, workspace.spin_limit):
        written = buffers[0] if queue.buffers[0] == 0 else buffers[1]
        first, last = take_rows(queue, workspace.thread_id, state.yaw.size, CHUNK)
        while first < last:
            ended = 0
            if queue.duty[0] & STEP:
                for row in range(first, last):
                    deed = act(state, row, actions)
                    cast_rays(state, workspace.scratch, row)
                    observe(state, tables, written.observations, row, plain, sensed)
                    ended += settle(state, tables, written, log, row, deed)
                queue.ended[workspace.thread_id * STRIDE] += ended
            if queue.duty[0] & BEGIN and (ended or not queue.duty[0] & STEP):
                for row in range(first, last):
                    if written.finished[row]:
                        begin_row(state, tables, workspace.scratch, written, row)
            first, last = take_rows(queue, workspace.thread_id, state.yaw.size, CHUNK)
        if worker < 0:
            wait_for_workers(queue.sync_flags, workspace.spin_limit)
            return
        finish(queue.sync_flags, worker)


@kernel
def cast_all_rays(state: ArenaState, scratch: Floats32, span: tuple[int, int]) -> None:
    """Cast the rays of the rows `span[0]` to `span[1]`; `scratch` [4, R padded]."""
    for row in range(span[0], span[1]):
        cast_rays(state, scratch, row)


@kernel
def move_all(state: ArenaState, actions: Floats32, span: tuple[int, int]) -> None:
    """Turn and walk the rows `span[0]` to `span[1]` by `actions` [B, 4]."""
    for row in range(span[0], span[1]):
        turn(state, row, float(actions[row, MOUSE]))
        walk(state, row, int(actions[row, 0]), int(actions[row, 1]))


@kernel
def observe_all(
    state: ArenaState, tables: ArenaTables, observations: Floats32, span: tuple[int, int]
) -> None:
    """Write the `observations` [B, D] of the rows `span[0]` to `span[1]`."""
    for row in range(span[0], span[1]):
        observe(state, tables, observations, row, False, True)


@kernel
def reward_all(
    state: ArenaState, tables: ArenaTables, actions: Floats32, buffers: Any, span: tuple[int, int]
) -> None:
    """Earn what the rows `span[0]` to `span[1]` would for `actions` [B, 4] that hit nothing.

    Writes the rewards of `buffers`. An agent counts as moved, and as having fired, where its
    action says so.
    """
    for row in range(span[0], span[1]):
        moved = actions[row, 0] + actions[row, 1] > 0.0
        before = distance_to_fire_base(state, row)
        mouse, fired = float(actions[row, MOUSE]), actions[row, 2] > 0.0
        deed = Deed(before, mouse, moved, fired, MISSED)
        buffers.rewards[row] = reward_for(state, tables, row, deed)


@kernel
def begin_all(
    state: ArenaState, tables: ArenaTables, scratch: Floats32, buffers: Any, span: tuple[int, int]
) -> None:
    """Begin the next episode in the rows `span[0]` to `span[1]`, with rays and observation."""
    for row in range(span[0], span[1]):
        begin_row(state, tables, scratch, buffers, row)
