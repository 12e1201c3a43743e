"""The entry points that `worlds.duel` calls: begin matches, step them, mask choices.

Of a match the home seat has its number, and the away seat that plus the number of matches.
"""

import math
from typing import Any

from aimbot_lab.foundation.kernels.jit import called, inlined, kernel, unpacked
from aimbot_lab.foundation.kernels.rng import (
    draw_parameters,
    uniform,
    uniform_index,
    weighted_index,
)
from aimbot_lab.foundation.kernels.threads import (
    BEGIN,
    STEP,
    STRIDE,
    WorkQueue,
    begins,
    finish,
    take_rows,
    wait_for_workers,
)
from aimbot_lab.worlds.arena.core.motion import look_ahead, nearest_obstacle, turn
from aimbot_lab.worlds.arena.core.rays import NEVER, cast_rays, cool_down, spread_fan
from aimbot_lab.worlds.arena.core.reward import (
    decision_seconds,
    distance_to_view_line,
    facing_by_distance,
    is_over,
    spin_term,
)
from aimbot_lab.worlds.arena.core.state import AT, RayWorkspace
from aimbot_lab.worlds.duel.core.motion import (
    cast_duel_rays,
    shoot_both,
    squared_gap,
    tell_health,
    tell_places,
    walk_both,
)
from aimbot_lab.worlds.duel.core.observation import observe, sees
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    DRAW,
    EVERY,
    FACING_TERM,
    HEALTH,
    HIT,
    HIT_TERM,
    IN_ARENA,
    LOSS,
    MIN_APART,
    MOUSE,
    MOVE_TERM,
    NO_SHOT,
    PERIOD,
    RADIUS,
    REWARD_TERMS,
    RUNNING,
    SEAT_COUNT,
    SHARED_COUNT,
    SPIN_TERM,
    START_GAP,
    START_LOW,
    TIME_LIMIT,
    TIMESTEP,
    TRIES,
    WIN,
    WIN_TERM,
    Bools,
    DuelState,
    DuelTables,
    Floats32,
    LayoutTables,
    MatchLog,
)


@called
def begin_match(
    state: DuelState, tables: DuelTables, scratch: Floats32, buffers: Any, match: int
) -> None:
    """Begin the next match of row `match`.

    Moves the last observations to the final ones and writes those of the new match.
    """
    away = match + state.layout.size
    for seat in (match, away):
        for column in range(buffers.observations.shape[1]):
            buffers.final_observations[seat, column] = buffers.observations[seat, column]
    number(state, tables, match, away)
    draw_parameters(state, tables.scenario, match, tables.rows.first + match)
    equip(state, tables, match, away)
    state.kind[match] = weighted_index(state.streams, match, tables.scenario.kind_weights)
    weights = tables.scenario.difficulty_weights[state.kind[match]]
    level = weighted_index(state.streams, match, weights) + 1
    state.difficulty[match] = level
    chosen = uniform_index(state.streams, match, int(tables.layouts.level_count[level]))
    state.layout[match] = tables.layouts.level_first[level] + chosen
    for seat in (match, away):
        clear(state, seat)
        build(state, tables, seat, state.layout[match])
        spread_fan(state.seats, tables.arena, seat)
    tell_health(state, match, away)
    place_both(state, tables, scratch, match, away)
    for seat, other in ((match, away), (away, match)):
        observe(state, tables, buffers.observations, seat, other)


@inlined
def number(state: DuelState, tables: DuelTables, match: int, away: int) -> None:
    """Give the match its number and rank; each agent's rank is its own."""
    state.episode[match] += 1
    rank = state.clock[0] * tables.rows.total + tables.rows.first + match
    for agent in range(2):
        seat = match if agent == 0 else away
        state.seats.episode[seat] = state.episode[match]
        state.seats.order[seat] = 2 * rank + agent
        state.seats.scenario[seat] = tables.scenario.number[0]


@inlined
def equip(state: DuelState, tables: DuelTables, match: int, away: int) -> None:
    """Write the traits of both: as drawn, then by their loadouts, then the handicaps."""
    shared = -1
    if tables.loadout_weights.size > 0 and tables.mirrored_loadouts:
        shared = weighted_index(state.streams, match, tables.loadout_weights)
    for agent in range(2):
        seat = match if agent == 0 else away
        chosen = shared
        if tables.loadout_weights.size > 0 and not tables.mirrored_loadouts:
            chosen = weighted_index(state.seats.streams, seat, tables.loadout_weights)
        state.loadout[seat] = chosen
        for k in range(SEAT_COUNT):
            value = state.parameters[match, SHARED_COUNT + k]
            if chosen >= 0 and not math.isnan(tables.loadouts[chosen, k]):
                value = tables.loadouts[chosen, k]
            if agent == 1 and tables.scenario.handicap[k]:
                value = state.parameters[match, SHARED_COUNT + SEAT_COUNT + k]
            state.traits[seat, k] = value
    pass_on(state, match, match, away)
    pass_on(state, match, away, match)


