"""Shots of both agents at once, and what they do."""

import math

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.arena.core.gun import MISSED as LINE_MISSED
from aimbot_lab.worlds.arena.core.gun import fires, strike
from aimbot_lab.worlds.duel.core.rays import line_to_box_ahead
from aimbot_lab.worlds.duel.core.state import (
    DAMAGE,
    HIT,
    MISSED,
    NO_SHOT,
    SHOOT,
    DuelState,
    LayoutTables,
)


@inlined
def shoot_both(state: DuelState, layouts: LayoutTables, home: int, away: int) -> None:
    """Judge both shots by the poses after the walk, then wound: both may fall at once."""
    for seat in (home, away):
        state.shot[seat] = NO_SHOT
        if fires(state.seats, seat, int(state.held[seat, SHOOT])):
            reach = line_to_box_ahead(state.seats, layouts, seat, state.layout[home])
            state.shot[seat] = HIT if strike(state.seats, seat, reach) != LINE_MISSED else MISSED
    wound(state, home, away)
    wound(state, away, home)
    tell_health(state, home, away)


@inlined
def wound(state: DuelState, seat: int, other: int) -> None:
    """What the shot of `other` does to `seat`."""
    state.hit_from[seat, 0] = 0.0
    state.hit_from[seat, 1] = 0.0
    if state.shot[other] == HIT:
        state.health[seat] = max(state.health[seat] - int(state.traits[other, DAMAGE]), 0)
        seats = state.seats
        x = seats.enemies[seat, 0, 0] - seats.position[seat, 0]
        z = seats.enemies[seat, 0, 1] - seats.position[seat, 1]
        metres = math.sqrt(x * x + z * z)
        sine, cosine = seats.ahead[seat, 0], seats.ahead[seat, 1]
        state.hit_from[seat, 0] = (x * sine + z * cosine) / metres
        state.hit_from[seat, 1] = (x * cosine - z * sine) / metres


@inlined
def tell_health(state: DuelState, home: int, away: int) -> None:
    """Write each one's health as the hits that its opponent has left."""
    state.seats.enemy_hits_left[home, 0] = state.health[away]
    state.seats.enemy_hits_left[away, 0] = state.health[home]
