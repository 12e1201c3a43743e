"""A learner that explores proves a lesson once more, as it would be delivered."""

from collections.abc import Sequence

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, TWO_CELLS, Game, lesson, line

from aimbot_lab.cli.commands.explain import _texts
from aimbot_lab.curriculum.current_lesson import episodes_needed
from aimbot_lab.curriculum.evidence import Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.rule_replay import RecordedRun, replays
from aimbot_lab.curriculum.rules import CompletionCriteria, evidence_test
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.world import Scenario


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
        "the lesson goes on and its evidence begins anew"
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
    assert "without exploration it won 0 of 500 episodes: the lesson goes on" in text
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
        {"rule": "ml-agents", "threshold": 0.5},
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


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9, 0.995, 0.9995])
def test_an_agent_that_always_wins_passes_with_half_of_the_episodes(threshold: float) -> None:
    criteria = CompletionCriteria(threshold=threshold)
    episodes, test = episodes_needed(criteria), evidence_test(criteria)
    assert episodes >= 500
    assert test.trace(np.ones(episodes // 2, np.bool_))[-1] >= test.log_bound
