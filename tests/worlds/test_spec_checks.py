"""A spec that does not agree with itself is found before a world is made."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.world import ObservationBlock
from aimbot_lab.worlds.registry import spec_faults
from tests.worlds.race import race_spec

SPEC = race_spec(2)
BOTH = "observation_low and observation_high have the shapes"
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"observation_low": SPEC.observation_low[:2]}, f"{BOTH} (2,) and (3,); both must be (3,)"),
    (
        {"observation_low": np.array([-3, 4, 0], np.float32)},
        "the lower bound of observation other_1 exceeds the upper",
    ),
    ({"observation_names": ("place", "place", "steps")}, "observation_names must differ"),
    (
        {"blocks": (ObservationBlock("seen", "vector", (2,)),)},
        "blocks hold 2 columns; an observation has 3",
    ),
    ({"branches": (0,)}, "every branch must have at least one choice (got (0,))"),
    ({"branches": (), "action_names": ()}, "there must be a branch or a continuous column"),
    ({"action_names": ("move", "turn")}, "action_names must have 1 names (got 2)"),
    ({"difficulties": {"left": 0}}, "targets and difficulties must have the same keys"),
    ({"reward_terms": ()}, "reward_terms must have at least 1"),
    ({"agents": 0}, "agents must be at least 1 (got 0)"),
    ({"decision_seconds": 0.0}, "decision_seconds must be above 0 (got 0.0)"),
    ({"abilities": frozenset({"fly"})}, "no ability is called 'fly'"),
    ({"episode_columns": ("length",)}, "episode_columns: every world has length already"),
    (
        {"episode_columns": ("seconds",), "result_columns": ("seconds",)},
        "result_columns: every line has seconds already",
    ),
    (
        {"episode_columns": ("far|thest",)},
        "episode_columns: 'far|thest' must be of letters, digits, and the signs _ - .",
    ),
)


@pytest.mark.parametrize(("change", "fault"), WRONG, ids=lambda value: str(value)[:30])
def test_each_fault_of_a_spec_is_a_line(change: dict[str, Any], fault: str) -> None:
    assert list(spec_faults(replace(SPEC, **change))) == [fault]


def test_what_is_no_spec_is_a_line_too() -> None:
    assert list(spec_faults({"agents": 1})) == ["it must be a WorldSpec"]
