"""What a learner that explores must show once more: the same evidence without exploration.

While it trains, random actions and what it learns from them lead it out of circles in which the
agent that is delivered would stay for ever.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.curriculum.rules import (
    CompletionCriteria,
    MlAgentsMemory,
    evidence_test,
    new_rule,
)
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world import Scenario

GreedyPlay = Callable[[Scenario, int], Sequence[Outcome]]
"""Outcomes of a number of episodes of a scenario, by the agent as it would be delivered now."""

MIN_EPISODES = 500
FACTOR = 2  # times as many episodes as an agent needs that always wins
MAX_EPISODES = 50_000


@dataclass(frozen=True)
class GreedyCheck:
    """Whether an agent proves a lesson without exploration."""

    played: int  # episodes
    won: int
    passed: bool

    @property
    def line(self) -> str:
        """What it found, for a person."""
        won = f"{self.won:,} of {self.played:,} episodes"
        if self.passed:
            return f"without exploration it won {won}, which proves the lesson as well"
        return (
            f"enough evidence while it explores, but without exploration it won {won}: "
            "the lesson goes on and its evidence begins anew"
        )


class GreedyProof:
    """Asks for the proof where evidence would end a lesson of a learner that explores.

    `play` is None where the learner shows in its training what it will do afterwards.
    """

    def __init__(self) -> None:
        self.play: GreedyPlay | None = None
        self._checks: list[GreedyCheck] = []

    def ask(self, lesson: CurrentLesson, scenario: Scenario) -> GreedyCheck | None:
        """The check that this moment of `lesson` led to, whose episodes come from `scenario`.

        Where it failed, the lesson's evidence has begun anew. None where nothing was to be checked.
        """
        criteria = lesson.lesson.completion_criteria
        if self.play is None or criteria is None or not lesson.passed:
            return None
        if not (criteria.by_evidence and criteria.greedy_proof):
            return None
        check = greedy_check(criteria, scenario, lesson.cells, self.play)
        self._checks.append(check)
        if not check.passed:
            lesson.begin_evidence()
        return check

    def take(self) -> Sequence[GreedyCheck]:
        """The checks since the last call."""
        taken, self._checks = self._checks, []
        return taken


def greedy_check(
    criteria: CompletionCriteria, scenario: Scenario, cells: Sequence[Cell], play: GreedyPlay
) -> GreedyCheck:
    """Ask the lesson's own test about episodes of `scenario`, of each of its `cells` if need be."""
    rule = new_rule(
        replace(criteria, min_lesson_length=0), cells, memory=MlAgentsMemory([criteria])
    )
    played, won = 0, 0
    for cell, part in _parts(criteria, scenario, cells):
        for outcome in play(part, episodes_needed(criteria)):
            rule.count(outcome._replace(cell=cell))
            played, won = played + 1, won + outcome.won
    return GreedyCheck(played, won, rule.passed)


def episodes_needed(criteria: CompletionCriteria) -> int:
    """Episodes after which a good agent has most likely passed, all together or of each cell."""
    test, count = evidence_test(criteria), MIN_EPISODES // FACTOR
    while count * FACTOR < MAX_EPISODES:
        found = test.trace(np.ones(count, np.bool_)) >= test.log_bound
        if found.any():
            return max(MIN_EPISODES, FACTOR * (int(found.argmax()) + 1))
        count *= 2
    return MAX_EPISODES


def _parts(
    criteria: CompletionCriteria, scenario: Scenario, cells: Sequence[Cell]
) -> Iterator[tuple[Cell | None, Scenario]]:
    """The whole mix, or the scenario of each cell where each must pass."""
    if not criteria.every_cell:
        yield None, scenario
        return
    for cell in cells:
        levels = len(scenario.difficulty.get(cell.target, ()))
        only = tuple(float(level == cell.difficulty) for level in range(1, levels + 1))
        difficulty = {cell.target: only} if levels else {}
        yield cell, Scenario({cell.target: 1.0}, difficulty, scenario.parameters)
