"""The way through the lessons: who counts, what proves and promotes, and what is reported."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line

from aimbot_lab.cli.commands.explain import _texts
from aimbot_lab.curriculum.current_lesson import episodes_needed
from aimbot_lab.curriculum.evidence import MAX_REASONS, OTHER_REASONS, EvidenceTest, Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.reports import LessonReport
from aimbot_lab.curriculum.rule_replay import RecordedRun, replays
from aimbot_lab.curriculum.rules import CompletionCriteria, evidence_test
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from tests.episode_batches import ended_batch


def test_wins_promote_and_the_report_says_when() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=EASY), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    assert game.play() is None  # an empty batch is no check
    checks = [game.play(line(True), step=100 + number) for number in range(10)]
    assert [check.decision for check in checks] == ["stay"] * 9 + ["promote"]
    first, second = progress.lesson_reports
    assert (first.name, first.ended_at_step, first.episodes, first.window) == ("a", 109, 10, 10)
    assert first.win_rate == 1.0
    assert 0.4 < first.lower < first.upper == 1.0
    assert (second.name, second.ended_at_step, second.episodes) == ("b", None, 0)
    assert (second.win_rate, second.lower, second.upper) == (None, 0.0, 1.0)


def test_a_lesson_lasts_its_least_length_and_losses_do_not_promote() -> None:
    criteria = {"min_lesson_length": 40}
    progress = CurriculumProgress([lesson("a", criteria=criteria), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True)] * 39)
    assert progress.lesson == 0
    game.play(line(True))
    assert progress.lesson == 1
    game.begin_next()
    check = game.play(*[line(False)] * 500)
    assert check.decision == "stay"
    assert check.statistic < check.bound == pytest.approx(np.log(20))


def test_after_a_promotion_nothing_counts_until_the_next_scenario_begins() -> None:
    progress = CurriculumProgress([lesson("a"), lesson("b")], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True)] * 50)  # 40 of them after the promotion
    assert progress.lesson_reports[0].episodes == 10
    assert game.play(*[line(True)] * 10) is None
    assert progress.view.episodes == 0
    progress.begin_scenario(2)
    assert game.play(*[line(True)] * 10) is None
    game.scenario = 2
    game.play(*[line(True)] * 5)
    assert progress.view.episodes == 5


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


def test_every_cell_must_pass_by_itself() -> None:
    mix = lesson("a", difficulty=TWO_CELLS, criteria={"scope": "every_cell"})
    progress = CurriculumProgress([mix], DIFFICULTIES)
    game = Game(progress)
    game.play(*[line(True, 1)] * 200)
    (cell,) = progress.held_back_by()
    assert (cell.target, cell.difficulty, cell.episodes, cell.win_rate) == ("goto", 2, 0, None)
    game.play(*[line(False, 2)] * 20)
    assert not progress.finished
    assert progress.view.win_rate.win_rate == pytest.approx(200 / 220)
    assert [(cell.target, cell.difficulty) for cell in progress.held_back_by()] == [("goto", 2)]
    game.play(*[line(True, 2)] * 400)
    assert progress.finished
    assert progress.held_back_by() == ()


def test_pooled_lessons_pass_on_all_episodes_together_and_name_every_weakest_cell() -> None:
    progress = CurriculumProgress([lesson("a", difficulty=TWO_CELLS)], DIFFICULTIES)
    game = Game(progress)
    game.play(line(False, 1), line(False, 2))
    assert [cell.difficulty for cell in progress.held_back_by()] == [1, 2]
    assert progress.missing == ""
    game.play(*[line(True, 1)] * 60)
    assert progress.finished


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
    assert game.play(*[line(True)] * 10, step=7).decision == "finish"
    assert (progress.finished, progress.goal_reached, progress.lesson) == (True, True, 0)
    progress.begin_scenario(1)
    assert game.play(*[line(True)] * 20) is None
    assert [report.episodes for report in progress.lesson_reports] == [10]


def test_a_line_that_does_not_parse_is_no_loss_and_blocks_nothing_nor_fills_the_memory() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    game = Game(progress)
    game.play("nonsense", line(True), "Warning|Command", line(True))
    assert progress.view.episodes == 2
    assert progress.view.win_rate.win_rate == 1.0
    assert progress.unparsed == {"not a result line": 1, "a command where a result was due": 1}
    game.play(*[f"Warning|Result|Win|difficulty=x{number}" for number in range(100)])
    assert len(progress.unparsed) == MAX_REASONS + 1
    assert progress.unparsed[OTHER_REASONS] == 102 - MAX_REASONS


@pytest.mark.parametrize(
    ("difficulty", "scope", "counted", "wins"),
    [(TWO_CELLS, "pooled", 1, 0), (EASY, "every_cell", 1, 1), (TWO_CELLS, "every_cell", 0, 0)],
)
def test_the_short_form_of_a_line_counts_where_cells_are_pooled_or_there_is_but_one(
    difficulty: dict[str, tuple[float, ...]], scope: str, counted: int, wins: int
) -> None:
    mix = lesson("a", difficulty=difficulty, criteria={"scope": scope})
    progress = CurriculumProgress([mix], DIFFICULTIES)
    game = Game(progress)
    game.play("Warning|Result|Win")
    assert progress.view.episodes == counted
    assert sum(cell.wins for cell in progress.cell_reports) == wins
    if not counted:
        game.play(line(True, 5))
        assert progress.unparsed == {"names no target and difficulty of the lesson's mix": 2}


def test_the_scenario_spells_out_every_weight_and_a_target_without_difficulties_is_a_cell() -> None:
    weights = {"goto": 2.0, "free": 1.0, "attack": 0.0}
    mix = lesson("a", targets=weights, parameters={"move_speed": 4.0})
    scenario = CurriculumProgress([mix], DIFFICULTIES).scenario
    assert scenario.targets == {"goto": 2.0, "free": 1.0}
    assert scenario.difficulty == {"goto": (1.0,) * 5}
    assert scenario.parameters == {"move_speed": 4.0}
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


def test_a_state_of_an_earlier_version_has_the_reports_that_it_kept() -> None:
    lessons = [lesson("a"), lesson("b")]
    game = Game(CurriculumProgress(lessons, DIFFICULTIES))
    game.play(*[line(True)] * 10, step=7)
    game.begin_next()
    game.play(*[line(True)] * 5, step=8)
    state = game.progress.state()
    del state["reports"]
    game.progress = after = CurriculumProgress(lessons, DIFFICULTIES)
    after.resume(json.loads(json.dumps(state)))
    first, second = after.lesson_reports
    assert (first.ended_at_step, first.episodes, first.win_rate) == (7, 10, 1.0)
    assert (first.threshold, second.threshold, second.episodes) == (None, 0.3, 5)
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
    assert held({**progress, "min_lesson_length": 9}, episodes=12, step=120) == (
        "progress over 0.5 (reached 0.12)"
    )
    assert held(progress, episodes=0, step=300) == (
        "progress over 0.5 (reached 0.3) and 100 of 100 episodes"
    )
    reward = {**ML_AGENTS, "measure": "reward", "threshold": 0.8, "min_lesson_length": 10}
    assert held(reward, episodes=20) == "reward over 0.8 (reached 0)"
    assert held({**REWARD, "threshold": 0.8}, episodes=20) == (
        "evidence that reward exceeds 0.8 (0.806 of 20)"
    )
    smoothed = {"rule": "ml-agents", "measure": "reward", "threshold": 0.8}
    assert held(smoothed, episodes=20, won=True) == "reward over 0.8 (reached 0.75)"
    assert held({"threshold": 0.9}, episodes=12, won=True) == (
        "evidence that win rate exceeds 90 % (1.36 of 20)"
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
    game = game_of(Agent(0.5, 0.9), lessons)
    assert won_episodes(game, 100) == ["stay"] * 99 + ["promote"]
    first, second = game.progress.greedy.take()
    assert (first.passed, second.passed) == (False, True)
    assert first.played == second.played == 500
    assert first.line == (
        "enough evidence while it explores, but without exploration it won 250 of 500 episodes: "
        "the lesson continues and its evidence starts over"
    )
    kinds = [(event["kind"], event["episodes"]) for event in game.record.events]
    assert kinds == [("greedy", 50), ("greedy", 100), ("lesson", 100)]


def test_a_replay_ends_the_lesson_where_the_run_did_and_explain_tells_why_not_before() -> None:
    lessons = (lesson("a", difficulty=TWO_CELLS), lesson("b"))
    game = game_of(Agent(0.0, 0.1, 1.0), lessons)
    assert won_episodes(game, 60)[-1] == "promote"
    world = RecordedRun(lessons, DIFFICULTIES, 1, 10_000)
    replayed = tuple(replays(game.record, world))
    own, attempt = replayed[0].own, replayed[0].attempt
    assert own.agrees
    taken_back = [one for one in own.checks if attempt.refused(one)]
    assert [one.decision for one in taken_back] == ["stay", "stay"]
    assert all(own.reached(one) for one in taken_back)
    text = "\n".join(_texts(Explanation("3f2a", "a run", world, replayed), every=False))
    assert "enough, but not without exploration" in text
    assert "without exploration it won 0 of 500 episodes: the lesson continues" in text
    assert "without exploration it won 500 of 500 episodes, which proves the lesson as well" in text


def test_where_every_cell_must_pass_each_plays_by_itself() -> None:
    criteria = {"threshold": 0.6, "scope": "every_cell"}
    agent = Agent(1.0, 0.5, 1.0, 1.0)
    game = game_of(agent, [lesson("a", difficulty=TWO_CELLS, criteria=criteria)])
    assert won_episodes(game, 200)[-1] == "finish"
    drawn = [one.difficulty["goto"] for one in agent.asked]
    assert drawn == 2 * [(1.0, 0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0, 0.0)]


def test_nothing_is_asked_where_no_evidence_decides_or_none_is_wanted() -> None:
    for criteria in {"greedy_proof": False}, {"measure": "progress", "threshold": 0.001}:
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
