"""Measures and rules: what a lesson may ask for, also by score and points, and what passes it."""

from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, Game, lesson, line
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from aimbot_lab.curriculum import rules
from aimbot_lab.curriculum.evidence import EvidenceTest, Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.rules import MEASURES, RULES, MlAgentsMemory, rule_class
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, chain_faults, lesson_scenario
from aimbot_lab.foundation.episodes import (
    DRAW,
    LOSS,
    WIN,
    Cell,
    EpisodeResult,
    are_alike,
    format_result_line,
    wilson,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import Gaussian, MultiRangeUniform, Uniform
from aimbot_lab.foundation.shown_text import shown_difference, shown_rate

REWARD = {"measure": "reward", "threshold": 2.0, "reward_range": (-10.0, 10.0)}


@pytest.mark.parametrize(
    ("criteria", "fault"),
    [
        ({"threshold": 1.0}, "threshold must be less than 1.0"),
        ({"measure": "progress", "threshold": 1.0}, "less than 1.0 .*; a last lesson without com"),
        ({"measure": "reward", "threshold": 1.0}, "reward_range is missing.*rule: ml-agents"),
        ({**REWARD, "threshold": 10.0}, "reward_range must hold the threshold, 10,"),
        ({"threshold": 0.5, "reward_range": (0, 1)}, "reward_range is for measure: reward"),
        ({"threshold": 0.5, "rule": "ml-agents", "scope": "every_cell"}, "scope must be pooled"),
        ({"measure": "elo", "threshold": 100.0}, "against is missing"),
        ({"measure": "elo", "threshold": 1e5, "against": "goto"}, "threshold must be at most 4000"),
        (
            {"measure": "elo", "threshold": 1.0, "rule": "ml-agents", "against": "goto"},
            "against is for rule: evidence",
        ),
        ({"threshold": 0.5, "against": "goto"}, "against is for measure: score or elo"),
    ],
)
def test_what_no_rule_can_do_is_refused_with_a_way_out(criteria: dict, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        CompletionCriteria(**criteria)


def test_progress_passes_with_the_share_of_the_steps_whose_number_must_be_known() -> None:
    criteria = {"measure": "progress", "threshold": 0.5, "min_lesson_length": 0}
    lessons = [lesson("a", criteria=criteria), lesson("b")]
    with pytest.raises(ConfigurationError, match="total_steps"):
        CurriculumProgress(lessons, DIFFICULTIES)
    progress = CurriculumProgress(lessons, DIFFICULTIES, total_steps=100)
    game = Game(progress)
    game.play(step=50)
    assert progress.lesson == 0
    game.play(step=51)
    assert progress.lesson == 1


def played_rewards(rewards: np.ndarray) -> CurriculumProgress:
    progress = CurriculumProgress([lesson("a", criteria=REWARD), lesson("b")], DIFFICULTIES)
    Game(progress).play(*[line(False, reward=float(reward)) for reward in rewards])
    return progress


def test_a_mean_reward_above_the_threshold_passes_and_one_above_its_range_is_its_end() -> None:
    progress = played_rewards(np.random.default_rng(1).uniform(0, 10, 400))
    assert progress.lesson == 1
    assert progress.lesson_reports[0].episodes < 200
    high, end = (played_rewards(np.full(5, reward)).state() for reward in (1e9, 10.0))
    assert high["open"]["rule"] == end["open"]["rule"]
    assert high["open"]["rule"]["below_range"] == 0
    assert played_rewards(np.full(5, -11.0)).state()["open"]["rule"]["below_range"] == 5


def test_rewards_at_the_threshold_pass_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(2)
    scaled = (np.clip(rng.normal(2.0, 4.0, (2000, 300)), -10, 10) + 10) / 20
    scaled += 0.6 - scaled.mean()  # after the clipping, too
    test = EvidenceTest(0.6, 0.05)
    share = (test.trace(np.maximum(scaled, 0.0)) >= test.log_bound).any(axis=0).mean()
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_a_line_without_a_return_is_no_reward_of_zero() -> None:
    progress = CurriculumProgress([lesson("a", criteria=REWARD)], DIFFICULTIES)
    Game(progress).play(line(True), line(True, reward=3.0))
    assert progress.view.episodes == 1
    assert progress.unparsed == {"carries no return, which the lesson is measured by": 1}
    assert (progress.view.measured.value, progress.view.threshold) == (3.0, None)


@pytest.mark.parametrize(("episodes", "kind"), [(1, "wins"), (256, "rewards"), (700, "wins")])
def test_a_trace_is_bit_by_bit_what_folding_gives(episodes: int, kind: str) -> None:
    rng = np.random.default_rng(episodes)
    values = rng.random((episodes, 2)) if kind == "rewards" else rng.random((episodes, 2)) < 0.8
    test = EvidenceTest(0.7, 0.05)
    evidence = test.start((2,))
    folded = []
    for value in values:
        evidence = test.fold(evidence, value)
        folded.append(test.log_evidence(evidence))
    np.testing.assert_array_equal(test.trace(values), folded)


CELLS = (Cell("goto", 0),)


def criteria_of(rule: str, measure: str) -> CompletionCriteria:
    span = (-1.0, 2.0) if (rule, measure) == ("evidence", "reward") else None
    against = "goto" if (rule, measure) == ("evidence", "elo") else None
    bounds = dict(rule_class(rule, MEASURES[measure]).bounds(MEASURES[measure]))
    threshold = max(0.5, 2.0 * bounds.get("minimum", 0))  # more than one episode brings
    return CompletionCriteria(
        rule=rule, measure=measure, threshold=threshold, reward_range=span, against=against
    )


def test_settings_and_the_page_of_curricula_name_the_measures_and_rules_that_there_are() -> None:
    assert get_args(rules.MeasureName) == tuple(MEASURES)
    assert get_args(rules.RuleName) == tuple(RULES)
    page = (Path(rules.__file__).parents[2] / "curricula" / "README.md").read_text("utf-8")
    table = page.partition("### Measures and rules")[2].partition("\n#")[0]
    for name in MEASURES:
        assert f"| `{name}`" in table
    for name in RULES:
        assert f"| `rule: {name}`" in table or name == "evidence"


def test_every_pair_makes_a_rule_that_takes_episodes() -> None:
    for rule, measure in product(RULES, MEASURES):
        criteria = criteria_of(rule, measure)
        made = criteria.rule_type(criteria, CELLS, MlAgentsMemory([criteria]))
        made.count(Outcome(True, CELLS[0], 1.0))
        made.look(0.2)
        assert not made.passed


def test_a_measure_says_what_an_episode_brings() -> None:
    outcome = Outcome(True, CELLS[0], -3.5)
    brought = {name: measure.value(outcome) for name, measure in MEASURES.items()}
    shares = {"win_rate": True, "progress": True, "score": 1.0, "elo": 1.0}
    assert brought == {**shares, "reward": -3.5}
    assert MEASURES["score"].value(Outcome(False, CELLS[0], 0.0, drawn=True)) == 0.5


def test_a_lesson_that_is_wrong_in_itself_is_passed_over() -> None:
    criteria = CompletionCriteria(threshold=0.5)
    lesson = Lesson(name="a", targets={"goto": 1.0}, completion_criteria=criteria)
    assert list(chain_faults([None, lesson, None])) == []


@pytest.mark.parametrize("sampler", [Uniform(), Gaussian(), MultiRangeUniform()])
def test_a_sampler_reaches_the_scenario_given_as_such_or_as_a_mapping(sampler) -> None:
    for written in (sampler, {"sampler_type": sampler.sampler_type, "sampler_parameters": {}}):
        asked = {"move_speed": written, "gun_range": 3}
        lesson = Lesson(name="a", targets={"free": 1.0}, parameters=asked)
        scenario = lesson_scenario(lesson, {"free": 0})
        assert scenario.parameters == {"move_speed": sampler, "gun_range": 3.0}


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


@pytest.mark.parametrize(
    ("criteria", "ends", "lesson"),
    [
        ({"measure": "score"}, [(DRAW, "greedy"), (WIN, "greedy")], 1),  # 0.75, half of them won
        ({"measure": "win_rate"}, [(DRAW, "greedy"), (WIN, "greedy")], 0),
        ({"measure": "score"}, [(LOSS, "self"), (WIN, "greedy")], 0),
        ({"measure": "score", "against": "greedy"}, [(LOSS, "self"), (WIN, "greedy")], 1),
        ({"measure": "score", "against": "self"}, [(LOSS, "self"), (WIN, "greedy")], 0),
    ],
)
def test_draws_are_half_a_win_and_only_the_named_opponents_episodes_count(
    criteria: dict, ends: list[tuple[int, str]], lesson: int
) -> None:
    assert played({**criteria, "threshold": 0.6}, ends * 60)[0].lesson == lesson


def test_elo_asks_for_the_expected_score_at_so_many_points() -> None:
    won = np.random.default_rng(4).random(700) < 0.75  # 191 points above
    outcomes = [(WIN if one else LOSS, "greedy") for one in won]
    asked = {"measure": "elo", "against": "greedy"}
    assert played({**asked, "threshold": 100.0}, outcomes)[0].lesson == 1
    progress = played({**asked, "threshold": 250.0}, outcomes)[0]
    measured = progress.view.measured
    assert (progress.lesson, measured.measure) == (0, "elo")
    assert measured.value == pytest.approx(191, abs=40)


def test_a_draw_is_recorded_and_read_again() -> None:
    outcomes = [(DRAW, "greedy"), (WIN, "self"), (LOSS, "greedy")]
    _, game = played({"measure": "score", "threshold": 0.6}, outcomes)
    assert [one.outcome.score for one in game.record.episodes] == [0.5, 1.0, 0.0]


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
    assert 0 <= rate.lower <= rate.win_rate <= rate.upper <= 1
    assert rate.lower < rate.upper
    assert (rate.lower, rate.upper) == pytest.approx((1 - mirrored.upper, 1 - mirrored.lower))


def test_without_episodes_nothing_is_known_and_impossible_counts_are_refused() -> None:
    assert wilson(0, 0) == (None, 0.0, 1.0)
    for wins, episodes, confidence in (2, 1, 0.95), (1, 2, 1.0):
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


def test_values_are_alike_that_rounding_tells_apart() -> None:
    assert all(map(are_alike, ([0.1 + 0.2, 0.3, 0.3], [0.0, 0.0], [0.3])))
    assert not are_alike([0.3, 0.3001])