@inlined
def pass_on(state: DuelState, match: int, seat: int, other: int) -> None:
    """Write what is in force for `seat` into its row of the arena's parameters."""
    own = state.seats.parameters
    for k in range(SEAT_COUNT):
        if IN_ARENA[k] >= 0:
            own[seat, IN_ARENA[k]] = state.traits[seat, k]
    own[seat, AT.enemy_radius] = state.traits[other, RADIUS]
    own[seat, AT.enemy_hits_to_kill] = state.traits[other, HEALTH]
    own[seat, AT.decision_period] = state.parameters[match, PERIOD]
    own[seat, AT.fixed_timestep] = state.parameters[match, TIMESTEP]
    own[seat, AT.time_limit] = state.parameters[match, TIME_LIMIT]
    own[seat, AT.rewards_facing] = state.parameters[match, FACING_TERM]
    own[seat, AT.rewards_spin_penalty] = state.parameters[match, SPIN_TERM]
    state.health[seat] = int(state.traits[seat, HEALTH])


@inlined
def clear(state: DuelState, seat: int) -> None:
    """Set clock, gun, spin window, what was done last and the terms' sums to a beginning's."""
    seats = state.seats
    seats.decisions[seat] = 0
    seats.gun_ticks[seat] = 0
    seats.spin_sum[seat] = 0
    for k in range(seats.spin_turns.shape[1]):
        seats.spin_turns[seat, k] = 0
    for k in range(ACTION_COLUMNS):
        state.held[seat, k] = 0.0
    for k in range(len(REWARD_TERMS)):
        state.terms[seat, k] = 0.0
        state.earned[seat, k] = 0.0
    for k in range(2):
        state.hit_from[seat, k] = 0.0
    state.mouse[seat] = 0.0
    state.moved[seat] = False
    state.shot[seat] = NO_SHOT


@inlined
def build(state: DuelState, tables: DuelTables, seat: int, layout: int) -> None:
    """Set up the boxes of `layout`, which are the same in both frames."""
    seats, boxes = state.seats, tables.layouts.boxes
    seats.obstacle_count[seat] = tables.layouts.box_count[layout]
    for k in range(tables.layouts.box_count[layout]):
        for side in range(4):
            seats.obstacles[seat, k, side] = boxes[layout, k, side]


@inlined
def place_both(
    state: DuelState, tables: DuelTables, scratch: Floats32, match: int, away: int
) -> None:
    """Draw where both start until that fits, else take the layout's own start; casts the rays."""
    for _ in range(TRIES):
        if tables.mirrored_start:
            draw_mirrored(state, match, away)
        else:
            draw_free(state, match)
            draw_free(state, away)
        if fits(state, match, away):
            look_around(state, scratch, match, away)
            met = sees(state, match) or sees(state, away)
            if state.difficulty[match] == 1 or not met:
                return
    start = tables.layouts.start
    layout = state.layout[match]
    for seat in (match, away):
        stand(state, seat, (start[layout, 0], start[layout, 1], start[layout, 2]))
    look_around(state, scratch, match, away)


@inlined
def stand(state: DuelState, seat: int, pose: tuple[float, float, float]) -> None:
    """Put the agent at (x, z) with a yaw."""
    state.seats.position[seat, 0] = pose[0]
    state.seats.position[seat, 1] = pose[1]
    state.seats.yaw[seat] = pose[2]


@inlined
def draw_mirrored(state: DuelState, match: int, away: int) -> None:
    """One place in the lower half and one yaw towards larger z, for both in their own frames."""
    size = state.seats.parameters[match, AT.floor_size]
    x = START_LOW + (size - 2.0 * START_LOW) * uniform(state.streams, match)
    z = START_LOW + (0.5 * size - START_GAP - START_LOW) * uniform(state.streams, match)
    yaw = math.pi * (0.5 - uniform(state.streams, match))
    stand(state, match, (x, z, yaw))
    stand(state, away, (x, z, yaw))


@inlined
def draw_free(state: DuelState, seat: int) -> None:
    """Any place and any yaw, from the seat's own stream."""
    size = state.seats.parameters[seat, AT.floor_size]
    streams = state.seats.streams
    x = START_LOW + (size - 2.0 * START_LOW) * uniform(streams, seat)
    z = START_LOW + (size - 2.0 * START_LOW) * uniform(streams, seat)
    stand(state, seat, (x, z, math.pi * (1.0 - 2.0 * uniform(streams, seat))))


@inlined
def fits(state: DuelState, match: int, away: int) -> bool:
    """Whether both stand clear of all boxes and far enough apart."""
    seats = state.seats
    for seat in (match, away):
        x, z = seats.position[seat, 0], seats.position[seat, 1]
        radius = seats.parameters[seat, AT.agent_radius]
        _, _, squared = nearest_obstacle(seats, seat, x, z)
        if squared < radius * radius:
            return False
    size = seats.parameters[match, AT.floor_size]
    at_home = seats.position[match, 0], seats.position[match, 1]
    at_away = seats.position[away, 0], seats.position[away, 1]
    return squared_gap(size, (*at_home, *at_away)) >= MIN_APART * MIN_APART


@inlined
def look_around(state: DuelState, scratch: Floats32, match: int, away: int) -> None:
    """Work out what both see from where they stand."""
    tell_places(state.seats, match, away)
    for seat in (match, away):
        look_ahead(state.seats, seat)
        cast_rays(state.seats, scratch, seat)


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
            cast_duel_rays(state.seats, tables.layouts, scratch, match + agent * matches, layout)
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
