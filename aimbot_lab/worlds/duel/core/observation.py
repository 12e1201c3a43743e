"""What a seat sees: the arena's 13 numbers, its own health and wounds, rays, in its own frame.

The opponent is told where a ray within range hits it, and nowhere else.
"""

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.lanes import LANES, bits_of, load, spread
from aimbot_lab.worlds.arena.core.observation import write_head, write_labels
from aimbot_lab.worlds.arena.core.rays import ray_count
from aimbot_lab.worlds.arena.core.state import AT, NO_HIT, OWN, TAG_KINDS, WALL_HIT
from aimbot_lab.worlds.duel.core.state import (
    HEALTH,
    OPPONENT_COLUMNS,
    DuelState,
    DuelTables,
    Floats32,
)

PLAYER_TAG = np.float32(2.0)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@inlined
def observe(
    state: DuelState, tables: DuelTables, observations: Floats32, seat: int, other: int
) -> None:
    """Write the observation of `seat` into `observations` [N, D]; its rays must be cast."""
    write_head(state.seats, observations, seat, 0)
    observations[seat, len(OWN)] = state.health[seat] / state.traits[seat, HEALTH]
    observations[seat, len(OWN) + 1] = state.hit_from[seat, 0]
    observations[seat, len(OWN) + 2] = state.hit_from[seat, 1]
    at = len(OWN) + 3
    for agent in (seat, other):
        for k in range(tables.observed.size):
            observations[seat, at] = share_of(state, tables, agent, tables.observed[k])
            at += 1
    if tables.shows_opponent:
        write_opponent(state, observations, seat, other, at)
        at += OPPONENT_COLUMNS
    if tables.arena.one_hot:
        write_one_hot(state, tables, observations, seat, at)
    else:
        write_labels(state.seats, tables.arena, observations, seat, at, PLAYER_TAG)


@inlined
def share_of(state: DuelState, tables: DuelTables, seat: int, trait: int) -> float:
    """A trait v as v / (v + u), u what the settings say: 0 to 1, and 0.5 for the usual."""
    value = state.traits[seat, trait]
    return value / (value + tables.usual[trait]) if value > 0.0 else 0.0


@inlined
def sees(state: DuelState, seat: int) -> bool:
    """Whether a ray within range hits the opponent.

    Lanes beyond the last ray look along the middle one and hit what it hits.
    """
    seats = state.seats
    limit = spread(np.float32(seats.parameters[seat, AT.rays_range]))
    first_enemy = spread(np.int32(0))
    found = 0
    for first in range(0, seats.ray_cos.shape[1], LANES):
        near = load(seats.ray_distance, seat, first) <= limit
        found |= bits_of(near & (load(seats.ray_hit, seat, first) >= first_enemy))
    return found != 0


@inlined
def write_opponent(
    state: DuelState, observations: Floats32, seat: int, other: int, at: int
) -> None:
    """The opponent as a unit from column `at` on, zeros where it is not seen."""
    for column in range(at, at + OPPONENT_COLUMNS):
        observations[seat, column] = ZERO
    if not sees(state, seat):
        return
    seats = state.seats
    x = seats.enemies[seat, 0, 0] - seats.position[seat, 0]
    z = seats.enemies[seat, 0, 1] - seats.position[seat, 1]
    sine, cosine = seats.ahead[seat, 0], seats.ahead[seat, 1]
    looks_x, looks_z = -seats.ahead[other, 0], -seats.ahead[other, 1]
    observations[seat, at] = x * sine + z * cosine
    observations[seat, at + 1] = x * cosine - z * sine
    observations[seat, at + 2] = state.health[other] / state.traits[other, HEALTH]
    observations[seat, at + 3] = looks_x * sine + looks_z * cosine
    observations[seat, at + 4] = looks_x * cosine - looks_z * sine
    observations[seat, at + 5] = ONE


@inlined
def write_one_hot(
    state: DuelState, tables: DuelTables, observations: Floats32, seat: int, at: int
) -> None:
    """Three numbers per ray, all 0 where nothing was hit, then one distance per ray."""
    seats, rays = state.seats, ray_count(tables.arena)
    limit = np.float32(seats.parameters[seat, AT.rays_range])
    for ray in range(rays):
        seen = seats.ray_distance[seat, ray] <= limit
        hit = seats.ray_hit[seat, ray] if seen else NO_HIT
        first = at + TAG_KINDS * ray
        observations[seat, first] = ONE if hit == WALL_HIT else ZERO
        observations[seat, first + 1] = ZERO
        observations[seat, first + 2] = ONE if hit >= 0 else ZERO
        distance = seats.ray_distance[seat, ray] if seen else ZERO
        observations[seat, at + TAG_KINDS * rays + ray] = distance
