"""The interval of a lesson's win rate holds although the lesson is stopped when it looks good."""

import os

import numpy as np
import numpy.typing as npt
import pytest

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.evidence import EvidenceTest, Outcome
from aimbot_lab.curriculum.reports import LessonReport, cell_reports, lesson_report
from aimbot_lab.curriculum.rules import CompletionCriteria, MlAgentsMemory
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import Cell

LESSONS = int(os.environ.get("AIMBOT_LAB_STOPPED_LESSONS", "150"))  # of each case
LONGEST = 3000  # episodes after which a lesson is given up
THRESHOLD, LEAST = 0.7, 100
CELLS = Cell("goto", 1), Cell("goto", 2)
CRITERIA = CompletionCriteria(threshold=THRESHOLD, min_lesson_length=LEAST)
LESSON = Lesson(name="one", targets={"goto": 1.0}, completion_criteria=CRITERIA)

Outcomes = npt.NDArray[np.bool_]  # [episodes]


def stopped(won: Outcomes) -> int:
    """After how many episodes the lesson is passed, or all where it is not."""
    log_evidence = EvidenceTest(THRESHOLD, CRITERIA.alpha).trace(won)
    passed = np.flatnonzero(log_evidence[LEAST - 1 :] >= -np.log(CRITERIA.alpha))
    return LEAST + int(passed[0]) if passed.size else len(won)


def shown(won: Outcomes) -> CurrentLesson:
    lesson = CurrentLesson(LESSON, CELLS, memory=MlAgentsMemory([CRITERIA]))
    for number, one in enumerate(won.tolist()):
        lesson.show(Outcome(one, CELLS[number % 2]))
    return lesson


def reports(rates: npt.NDArray[np.float64]) -> list[tuple[LessonReport, float]]:
    """Of many lessons their reports, each with the true mean rate of the episodes it is about."""
    generator = np.random.default_rng(8)
    found = []
    for _ in range(LESSONS):
        won = generator.random(len(rates)) < rates
        end = stopped(won)
        report = lesson_report(shown(won[:end]), step=end)
        found.append((report, float(rates[end - report.window : end].mean())))
    return found


def share_held(found: list[tuple[LessonReport, float]]) -> float:
    return float(np.mean([report.lower <= true <= report.upper for report, true in found]))


@pytest.mark.parametrize("rate", [0.72, 0.75, 0.8, 0.9])
def test_it_holds_the_true_rate_of_an_agent_that_stands_still(rate: float) -> None:
    assert share_held(reports(np.full(LONGEST, rate))) >= 0.94


def test_it_holds_the_mean_rate_of_an_agent_that_learns_meanwhile() -> None:
    learning = 0.2 + 0.7 * np.arange(LONGEST) / LONGEST
    assert share_held(reports(learning)) >= 0.94


def test_it_says_more_than_that_the_lesson_was_passed() -> None:
    for rate, widest in ((0.75, 0.18), (0.9, 0.22)):
        widths = [report.upper - report.lower for report, _ in reports(np.full(LONGEST, rate))]
        assert np.median(widths) < widest


def test_of_an_agent_that_has_learned_the_window_leaves_out_the_beginning() -> None:
    won = np.concatenate([np.zeros(2000, np.bool_), np.ones(256, np.bool_)])
    report = lesson_report(shown(won), step=1)
    assert report.window < 500
    assert report.lower > 0.4


def test_looking_at_a_running_lesson_after_every_episode_misleads_seldom() -> None:
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(30):
        lesson = CurrentLesson(LESSON, CELLS, memory=MlAgentsMemory([CRITERIA]))
        looks = []
        for number, won in enumerate((generator.random(600) < 0.75).tolist()):
            lesson.show(Outcome(won, CELLS[number % 2]))
            if number % 10 == 9:
                looks += [lesson_report(lesson, step=None), *cell_reports(lesson)]
        missed += any(not look.lower <= 0.75 <= look.upper for look in looks)
    assert missed <= 4  # three intervals, each of which ever misses with 5 % at most
