"""The way through the lessons: who counts, what promotes, what is reported."""

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line

from aimbot_lab.curriculum.evidence import MAX_REASONS, OTHER_REASONS
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation.errors import ConfigurationError


def test_wins_promote_and_the_report_says_when() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=EASY), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    checks = [game.play(line(True), step=100 + number) for number in range(10)]
    assert [check.decision for check in checks if check] == ["stay"] * 9 + ["promote"]
    first, second, *_ = progress.lesson_reports
    assert (first.name, first.ended_at_step, first.episodes, first.window) == ("a", 109, 10, 10)
    assert first.win_rate == 1.0
    assert 0.4 < first.lower < first.upper == 1.0
    assert (second.name, second.ended_at_step, second.episodes) == ("b", None, 0)
    assert (second.win_rate, second.lower, second.upper) == (None, 0.0, 1.0)


def test_a_lesson_lasts_its_least_length() -> None:
    criteria = {"min_lesson_length": 40}
    progress = CurriculumProgress([lesson("a", criteria=criteria), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True)] * 39)
    assert progress.lesson == 0
    game.play(line(True))
    assert progress.lesson == 1


def test_losses_do_not_promote() -> None:
    progress = CurriculumProgress([lesson("a"), lesson("b")], DIFFICULTIES)
    check = Game(progress).play(*[line(False)] * 500)
    assert check is not None
    assert check.decision == "stay"
    assert check.statistic < check.bound == pytest.approx(np.log(20))


def test_what_a_batch_holds_beyond_the_promotion_is_not_counted() -> None:
    progress = CurriculumProgress([lesson("a"), lesson("b")], DIFFICULTIES)
    Game(progress).play(*[line(True)] * 50)
    assert progress.lesson_reports[0].episodes == 10
    assert progress.view.episodes == 0


@pytest.mark.parametrize("rule", ["evidence", "ml-agents"])
def test_what_ends_before_the_next_lesson_begins_counts_for_neither(rule: str) -> None:
    criteria = {"rule": rule, "signal_smoothing": False} if rule == "ml-agents" else {}
    lessons = [lesson(name, criteria=criteria) for name in ("a", "b")]
    progress = CurriculumProgress(lessons, DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True)] * 10, step=1)
    assert (progress.lesson, progress.wants_scenario) == (1, True)
    assert game.play(*[line(True)] * 50, step=2) is None or progress.shown == []
    assert (progress.lesson, progress.view.episodes) == (1, 0)
    assert len(game.record.episodes) == 10
    game.begin_next()
    game.play(*[line(True)] * 9, step=3)
    assert (progress.lesson, progress.view.episodes, progress.finished) == (1, 9, False)
    game.play(line(True), step=4)
    assert progress.finished


@pytest.mark.parametrize(("size", "rate"), [(7, 0.7), (300, 0.95)])
def test_how_episodes_are_batched_changes_nothing(size: int, rate: float) -> None:
    generator = np.random.default_rng(2)
    wins = generator.random(300) < rate
    lines = [line(bool(won), d) for won, d in zip(wins, [1, 2] * 150, strict=True)]

    def state_with(size: int) -> object:
        mix = lesson("a", difficulty=TWO_CELLS, criteria={"threshold": 0.7, "scope": "every_cell"})
        game = Game(CurriculumProgress([mix, lesson("b")], DIFFICULTIES))
        for first in range(0, 300, size):
            game.play(*lines[first : first + size])
        return game.progress.state()

    assert state_with(size) == state_with(1)


def test_after_a_promotion_nothing_counts_until_the_next_scenario_begins() -> None:
    progress = CurriculumProgress([lesson("a"), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True)] * 10)
    assert game.play(*[line(True)] * 10) is None
    assert progress.view.episodes == 0
    progress.begin_scenario(2)
    assert game.play(*[line(True)] * 10) is None
    game.scenario = 2
    game.play(*[line(True)] * 5)
    assert progress.view.episodes == 5


def test_an_empty_batch_is_no_check() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    assert Game(progress).play() is None


def test_every_cell_must_pass_by_itself() -> None:
    mix = lesson("a", difficulty=TWO_CELLS, criteria={"scope": "every_cell"})
    progress = CurriculumProgress([mix], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True, 1)] * 200)
    game.play(*[line(False, 2)] * 20)
    assert not progress.finished
    assert progress.view.win_rate.win_rate == pytest.approx(200 / 220)
    assert [(cell.target, cell.difficulty) for cell in progress.held_back_by()] == [("goto", 2)]
    game.play(*[line(True, 2)] * 400)
    assert progress.finished
    assert progress.held_back_by() == ()


def test_pooled_lessons_pass_on_all_episodes_together() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=TWO_CELLS)], DIFFICULTIES)
    Game(progress).play(*[line(True, 1)] * 30)
    assert progress.finished


def test_a_cell_without_episodes_is_what_holds_back() -> None:
    mix = lesson("a", difficulty=TWO_CELLS, criteria={"scope": "every_cell"})
    progress = CurriculumProgress([mix], DIFFICULTIES)
    Game(progress).play(*[line(False, 1)] * 5)
    (cell,) = progress.held_back_by()
    assert (cell.target, cell.difficulty, cell.episodes, cell.win_rate) == ("goto", 2, 0, None)


def test_cells_with_the_same_lowest_win_rate_are_all_named() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=TWO_CELLS)], DIFFICULTIES)
    Game(progress).play(line(False, 1), line(False, 2))
    assert [cell.difficulty for cell in progress.held_back_by()] == [1, 2]
    assert progress.missing == ""


