"""The entry points that `worlds.duel` calls: step matches, begin them, mask choices.

Of a match the home seat has its number, and the away seat that plus the number of matches.
"""

from typing import Any

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.packed import unpacked
from aimbot_lab.foundation.kernels.spin_sync import (
    BEGIN,
    STEP,
    STRIDE,
    WorkQueue,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.worlds.arena.core.gun import cool_down
from aimbot_lab.worlds.arena.core.motion import turn
from aimbot_lab.worlds.arena.core.state import RayWorkspace
from aimbot_lab.worlds.duel.core.begin import begin_match
from aimbot_lab.worlds.duel.core.motion import walk_both
from aimbot_lab.worlds.duel.core.observation import observe
from aimbot_lab.worlds.duel.core.rays import cast_rays
from aimbot_lab.worlds.duel.core.result import settle
from aimbot_lab.worlds.duel.core.shots import shoot_both
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    EVERY,
    MOUSE,
    Bools,
    DuelState,
    DuelTables,
    Floats32,
    LayoutTables,
    MatchLog,
)

CHUNKS = 16  # that the matches are taken in, as far as the bounds below allow
LEAST_CHUNK, LONGEST_CHUNK = 8, 128  # matches that a thread takes at a time
MASKS = 8  # vertical 0 to 2, horizontal 0 to 2, attack 0 and 1


@inlined
def acts_now(state: DuelState, seat: int) -> bool:
    """Whether the agent decides; between its decisions it repeats its last action."""
    every = int(state.traits[seat, EVERY])
    return every == 1 or bool(state.seats.decisions[seat] % every == 0)


@inlined
def act(state: DuelState, layouts: LayoutTables, actions: Floats32, match: int, away: int) -> None:
    """Both turn, both walk, both shoot, and time passes."""
    for seat in (match, away):
        if acts_now(state, seat):
            for k in range(ACTION_COLUMNS):
                state.held[seat, k] = actions[seat, k]
        state.mouse[seat] = turn(state.seats, seat, float(state.held[seat, MOUSE]))
    walk_both(state, layouts, match, away)
    shoot_both(state, layouts, match, away)
    for seat in (match, away):
        state.seats.decisions[seat] += 1
        cool_down(state.seats, seat)


@inlined
def see_all(
    state: DuelState,
    tables: DuelTables,
    scratch: Floats32,
    observations: Floats32,
    span: tuple[int, int],
) -> None:
    """Cast the rays of both in matches `span` and write what they see."""
    matches = state.layout.size
    for agent in range(2):
        for match in range(span[0], span[1]):
            layout = state.layout[match]
            cast_rays(state.seats, tables.layouts, scratch, match + agent * matches, layout)
    for agent in range(2):
        to_other = matches if agent == 0 else -matches
        for seat in range(span[0] + agent * matches, span[1] + agent * matches):
            observe(state, tables, observations, seat, seat + to_other)


@inlined
def chunk_of(matches: int) -> int:
    """How many of all `matches` a thread takes at a time."""
    return min(max(matches // CHUNKS, LEAST_CHUNK), LONGEST_CHUNK)


@kernel
def advance_packed(address: int, kind: Any) -> None:
    """`advance_matches` for a `PackedCall`."""
    advance_matches(*unpacked(address, kind))


@inlined
def advance_matches(
    state: DuelState,
    tables: DuelTables,
    actions: Floats32,
    buffers: tuple[Any, Any],
    log: MatchLog,
    workspace: RayWorkspace,
    queue: WorkQueue,
) -> None:
    """Step the matches, begin the next in those that are finished, or both.

    `queue` says what to do and which of the buffers to write, and receives how many matches
    ended; a worker goes on so as long as there is work in time. `actions` [N, 4] must have been
    checked. Writes rewards, finished flags, observations and, where a match ended, `log`.
    """
    worker = workspace.thread_id - 1
    matches = state.layout.size
    while worker < 0 or begins(queue.sync_flags, worker, workspace.spin_limit):
        written = buffers[0] if queue.buffers[0] == 0 else buffers[1]
        first, last = take_rows(queue, workspace.thread_id, matches, chunk_of(matches))
        while first < last:
            ended = 0
            if queue.duty[0] & STEP:
                # Part by part, not match by match: few arrays at a time are walked along, so that
                # the processor fetches what comes next (a fifth less time with 4,096 seats).
                for match in range(first, last):
                    act(state, tables.layouts, actions, match, match + matches)
                see_all(state, tables, workspace.scratch, written.observations, (first, last))
                for match in range(first, last):
                    ended += settle(state, tables, written, log, match, match + matches)
                queue.ended[workspace.thread_id * STRIDE] += ended
            if queue.duty[0] & BEGIN and (ended or not queue.duty[0] & STEP):
                for match in range(first, last):
                    if written.finished[match]:
                        begin_match(state, tables, workspace.scratch, written, match)
            first, last = take_rows(queue, workspace.thread_id, matches, chunk_of(matches))
        if worker < 0:
            wait_for_workers(queue.sync_flags, workspace.spin_limit)
            return
        finish(queue.sync_flags, worker)


@kernel
def mask_held(state: DuelState, masks: Bools) -> None:
    """Leave of `masks` [N, 8] only index 0 to agents that repeat their last action."""
    for seat in range(state.health.size):
        if not acts_now(state, seat):
            for k in range(MASKS):
                masks[seat, k] = k in (0, 3, 6)


@kernel
def move_all(state: DuelState, layouts: LayoutTables, actions: Floats32) -> None:
    """Turn and walk all seats by `actions` [N, 4]."""
    matches = state.layout.size
    for match in range(matches):
        for seat in (match, match + matches):
            for k in range(ACTION_COLUMNS):
                state.held[seat, k] = actions[seat, k]
            turn(state.seats, seat, float(actions[seat, MOUSE]))
        walk_both(state, layouts, match, match + matches)


@kernel
def observe_all(state: DuelState, tables: DuelTables, observations: Floats32) -> None:
    """Write the `observations` [N, D] of all seats."""
    matches = state.layout.size
    for match in range(matches):
        observe(state, tables, observations, match, match + matches)
        observe(state, tables, observations, match + matches, match)


@kernel
def begin_all(state: DuelState, tables: DuelTables, scratch: Floats32, buffers: Any) -> None:
    """Begin the next match in every row, with rays and observations."""
    for match in range(state.layout.size):
        begin_match(state, tables, scratch, buffers, match)
