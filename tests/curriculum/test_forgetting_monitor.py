"""What earlier lessons passed is watched on, and acted upon once."""

import json

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line

from aimbot_lab.curriculum.current_lesson import ForgettingMonitor, Regression
from aimbot_lab.curriculum.evidence import EvidenceTest, Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import ForgettingSettings
from aimbot_lab.foundation.episodes import Cell

ONE, TWO = Cell("goto", 1), Cell("goto", 2)
EVERY = {"threshold": 0.8, "scope": "every_cell"}


def watching(floor: float = 0.8, **changes: object) -> ForgettingMonitor:
    monitor = ForgettingMonitor(
        ForgettingSettings(**changes), [lesson("a"), lesson("b"), lesson("c")]
    )  # type: ignore[arg-type]
    monitor.take({ONE: floor})
    monitor.begin_lesson(2)
    return monitor


def regressions(monitor: ForgettingMonitor, wins: np.ndarray) -> list[Regression]:
    found = [monitor.count(Outcome(bool(won), ONE)) for won in wins]
    return [regression for regression in found if regression is not None]


def wins(rate: float, episodes: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random(episodes) < rate


@pytest.mark.parametrize("action", ["ignore", "rehearse"])
def test_a_lost_cell_is_reported_once_and_so_is_its_return(action: str) -> None:
    monitor = watching(on_forgetting=action)
    assert regressions(monitor, wins(0.9, 2000)) == []
    (lost,) = regressions(monitor, wins(0.3, 3000))
    assert (lost.kind, lost.action, lost.target, lost.difficulty) == ("lost", action, "goto", 1)
    assert lost.win_rate < 0.5
    assert 0.3 < lost.upper < 0.85
    assert lost.log_evidence >= lost.log_bound
    assert monitor.shares([ONE]) == ({ONE: 0.25} if action == "rehearse" else {})
    (back,) = regressions(monitor, wins(0.95, 2000))
    assert (back.kind, back.action) == ("back", action)
    assert monitor.shares([ONE]) == {}


def test_a_steady_agent_is_reported_no_more_often_than_stated() -> None:
    reported = 0
    for agent in range(4):
        monitor = watching(alpha=0.05)
        reported += bool(regressions(monitor, wins(0.8, 12_500, seed=agent)))
    assert reported == 0  # 50,000 episodes; a report has a chance of 0.025 an agent
    test = EvidenceTest(1 - 0.8, 0.05 / 2)
    lost = np.random.default_rng(4).random((100_000, 20)) >= 0.8
    share = (test.trace(lost) >= test.log_bound).any(axis=0).mean()
    assert share <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 20)


def test_questions_share_one_alpha_and_later_lessons_raise_the_floor_and_never_lower_it() -> None:
    monitor = ForgettingMonitor(ForgettingSettings(alpha=0.04), [lesson("a"), lesson("b")])
    for passed in {ONE: 0.5}, {ONE: 0.7, TWO: 0.01}, {ONE: 0.6}:
        monitor.take(passed)
    watches = monitor.state()["watches"]
    assert [(watch["cell"], watch["floor"]) for watch in watches] == [(["goto", 1], 0.7)]
    monitor.take({Cell("goto", level): 0.7 for level in range(2, 6)})
    alphas = [watch["alpha"] for watch in monitor.state()["watches"]]
    np.testing.assert_allclose(alphas, [0.04 / (n * (n + 1)) for n in range(2, 7)])


def test_a_cell_with_other_parameters_is_another_task() -> None:
    lessons = [lesson("a"), lesson("b", parameters={"move_speed": 4.0}), lesson("c")]
    monitor = ForgettingMonitor(ForgettingSettings(), lessons)
    monitor.take({ONE: 0.8})
    seen = []
    for number in range(3):
        monitor.begin_lesson(number)
        seen.append(ONE in monitor.cells)
    assert seen == [True, False, True]


def passed_one(action: str, mix: dict[str, tuple[float, ...]] = TWO_CELLS) -> Game:
    """A curriculum in its second lesson, whose first was difficulty 1."""
    lessons = [
        lesson("a", difficulty=EASY, criteria=EVERY),
        lesson("b", difficulty=mix, criteria=EVERY),
    ]
    settings = ForgettingSettings(on_forgetting=action)  # type: ignore[arg-type]
    game = Game(CurriculumProgress(lessons, DIFFICULTIES, forgetting=settings))
    game.play(*[line(True)] * 40)
    assert game.progress.lesson == 1
    game.begin_next()
    return game


def test_a_cell_that_the_mix_has_no_more_is_drawn_now_and_then() -> None:
    only_two = {"goto": (0.0, 1.0, 0.0, 0.0, 0.0)}
    game = passed_one("ignore", only_two)
    assert game.progress.scenario.difficulty["goto"] == pytest.approx((0.02, 0.98, 0, 0, 0))
    game.play(*[line(False, 1)] * 60)
    assert game.progress.view.episodes == 0
    assert [regression.kind for regression in game.progress.regressions] == ["lost"]


def test_rehearsal_draws_a_lost_cell_more_often_and_counts_it_no_more_than_before() -> None:
    game = passed_one("rehearse")
    game.play(*[line(False, 1)] * 60)
    assert [regression.action for regression in game.progress.regressions] == ["rehearse"]
    assert game.progress.wants_scenario
    assert game.progress.scenario.difficulty["goto"] == pytest.approx((0.625, 0.375, 0, 0, 0))
    game.begin_next()
    before = game.progress.view.episodes
    game.play(*[line(True, 1)] * 1000, *[line(False, 2)] * 600)
    cells = {cell.difficulty: cell for cell in game.progress.cell_reports}
    counted = game.progress.view.episodes - before
    assert counted == pytest.approx(600 + 1000 * 0.375 / 0.625, abs=60)
    assert cells[2].wins == 0
    assert [regression.kind for regression in game.progress.regressions] == ["lost", "back"]
    game.begin_next()
    assert game.progress.scenario.difficulty["goto"] == (1, 1, 0, 0, 0)


def test_demotion_goes_back_once_and_rehearses_after_that() -> None:
    game = passed_one("demote")
    assert game.play(*[line(False, 1)] * 60).decision == "demote"
    assert game.progress.lesson == 0
    game.begin_next()
    game.play(*[line(True)] * 40)
    assert game.progress.lesson == 1
    game.begin_next()
    game.play(*[line(False, 1)] * 200)
    assert [regression.action for regression in game.progress.regressions] == ["demote", "rehearse"]
    assert game.progress.lesson == 1


def test_a_stored_guard_goes_on_as_if_never_stopped() -> None:
    outcomes = np.concatenate([wins(0.9, 300), wins(0.2, 100), wins(0.97, 300)])
    for stop in (0, 250, 330, 350, 450, 699):
        whole, before = (watching(on_forgetting="rehearse") for _ in range(2))
        expected = regressions(whole, outcomes)
        found = regressions(before, outcomes[:stop])
        after = ForgettingMonitor(ForgettingSettings(on_forgetting="rehearse"), [lesson("a")] * 3)
        after.resume(json.loads(json.dumps(before.state())))
        assert after.state() == before.state()
        assert found + regressions(after, outcomes[stop:]) == expected
        assert after.state() == whole.state()
        assert [regression.kind for regression in expected] == ["lost", "back"]