@pytest.mark.parametrize(
    ("criteria", "won", "lacks"),
    [
        ({}, 5, "5 of 10 episodes"),
        ({"threshold": 0.9}, 12, "evidence that win rate exceeds 90 % (1.36 of 20)"),
        ({"measure": "progress", "threshold": 0.5}, 12, "progress over 0.5 (reached 0.12)"),
        (
            {"rule": "ml-agents", "measure": "reward", "threshold": 3},
            12,
            "reward over 3 (reached 1.969)",
        ),
    ],
)
def test_where_no_win_rate_is_too_low_no_cell_is_blamed_and_what_lacks_is_said(
    criteria: dict[str, object], won: int, lacks: str
) -> None:
    mix = lesson("a", difficulty=EASY, criteria=criteria)
    progress = CurriculumProgress([mix], DIFFICULTIES, total_steps=100)
    game = Game(progress)
    for step in range(1, won + 1):
        game.play(line(True, reward=2.0), step=step)
    assert not progress.finished
    assert progress.held_back_by() == ()
    assert progress.missing == lacks


def test_cell_reports_count_the_recent_episodes_of_each_cell() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=TWO_CELLS)], DIFFICULTIES)
    Game(progress).play(*[line(False, 1)] * 600, *[line(True, 2)] * 20, *[line(False, 1)] * 80)
    one, two = progress.cell_reports
    assert (one.episodes, one.wins, two.episodes, two.wins) == (168, 0, 20, 20)
    assert progress.view.episodes == 700
    assert progress.view.window == 700 - 256


def test_the_last_lesson_may_go_without_a_criterion() -> None:
    last = lesson("b", completion_criteria=None)
    progress = CurriculumProgress([lesson("a"), last], DIFFICULTIES)
    game = Game(progress)
    assert not progress.goal_reached
    game.play(*[line(True)] * 10)
    assert progress.goal_reached
    assert not progress.finished
    progress.begin_scenario(1)
    assert game.play(*[line(True)] * 100) is None
    assert progress.view.episodes == 100
    assert progress.view.threshold is None


def test_the_last_criterion_ends_the_curriculum() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    game = Game(progress)
    check = game.play(*[line(True)] * 10, step=7)
    assert check is not None
    assert check.decision == "finish"
    assert progress.finished
    assert progress.goal_reached
    assert progress.lesson == 0
    progress.begin_scenario(1)
    assert game.play(*[line(True)] * 20) is None
    assert [report.episodes for report in progress.lesson_reports] == [10]


def test_a_line_that_does_not_parse_is_no_loss_and_blocks_nothing() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    Game(progress).play("nonsense", line(True), "Warning|Command", line(True))
    assert progress.view.episodes == 2
    assert progress.view.win_rate.win_rate == 1.0
    assert progress.unparsed == {"not a result line": 1, "a command where a result was due": 1}


def test_endless_new_reasons_do_not_fill_the_memory() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    Game(progress).play(*[f"Warning|Result|Win|difficulty=x{number}" for number in range(100)])
    assert len(progress.unparsed) == MAX_REASONS + 1
    assert progress.unparsed[OTHER_REASONS] == 100 - MAX_REASONS


def test_the_short_form_of_a_line_counts_where_cells_are_pooled() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=TWO_CELLS)], DIFFICULTIES)
    Game(progress).play("Warning|Result|Win")
    assert progress.view.episodes == 1
    assert sum(cell.episodes for cell in progress.cell_reports) == 0


def test_the_short_form_of_a_line_is_credited_to_an_only_cell() -> None:
    mix = lesson("a", difficulty=EASY, criteria={"scope": "every_cell"})
    progress = CurriculumProgress([mix], DIFFICULTIES)
    Game(progress).play("Warning|Result|Win")
    assert progress.cell_reports[0].wins == 1


def test_where_every_cell_must_pass_a_line_without_a_cell_is_reported() -> None:
    mix = lesson("a", difficulty=TWO_CELLS, criteria={"scope": "every_cell"})
    progress = CurriculumProgress([mix], DIFFICULTIES)
    Game(progress).play("Warning|Result|Win", line(True, 5))
    assert progress.view.episodes == 0
    assert progress.unparsed == {"names no target and difficulty of the lesson's mix": 2}


def test_the_scenario_spells_out_every_weight() -> None:
    mix = lesson(
        "a", targets={"goto": 2.0, "free": 1.0, "attack": 0.0}, parameters={"move_speed": 4.0}
    )
    scenario = CurriculumProgress([mix], DIFFICULTIES).scenario
    assert scenario.targets == {"goto": 2.0, "free": 1.0}
    assert scenario.difficulty == {"goto": (1.0,) * 5}
    assert scenario.parameters == {"move_speed": 4.0}


def test_targets_without_difficulties_are_one_cell() -> None:
    mix = lesson("a", targets={"free": 1.0, "goto": 1.0}, difficulty=EASY)
    cells = CurriculumProgress([mix], DIFFICULTIES).cell_reports
    assert [(cell.target, cell.difficulty) for cell in cells] == [("free", 0), ("goto", 1)]


def test_lessons_that_make_no_chain_are_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        CurriculumProgress([lesson("a", completion_criteria=None), lesson("a")], DIFFICULTIES)
    assert caught.value.faults == (
        "lessons.0.completion_criteria: is missing; only the last lesson may do without",
        "lessons.1.name: must differ from the name of lessons.0",
    )
