"""Measures and rules: what a lesson may ask for, and what it takes to pass."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, Game, lesson, line
from pydantic import ValidationError

from aimbot_lab.curriculum import rules
from aimbot_lab.curriculum.evidence import EvidenceTest, Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.rules import MEASURES, RULES, MlAgentsMemory, rule_class
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, chain_faults, lesson_scenario
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import Gaussian, MultiRangeUniform, Uniform

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


def test_progress_passes_with_the_share_of_the_steps() -> None:
    criteria = {"measure": "progress", "threshold": 0.5, "min_lesson_length": 0}
    lessons = [lesson("a", criteria=criteria), lesson("b")]
    progress = CurriculumProgress(lessons, DIFFICULTIES, total_steps=100)
    game = Game(progress)
    game.play(step=50)
    assert progress.lesson == 0
    game.play(step=51)
    assert progress.lesson == 1


def test_progress_without_a_number_of_steps_is_refused() -> None:
    lessons = [lesson("a", criteria={"measure": "progress", "threshold": 0.5})]
    with pytest.raises(ConfigurationError, match="total_steps"):
        CurriculumProgress(lessons, DIFFICULTIES)


def played_rewards(rewards: np.ndarray) -> CurriculumProgress:
    progress = CurriculumProgress([lesson("a", criteria=REWARD), lesson("b")], DIFFICULTIES)
    Game(progress).play(*[line(False, reward=float(reward)) for reward in rewards])
    return progress


def test_a_mean_reward_above_the_threshold_passes_on_evidence() -> None:
    rewards = np.random.default_rng(1).uniform(0, 10, 400)
    progress = played_rewards(rewards)
    assert progress.lesson == 1
    assert progress.lesson_reports[0].episodes < 200


def test_rewards_at_the_threshold_pass_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(2)
    scaled = (np.clip(rng.normal(2.0, 4.0, (2000, 300)), -10, 10) + 10) / 20
    scaled += 0.6 - scaled.mean()  # after the clipping, too
    test = EvidenceTest(0.6, 0.05)
    share = (test.trace(np.maximum(scaled, 0.0)) >= test.log_bound).any(axis=0).mean()
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_a_reward_above_its_range_counts_as_the_upper_end() -> None:
    high, end = (played_rewards(np.full(5, reward)).state() for reward in (1e9, 10.0))
    assert high["open"]["rule"] == end["open"]["rule"]
    assert high["open"]["rule"]["below_range"] == 0
    assert played_rewards(np.full(5, -11.0)).state()["open"]["rule"]["below_range"] == 5


def test_a_line_without_a_return_is_no_reward_of_zero() -> None:
    progress = CurriculumProgress([lesson("a", criteria=REWARD)], DIFFICULTIES)
    Game(progress).play(line(True), line(True, reward=3.0))
    assert progress.view.episodes == 1
    assert progress.unparsed == {"carries no return, which the lesson is measured by": 1}
    assert progress.view.measured is not None
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


def given(rule: str, measure: str) -> CompletionCriteria:
    span = (-1.0, 2.0) if (rule, measure) == ("evidence", "reward") else None
    against = "goto" if (rule, measure) == ("evidence", "elo") else None
    bounds = dict(rule_class(rule, MEASURES[measure]).bounds(MEASURES[measure]))
    threshold = max(0.5, 2.0 * bounds.get("minimum", 0))  # more than one episode brings
    return CompletionCriteria(
        rule=rule, measure=measure, threshold=threshold, reward_range=span, against=against
    )


def test_settings_name_the_measures_and_rules_that_there_are() -> None:
    assert get_args(rules.MeasureName) == tuple(MEASURES)
    assert get_args(rules.RuleName) == tuple(RULES)


def test_the_page_of_curricula_explains_each_measure_and_rule() -> None:
    page = (Path(rules.__file__).parents[2] / "curricula" / "README.md").read_text("utf-8")
    table = page.partition("### Measures and rules")[2].partition("\n#")[0]
    for name in MEASURES:
        assert f"| `{name}`" in table
    for name in RULES:
        assert f"| `rule: {name}`" in table or name == "evidence"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_pair_makes_a_rule_that_takes_episodes(rule: str, measure: str) -> None:
    criteria = given(rule, measure)
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
def test_a_sampler_reaches_the_scenario_given_as_such_or_as_a_mapping(
    sampler: Uniform | Gaussian | MultiRangeUniform,
) -> None:
    written = {"sampler_type": sampler.sampler_type, "sampler_parameters": {}}
    for given in (sampler, written):
        lesson = Lesson(
            name="a",
            targets={"free": 1.0},
            parameters={"move_speed": given, "gun_range": 3},  # type: ignore[dict-item]
        )
        scenario = lesson_scenario(lesson, {"free": 0})
        assert scenario.parameters == {"move_speed": sampler, "gun_range": 3.0}
