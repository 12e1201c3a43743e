"""Measures and rules are entries of tables: settings name exactly those that there are."""

from typing import get_args

import pytest

from aimbot_lab.curriculum import rules
from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.curriculum.rules import (
    MEASURES,
    RULES,
    CompletionCriteria,
    MlAgentsMemory,
    new_rule,
)
from aimbot_lab.foundation.episodes import Cell

CELLS = (Cell("goto", 0),)


def given(rule: str, measure: str) -> CompletionCriteria:
    span = (-1.0, 2.0) if (rule, measure) == ("evidence", "reward") else None
    against = "goto" if (rule, measure) == ("evidence", "elo") else None
    return CompletionCriteria(
        rule=rule, measure=measure, threshold=0.5, reward_range=span, against=against
    )


def test_settings_name_the_measures_and_rules_that_there_are() -> None:
    assert get_args(rules.MeasureName) == tuple(MEASURES)
    assert get_args(rules.RuleName) == tuple(RULES)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_pair_makes_a_rule_that_takes_episodes(rule: str, measure: str) -> None:
    made = new_rule(given(rule, measure), CELLS, memory=MlAgentsMemory([given(rule, measure)]))
    made.count(Outcome(True, CELLS[0], 1.0))
    made.look(0.2)
    assert not made.passed


def test_a_measure_says_what_an_episode_brings() -> None:
    outcome = Outcome(True, CELLS[0], -3.5)
    brought = {name: measure.value(outcome) for name, measure in MEASURES.items()}
    shares = {"win_rate": True, "progress": True, "score": 1.0, "elo": 1.0}
    assert brought == {**shares, "reward": -3.5}
    assert MEASURES["score"].value(Outcome(False, CELLS[0], 0.0, drawn=True)) == 0.5
    assert [name for name, measure in MEASURES.items() if measure.is_share] == [
        "win_rate",
        "progress",
        "score",
    ]
