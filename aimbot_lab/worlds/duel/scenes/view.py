"""A match as plain numbers for pages and films, in the home agent's frame."""

from dataclasses import replace
from math import atan2, cos, pi, sin

from aimbot_lab.foundation.scenes import Fighter, SceneView
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.scenes.view import row_view
from aimbot_lab.worlds.duel.core.state import HEALTH, HIT, NO_SHOT, DuelState
from aimbot_lab.worlds.duel.draw import seat_of
from aimbot_lab.worlds.duel.kinds import KINDS, TARGET
from aimbot_lab.worlds.duel.layouts.layout import FLOOR_SIZE
from aimbot_lab.worlds.duel.replays.words import goal

DIGITS = 6  # of metres and radians


def match_view(state: DuelState, match: int, *, rays: int) -> SceneView:
    """Match `match`: what home sees, both agents, and the shots of the last decision."""
    views = [row_view(state.seats, seat_of(state, match, agent), rays=rays) for agent in range(2)]
    home, away = (
        _fighter(state, seat_of(state, match, agent), seen=views[agent], agent=agent)
        for agent in range(2)
    )
    kind = KINDS[int(state.kind[match])]
    what = "Duel" if kind == TARGET else f"Against {kind}"
    return replace(
        views[0],
        target=f"{what}, difficulty {int(state.difficulty[match])}",
        goal=goal(state, match),
        fired=home.fired,
        hit=0 if home.hit else -1,
        fighters=(home, away),
    )


def _fighter(state: DuelState, seat: int, *, seen: SceneView, agent: int) -> Fighter:
    """The agent of `seat`, which sees `seen` in a frame of its own."""
    numbers, shot = state.seats.parameters[seat], int(state.shot[seat])
    x, z, yaw = (
        (FLOOR_SIZE - seen.x, FLOOR_SIZE - seen.z, _wrapped(seen.yaw + pi))
        if agent
        else (seen.x, seen.z, seen.yaw)
    )
    return Fighter(
        x=round(x, DIGITS),
        z=round(z, DIGITS),
        yaw=round(yaw, DIGITS),
        radius=seen.radius,
        view_angle=seen.view_angle,
        health=int(state.health[seat]),
        max_health=int(state.traits[seat, HEALTH]),
        ready=seen.ready,
        reload_seconds=round(
            float(state.seats.gun_ticks[seat] * numbers[arena_core.FIXED_TIMESTEP]), DIGITS
        ),
        fired=shot != NO_SHOT,
        hit=shot == HIT,
        rays=seen.rays,
    )


def _wrapped(angle: float) -> float:
    return atan2(sin(angle), cos(angle))
