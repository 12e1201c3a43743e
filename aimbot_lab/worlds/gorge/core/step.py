"""The entry points that `worlds.gorge` calls: check actions, step rows, begin episodes, masks."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.packed import unpacked
from aimbot_lab.foundation.kernels.spin_sync import (
    BEGIN,
    STEP,
    STRIDE,
    ThreadWorkspace,
    WorkQueue,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.worlds.gorge.core.episode import begin_episode, is_won, record_end
from aimbot_lab.worlds.gorge.core.movement import MoveResult, move, write_masks
from aimbot_lab.worlds.gorge.core.observation import observe
from aimbot_lab.worlds.gorge.core.reward import earn, reward_of
from aimbot_lab.worlds.gorge.core.state import (
    LOSE,
    MAX_STEPS,
    SIDE,
    WIN,
    Bools,
    Floats32,
    GorgeEpisodeLog,
    GorgeState,
    GorgeTables,
)

LAST = np.float32(3.0)  # of the moves
ZERO = np.float32(0.0)
CHUNK = 64  # rows that a thread takes at a time, some 5 microseconds of work


@kernel
def first_bad_action(actions: Floats32) -> int:
    """Row of `actions` [B, 1] with the first impossible value, or -1."""
    bad = 0
    for row in range(actions.shape[0]):
        value = actions[row, 0]
        bad += not ((value >= ZERO) & (value <= LAST) & (value == np.floor(value)))
    if bad == 0:
        return -1
    for row in range(actions.shape[0]):
        value = actions[row, 0]
        if not (value >= ZERO and value <= LAST and value == np.floor(value)):
            return row
    return -1


@kernel
def all_masks(state: GorgeState, tables: GorgeTables, masks: Bools) -> None:
    """Write `masks` [B, 4], True where the move does not bump."""
    for row in range(state.x.size):
        write_masks(state, tables, masks, row)


@inlined
def settle(
    state: GorgeState,
    tables: GorgeTables,
    buffers: Any,
    log: GorgeEpisodeLog,
    row: int,
    deed: MoveResult,
) -> int:
    """Write what the step brought to `buffers` and, where it ended the episode, `log`; 1 then."""
    reward = reward_of(state, tables, row, deed)
    finished = deed.arrived or state.steps[row] >= state.parameters[row, MAX_STEPS]
    if finished:
        won = is_won(state, row, deed.arrived)
        reward += earn(state, row, WIN if won else LOSE, 1.0)
        record_end(state, log, row, won, deed.arrived)
    buffers.rewards[row] = reward
    buffers.finished[row] = finished
    buffers.truncated[row] = False  # a time-out is a loss and part of the rules
    return int(finished)


@called
def begin_row(state: GorgeState, tables: GorgeTables, buffers: Any, row: int) -> None:
    """Begin the next episode in `row`.

    Moves its last observation to the final ones and writes that of the new episode.
    """
    for column in range(buffers.observations.shape[1]):
        buffers.final_observations[row, column] = buffers.observations[row, column]
    begin_episode(state, tables, row)
    observe(state, tables, buffers.observations, row)


@kernel
def advance_packed(address: int, kind: Any) -> None:
    """`advance_rows` for a `PackedCall`."""
    advance_rows(*unpacked(address, kind))


@inlined
def advance_rows(
    state: GorgeState,
    tables: GorgeTables,
    actions: Floats32,
    buffers: tuple[Any, Any],
    log: GorgeEpisodeLog,
    workspace: ThreadWorkspace,
    queue: WorkQueue,
) -> None:
    """Step the rows, begin the next episode in those that are finished, or both.

    `queue` says what to do and which of the buffers to write, and is told how many episodes
    ended; a worker goes on so as long as there is work in time. `actions` [B, 1] must have been
    checked. Writes rewards, finished flags, observations and, where an episode ended, `log`.
    """
    worker = workspace.thread_id - 1
    while worker < 0 or begins(queue.sync_flags, worker, workspace.spin_limit):
        written = buffers[0] if queue.buffers[0] == 0 else buffers[1]
        first, last = take_rows(queue, workspace.thread_id, state.x.size, CHUNK)
        while first < last:
            ended = 0
            if queue.duty[0] & STEP:
                for row in range(first, last):
                    deed = move(state, tables, row, int(actions[row, 0]))
                    ended += settle(state, tables, written, log, row, deed)
                # By itself: what a row remembers is far away, and comes for all rows at once.
                for row in range(first, last):
                    observe(state, tables, written.observations, row)
                queue.ended[workspace.thread_id * STRIDE] += ended
            if queue.duty[0] & BEGIN and (ended or not queue.duty[0] & STEP):
                for row in range(first, last):
                    if written.finished[row]:
                        begin_row(state, tables, written, row)
            first, last = take_rows(queue, workspace.thread_id, state.x.size, CHUNK)
        if worker < 0:
            wait_for_workers(queue.sync_flags, workspace.spin_limit)
            return
        finish(queue.sync_flags, worker)


@kernel
def move_all(state: GorgeState, tables: GorgeTables, actions: Floats32) -> None:
    """Move all rows by `actions` [B, 1], with memory and score."""
    for row in range(state.x.size):
        move(state, tables, row, int(actions[row, 0]))


@kernel
def reward_all(state: GorgeState, tables: GorgeTables, actions: Floats32, buffers: Any) -> None:
    """Earn what all rows would where up bumps and any other of `actions` [B, 1] stays."""
    for row in range(state.x.size):
        cell = SIDE * state.x[row] + state.z[row]
        bumped, there = actions[row, 0] == 0.0, state.left[row]
        deed = MoveResult(cell, cell, bumped, False, 1, there, 0.0, 0.0, 0.0)
        buffers.rewards[row] = reward_of(state, tables, row, deed)


@kernel
def observe_all(state: GorgeState, tables: GorgeTables, observations: Floats32) -> None:
    """Write the `observations` [B, D] of all rows."""
    for row in range(state.x.size):
        observe(state, tables, observations, row)


@kernel
def begin_all(state: GorgeState, tables: GorgeTables, buffers: Any) -> None:
    """Begin the next episode in all rows, with its first observation."""
    for row in range(state.x.size):
        begin_row(state, tables, buffers, row)
