"""The duel agrees with the oracle, number for number, over play that meets every rule."""

import os
from collections import Counter

import pytest
from duel_match import KINDS, Comparison

ENOUGH = 9_000  # decisions of matches, in which each case meets what it should
STEPS = int(os.environ.get("AIMBOT_LAB_ORACLE_STEPS", "3000"))
LENGTH = 250  # steps of one comparison
CASES = {
    "as shipped": ({"time_limit": 8.0}, {"rewards.move_penalty": -0.5}),
    "handicaps": (
        {"time_limit": 8.0, "on_timeout": "health", "start": "free"},
        {
            "away.move_speed": 3.0,
            "away.agent_radius": 0.3,
            "away.decision_every": 3.0,
            "away.health": 5.0,
            "damage": 2.0,
            "away.rays.range": 9.0,
            "gun_range": 12.0,
        },
    ),
    "loadouts": (
        {
            "time_limit": 8.0,
            "mirrored_loadouts": False,
            "loadouts": {
                "sniper": {"gun_cooldown": 1.5, "damage": 3.0, "rays.view_angle": 60.0},
                "rifle": {"mouse_limit": 2.0, "spin_threshold": 2.0},
            },
        },
        {"decision_period": 3.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_number_of_every_decision_is_the_oracles(name: str) -> None:
    settings, parameters = CASES[name]
    tally: Counter = Counter()
    rounds = -(-STEPS // len(CASES) // (2 * len(KINDS)))
    for first in range(0, rounds, LENGTH):
        match = Comparison(settings, parameters, seed=first, tally=tally)
        for _ in range(min(LENGTH, rounds - first)):
            match.step()
    for met in ("touches", "hits", "wins", "draws", "losses"):
        assert STEPS < ENOUGH or tally[met] > 0, f"nothing of {met}: {tally}"
    assert tally["grazing"] <= 2 + 1e-4 * tally["decisions"], tally
