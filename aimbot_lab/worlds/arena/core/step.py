"""The entry points that `worlds.arena` calls: check actions, start rows, step rows."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.packed import unpacked
from aimbot_lab.foundation.kernels.spin_sync import (
    BEGIN,
    STEP,
    STRIDE,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.worlds.arena.core.clock import is_over
from aimbot_lab.worlds.arena.core.episode import begin_episode, is_won, record_end
from aimbot_lab.worlds.arena.core.gun import MISSED, cool_down, shoot
from aimbot_lab.worlds.arena.core.motion import turn, walk
from aimbot_lab.worlds.arena.core.observation import observe
from aimbot_lab.worlds.arena.core.rays import cast_rays
from aimbot_lab.worlds.arena.core.reward import Deed, book, distance_to_fire_base, reward_for
from aimbot_lab.worlds.arena.core.state import AT, ArenaState, ArenaTables, EpisodeLog, Floats32

LAST = (np.float32(2.0), np.float32(2.0), np.float32(1.0))  # index of each branch
ZERO = np.float32(0.0)
CHUNK = 16  # rows that a thread takes at a time, some 5 microseconds of work
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
