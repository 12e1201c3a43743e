"""How a match begins: parameters, layout, and where both agents start."""

import math
from typing import Any

from aimbot_lab.foundation.kernels.draw_parameters import draw_parameters
from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.rng import uniform, uniform_index, weighted_index
from aimbot_lab.worlds.arena.core.motion import look_ahead, nearest_obstacle
from aimbot_lab.worlds.arena.core.rays import cast_rays, spread_fan
from aimbot_lab.worlds.arena.core.state import AT
from aimbot_lab.worlds.duel.core.motion import squared_gap, tell_places
from aimbot_lab.worlds.duel.core.observation import observe, sees
from aimbot_lab.worlds.duel.core.shots import tell_health
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    FACING_TERM,
    HEALTH,
    IN_ARENA,
    MIN_APART,
    NO_SHOT,
    PERIOD,
    RADIUS,
    REWARD_TERMS,
    SEAT_COUNT,
    SHARED_COUNT,
    SPIN_TERM,
    START_GAP,
    START_LOW,
    TIME_LIMIT,
    TIMESTEP,
    TRIES,
    DuelState,
    DuelTables,
    Floats32,
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
