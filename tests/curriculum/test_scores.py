"""Lessons by score and by rating points, and the interval of a win rate."""

import numpy as np
import pytest
from curriculum_game import Game, lesson
from hypothesis import given, settings
from hypothesis import strategies as st

from aimbot_lab.curriculum.progress import CurriculumProgress, read_record
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, chain_faults
from aimbot_lab.foundation.episodes import (
    DRAW,
    LOSS,
    WIN,
    EpisodeResult,
    are_alike,
    format_result_line,
    wilson,
)
from aimbot_lab.foundation.shown_text import shown_difference, shown_rate

TARGETS = {"greedy": 0, "self": 0}


def played(criteria: dict, outcomes: list[tuple[int, str]]) -> tuple[CurriculumProgress, Game]:
    asked = {"min_lesson_length": 20, **criteria}
    mix = {"targets": {"greedy": 1.0, "self": 1.0}, "criteria": asked}
    progress = CurriculumProgress([lesson("one", **mix), lesson("two", **mix)], TARGETS)
    game = Game(progress)
    for outcome, target in outcomes:
        if progress.lesson == 0:
            game.play(format_result_line(EpisodeResult(outcome, target, 0)))
    return progress, game


def test_draws_count_half_of_a_win() -> None:
    outcomes = [(DRAW, "greedy"), (WIN, "greedy")] * 60  # a score of 0.75, half of them won
    assert played({"measure": "score", "threshold": 0.6}, outcomes)[0].lesson == 1
    assert played({"measure": "win_rate", "threshold": 0.6}, outcomes)[0].lesson == 0


def test_only_the_named_opponents_episodes_count() -> None:
    outcomes = [(LOSS, "self"), (WIN, "greedy")] * 60
    asked = {"measure": "score", "threshold": 0.6}
    assert played(asked, outcomes)[0].lesson == 0
    assert played({**asked, "against": "greedy"}, outcomes)[0].lesson == 1
    assert played({**asked, "against": "self"}, outcomes)[0].lesson == 0


def test_elo_asks_for_the_expected_score_at_so_many_points() -> None:
    random = np.random.default_rng(4)
    won = random.random(700) < 0.75  # 191 points above
    outcomes = [(WIN if one else LOSS, "greedy") for one in won]
    asked = {"measure": "elo", "against": "greedy"}
    assert played({**asked, "threshold": 100.0}, outcomes)[0].lesson == 1
    progress = played({**asked, "threshold": 250.0}, outcomes)[0]
    assert progress.lesson == 0
    measured = progress.view.measured
    assert measured is not None
    assert measured.measure == "elo"
    assert measured.value == pytest.approx(191, abs=40)


def test_a_draw_is_recorded_and_read_again() -> None:
    outcomes = [(DRAW, "greedy"), (WIN, "self"), (LOSS, "greedy")]
    _, game = played({"measure": "score", "threshold": 0.6}, outcomes)
    read = read_record(game.kept["episodes.csv"].decode(), "")
    assert [one.outcome.score for one in read.episodes] == [0.5, 1.0, 0.0]


def test_an_opponent_that_the_lesson_does_not_have_is_refused() -> None:
    criteria = CompletionCriteria(measure="score", threshold=0.6, against="greedy")
    made = Lesson(name="a", targets={"self": 1.0}, completion_criteria=criteria)
    fault = (0, "completion_criteria", "against"), "must be among the lesson's targets (self)"
    assert list(chain_faults([made])) == [fault]


def test_the_interval_agrees_with_newcombe_1998() -> None:
    # Newcombe 1998, doi:10.1002/(SICI)1097-0258(19980430)17:8<857, table I, method 3
    for wins, episodes, lower, upper in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        rate = wilson(wins, episodes)
        assert (rate.lower, rate.upper) == pytest.approx((lower, upper), abs=5e-5)


@settings(max_examples=30)
@given(st.integers(1, 10_000), st.data())
def test_the_interval_holds_the_rate_and_mirrors(episodes: int, data: st.DataObject) -> None:
    wins = data.draw(st.integers(0, episodes))
    rate, mirrored = wilson(wins, episodes), wilson(episodes - wins, episodes)
    assert rate.win_rate is not None
    assert 0 <= rate.lower <= rate.win_rate <= rate.upper <= 1
    assert rate.lower < rate.upper
    assert (rate.lower, rate.upper) == pytest.approx((1 - mirrored.upper, 1 - mirrored.lower))


def test_without_episodes_nothing_is_known() -> None:
    assert wilson(0, 0) == (None, 0.0, 1.0)


@pytest.mark.parametrize(("wins", "episodes", "confidence"), [(2, 1, 0.95), (1, 2, 1.0)])
def test_impossible_counts_are_refused(wins: int, episodes: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="must lie between"):
        wilson(wins, episodes, confidence=confidence)


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((0.99961, 1.0), "[99.9, 100.0]"),
        ((0.0, 0.0004), "[0.0, 0.1]"),
        ((0.838, 0.9999), "[83.8, 100.0]"),  # an upper end may say less than is known
    ],
)
def test_an_interval_is_never_rounded_to_certainty(ends: tuple[float, float], shown: str) -> None:
    assert shown_rate(0.5, *ends) == f"50.0 % {shown}"
    lower, upper = shown.strip("[]").split(", ")
    assert (
        shown_difference(0.5, *ends) == f"+50.0 points [+{lower}, +{upper.replace('0.1', '0.0')}]"
    )


@pytest.mark.parametrize(
    ("values", "alike"),
    [([0.1 + 0.2, 0.3, 0.3], True), ([0.0, 0.0], True), ([0.3], True), ([0.3, 0.3001], False)],
)
def test_values_are_alike_that_rounding_tells_apart(values: list[float], alike: bool) -> None:
    assert are_alike(values) is alike
