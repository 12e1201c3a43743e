"""What recorded episodes of the arena say: actions, endings, goals in words."""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.episodes import WIN
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState

FIRED, HIT = "shots", "hits"  # events
MOVES = ("", "forward", "back")
SIDES = ("", "right", "left")


def goal(state: ArenaState, row: int = 0) -> str:
    """What is to be done in `row` of `state`, and how much of it is left."""
    up = state.enemy_hits_left[row, : state.enemy_count[row]] > 0
    if state.target[row] == core.TARGET.goto:
        x, z, _ = state.fire_base[row] - np.array([*state.position[row], 0.0])
        return f"reach the circle: {np.hypot(x, z):.0f} m away"
    if state.target[row] == core.TARGET.attack:
        left = up & state.enemy_is_target[row, : len(up)]
        return f"shoot those in the circle: {int(left.sum())} left"
    return f"shoot them all: {int(up.sum())} left" if state.target[row] == core.TARGET.free else ""


def action_words(action: Float32Array | None, events: Mapping[str, int]) -> str:
    """What the agent does by `action` [4]; it only shoots where the gun was ready."""
    if action is None:
        return "begins"
    words = [MOVES[int(action[0])], SIDES[int(action[1])]]
    mouse = float(action[3])
    words.append(f"turns {abs(mouse):.1f} {'right' if mouse > 0 else 'left'}" if mouse else "")
    words.append("SHOOTS" if events[FIRED] else "")
    return ", ".join(word for word in words if word) or "waits"


def ending_words(outcome: int, seconds: float) -> str:
    """How an episode of so many seconds ended; it is lost by the time limit alone."""
    return f"WON after {seconds:.1f} s" if outcome == WIN else "LOST: time is up"
