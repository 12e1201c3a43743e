"""What proves a lesson, with exploration and without, and what its report says."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line

from aimbot_lab.cli.commands.explain import _texts
from aimbot_lab.curriculum.current_lesson import episodes_needed
from aimbot_lab.curriculum.evidence import EvidenceTest, Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.reports import LessonReport
from aimbot_lab.curriculum.rule_replay import RecordedRun, replays
from aimbot_lab.curriculum.rules import CompletionCriteria, evidence_test
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.world import Scenario
from tests.episode_batches import ended_batch

REWARD = {"measure": "reward", "threshold": 2.0, "reward_range": (-10.0, 10.0)}


ML_AGENTS = {"rule": "ml-agents", "signal_smoothing": False}


def passed(seed: int, *, rate: float, learns: bool = False, **criteria: object) -> Game:
    """A game that ended with its only lesson passed, of an agent that stands still or learns."""
    mix = lesson("a", difficulty=TWO_CELLS, criteria=criteria)
    game, generator = Game(CurriculumProgress([mix], DIFFICULTIES)), np.random.default_rng(seed)
    for number in range(40_000):
        now = rate * min(1.0, number / 1500) if learns else rate
        game.play(line(bool(generator.random() < now), 1 + number % 2), step=number)
        if game.progress.finished:
            return game
    raise AssertionError("never passed")


@pytest.mark.parametrize(
    ("scope", "threshold", "rate", "length", "learns"),
    [
        ("pooled", 0.3, 0.7, 0, True),
        ("pooled", 0.6, 0.9, 700, True),
        ("pooled", 0.95, 0.995, 100, False),
        ("every_cell", 0.3, 0.7, 100, False),
        ("every_cell", 0.6, 0.9, 0, True),
        ("every_cell", 0.95, 0.995, 0, False),
    ],
)
def test_the_interval_of_a_passed_lesson_lies_above_its_threshold(
    scope: str, threshold: float, rate: float, length: int, learns: bool
) -> None:
    asked = {"threshold": threshold, "min_lesson_length": length, "scope": scope}
    progress = passed(3, rate=rate, learns=learns, **asked).progress
    (report,), cells = progress.lesson_reports, progress.cell_reports
    for shown in (report, *(cells if scope == "every_cell" else ())):
        assert shown.win_rate is not None
        assert threshold <= shown.lower < shown.win_rate <= shown.upper == 1.0
    assert report.threshold == threshold
    assert report.measure == "win_rate"
    assert report.evidence >= report.evidence_needed == pytest.approx(20)
    assert report.episodes >= max(length, report.window)


def test_its_lower_end_is_the_highest_threshold_that_would_have_passed_as_well() -> None:
    game = passed(1, rate=0.8, threshold=0.5, min_lesson_length=600)
    won = np.array([one.outcome.won for one in game.record.episodes])
    (report,) = game.progress.lesson_reports
    below, above = (EvidenceTest(report.lower + by, 0.05) for by in (-1e-6, 1e-6))
    assert below.trace(won)[-1] >= below.log_bound > above.trace(won)[-1]
    assert report.lower > 0.7
    assert report.win_rate == won[-report.window :].mean()


def test_reports_go_on_from_a_stored_curriculum() -> None:
    lessons = [lesson("a", difficulty=EASY), lesson("b", criteria={"threshold": 0.4})]
    whole, before = (CurriculumProgress(lessons, DIFFICULTIES) for _ in range(2))
    won = np.random.default_rng(2).random(600) < 0.35
    for progress in (whole, before):
        game = Game(progress)
        game.play(*[line(True)] * 10, step=1)
        game.begin_next()
        game.play(*[line(bool(one)) for one in won], step=2)
    after = CurriculumProgress(lessons, DIFFICULTIES)
    after.resume(json.loads(json.dumps(before.state())))
    for progress in (whole, after):
        game = Game.__new__(Game)
        game.progress, game.rank, game.kept, game.scenario = progress, 610, {}, 2
        game.play(*[line(True)] * 100, step=4)
        assert progress.finished
    assert after.lesson_reports == whole.lesson_reports


def test_a_state_of_an_earlier_version_has_the_reports_that_it_kept() -> None:
    progress = CurriculumProgress([lesson("a"), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True)] * 10, step=7)
    game.begin_next()
    game.play(*[line(True)] * 5, step=8)
    state = progress.state()
    del state["reports"]
    after = CurriculumProgress([lesson("a"), lesson("b")], DIFFICULTIES)
    after.resume(json.loads(json.dumps(state)))
    first, second = after.lesson_reports
    assert (first.ended_at_step, first.episodes, first.win_rate, first.threshold) == (
        *(7, 10, 1.0),
        None,
    )
    assert (second.threshold, second.episodes) == (0.3, 5)
    game = Game.__new__(Game)
    game.progress, game.rank, game.kept, game.scenario = after, 15, {}, 2
    game.play(*[line(True)] * 5, step=9)
    second = after.lesson_reports[1]
    assert (second.ended_at_step, second.lower, second.upper) == (9, 0.3, 1.0)


@pytest.mark.parametrize(
    ("criteria", "asked", "found"),
    [
        ({"scope": "every_cell"}, "win rate > 30 % (each cell)", "4,783 of 20"),
        ({**REWARD, "alpha": 0.01}, "reward > 2", "125 of 100"),
        ({"measure": "score", "threshold": 0.4}, "score > 0.4", "348 of 20"),
        ({**ML_AGENTS, "threshold": 0.4}, "win rate > 40 %", "100 % (no test)"),
        ({"measure": "progress", "threshold": 0.02}, "progress > 0.02", "0.021 (no test)"),
    ],
)
def test_every_rule_says_what_it_asked_for_and_what_it_found(
    criteria: dict[str, object], asked: str, found: str
) -> None:
    lessons = [lesson("a", difficulty=EASY, criteria=criteria), lesson("b")]
    progress = CurriculumProgress(lessons, DIFFICULTIES, total_steps=1000)
    game = Game(progress)
    for step in range(1, 400):
        game.play(line(True, reward=6.0), step=step)
        if progress.lesson:
            break
    first, second = progress.lesson_reports
    assert (first.asked, first.found) == (asked, found)
    assert (second.asked, second.found) == ("win rate > 30 %", "1 of 20")
    old = LessonReport("old", 10, 5, 5, 1.0, 0.5, 1.0)
    assert (old.asked, old.found, old.proof()) == ("", "", "")


def held(criteria: dict[str, object], *, episodes: int, won: bool = False, step: int = 660) -> str:
    progress = CurriculumProgress(
        [lesson("a", difficulty=TWO_CELLS, criteria=criteria)], DIFFICULTIES, total_steps=1000
    )
    lines = [line(won, 1 + number % 2, reward=float(won)) for number in range(episodes)]
    Game(progress).play(*lines, step=step)
    assert not progress.finished
    if progress.missing:
        assert progress.held_back_by() == ()
    return progress.missing


def test_what_is_missing_names_the_measure_and_no_cell_that_it_does_not_ask() -> None:
    progress = {"measure": "progress", "threshold": 0.5, "min_lesson_length": 100}
    assert held(progress, episodes=98) == "2 of 100 episodes"
    assert held({**progress, "rule": "ml-agents"}, episodes=98) == "2 of 100 episodes"
    assert held(progress, episodes=0, step=300) == (
        "progress over 0.5 (reached 0.3) and 100 of 100 episodes"
    )
    reward = {**ML_AGENTS, "measure": "reward", "threshold": 0.8, "min_lesson_length": 10}
    assert held(reward, episodes=20) == "reward over 0.8 (reached 0)"
    assert held({**REWARD, "threshold": 0.8}, episodes=20) == (
        "evidence that reward exceeds 0.8 (0.806 of 20)"
    )
    assert held({"min_lesson_length": 1000}, episodes=400, won=True) == "600 of 1,000 episodes"
    assert held({}, episodes=30) == ""  # held back by its cells
    assert held({"threshold": 0.5, **ML_AGENTS}, episodes=30) == "win rate over 50 % (reached 0 %)"


def test_under_a_rule_that_counts_ends_the_episodes_are_those_that_ended() -> None:
    criteria = {"rule": "ml-agents", "measure": "progress", "threshold": 0.01}
    lessons = [lesson("a", criteria={**criteria, "min_lesson_length": 100}), lesson("b")]
    progress = CurriculumProgress(lessons, DIFFICULTIES, total_steps=1000)
    game = Game(progress)
    game.rank = 2  # two episodes that began first still run
    ended = ended_batch([line(True)] * 100, order=range(2, 102), running=[0, 1])
    progress.add(ended, step=500)
    assert progress.lesson == 1
    assert progress.lesson_reports[0].episodes == 100


class Agent:
    """Wins such a share of its greedy episodes, another share each time it is asked."""

    def __init__(self, *shares: float) -> None:
        self.shares = list(shares)
        self.asked: list[Scenario] = []

    def __call__(self, scenario: Scenario, episodes: int) -> Sequence[Outcome]:
        self.asked.append(scenario)
        share = self.shares.pop(0)
        won = np.arange(episodes) % 10 < 10 * share
        return [Outcome(one, None) for one in won.tolist()]


def game_of(agent: Agent, lessons: Sequence[Lesson]) -> Game:
    game = Game(CurriculumProgress(lessons, DIFFICULTIES, total_steps=10_000))
    game.progress.greedy.play = agent
    return game


def won_episodes(game: Game, count: int) -> list[str]:
    """Decisions of so many checks, all episodes won."""
    decisions = []
    for number in range(count):
        check = game.play(line(True, 1 + number % 2), step=number + 1)
        decisions.append(check.decision if check else "none")
        game.begin_next()
        if check is not None and check.decision != "stay":
            break
    return decisions


def test_a_lesson_ends_once_the_agent_proves_it_without_exploration() -> None:
    criteria = {"threshold": 0.6, "min_lesson_length": 50}
    lessons = [lesson("a", difficulty=TWO_CELLS, criteria=criteria), lesson("b")]
    agent = Agent(0.5, 0.9)
    game = game_of(agent, lessons)
    decisions = won_episodes(game, 100)
    assert decisions == ["stay"] * 99 + ["promote"]
    first, second = game.progress.greedy.take()
    assert (first.passed, second.passed) == (False, True)
    assert first.played == second.played == 500
    assert first.line == (
        "enough evidence while it explores, but without exploration it won 250 of 500 episodes: "
        "the lesson continues and its evidence starts over"
    )
    kinds = [(event["kind"], event["episodes"]) for event in game.record.events]
    assert kinds == [("greedy", 50), ("greedy", 100), ("lesson", 100)]


def test_a_replay_of_the_record_ends_the_lesson_where_the_run_did() -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS), lesson("b")]
    game = game_of(Agent(0.0, 0.1, 1.0), lessons)
    assert won_episodes(game, 60)[-1] == "promote"
    found = next(replays(game.record, RecordedRun(tuple(lessons), DIFFICULTIES, 1, 10_000)))
    assert found.own is not None
    assert found.own.agrees
    taken_back = [one for one in found.own.checks if found.attempt.refused(one)]
    assert [one.decision for one in taken_back] == ["stay", "stay"]
    assert all(found.own.reached(one) for one in taken_back)


def test_explain_tells_what_was_not_shown_without_exploration() -> None:
    lessons = (lesson("a", difficulty=TWO_CELLS), lesson("b"))
    game = game_of(Agent(0.0, 1.0), lessons)
    won_episodes(game, 60)
    world = RecordedRun(lessons, DIFFICULTIES, 1, 10_000)
    explained = Explanation("3f2a", "a run", world, tuple(replays(game.record, world)))
    text = "\n".join(_texts(explained, every=False))
    assert "enough, but not without exploration" in text
    assert "without exploration it won 0 of 500 episodes: the lesson continues" in text
    assert "without exploration it won 500 of 500 episodes, which proves the lesson as well" in text


def test_where_every_cell_must_pass_each_plays_by_itself() -> None:
    criteria = {"threshold": 0.6, "scope": "every_cell"}
    lessons = [lesson("a", difficulty=TWO_CELLS, criteria=criteria)]
    agent = Agent(1.0, 0.5, 1.0, 1.0)
    game = game_of(agent, lessons)
    assert won_episodes(game, 200)[-1] == "finish"
    drawn = [one.difficulty["goto"] for one in agent.asked]
    easy, hard = (1.0, 0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0, 0.0)
    assert drawn == [easy, hard, easy, hard]


@pytest.mark.parametrize(
    "criteria",
    [
        {"greedy_proof": False},
        {"measure": "progress", "threshold": 0.001},
    ],
)
def test_nothing_is_asked_where_no_evidence_decides_or_none_is_wanted(
    criteria: dict[str, object],
) -> None:
    agent = Agent()
    game = game_of(agent, [lesson("a", criteria=criteria), lesson("b")])
    assert won_episodes(game, 40)[-1] == "promote"
    assert agent.asked == []


@pytest.mark.parametrize("threshold", [0.1, 0.9, 0.9995])
def test_an_agent_that_always_wins_passes_with_half_of_the_episodes(threshold: float) -> None:
    criteria = CompletionCriteria(threshold=threshold)
    episodes, test = episodes_needed(criteria), evidence_test(criteria)
    assert episodes >= 500
    assert test.trace(np.ones(episodes // 2, np.bool_))[-1] >= test.log_bound
