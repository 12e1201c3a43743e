"""Lessons by score and by rating points: draws count half, and one opponent may be named."""

import numpy as np
import pytest
from curriculum_game import Game, lesson

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.records import read_record
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, chain_faults
from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.result_lines import EpisodeResult, format_result_line

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
