"""The lesson that is being learned: its counted episodes and its open question."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.curriculum.rules import (
    CompletionCriteria,
    MlAgentsMemory,
    Rule,
    evidence_test,
    new_rule,
)
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.curriculum.win_rate_windows import RateWindow, WinRateWindows
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world import Scenario

RECENT_EPISODES = 500


class CurrentLesson:
    """Counts a lesson's outcomes in the order in which they are given.

    `windows` are those that win rates are shown of, and `recent` rewards: in the order of their
    beginnings under every rule.
    """

    def __init__(
        self,
        lesson: Lesson,
        cells: Sequence[Cell],
        *,
        memory: MlAgentsMemory,
        has_wins: bool = True,
    ) -> None:
        self.lesson, self.has_wins = lesson, has_wins
        self.cells = tuple(cells)
        self.episodes = 0
        self.windows = WinRateWindows()
        self.recent: deque[Outcome] = deque(maxlen=RECENT_EPISODES)
        self._memory = memory
        self.rule: Rule | None = None
        self.begin_evidence()

    def begin_evidence(self) -> None:
        """Ask the lesson's rule as if no episode had been counted; what is shown stays."""
        criteria = self.lesson.completion_criteria
        if criteria is not None:
            self.rule = new_rule(criteria, self.cells, memory=self._memory)

    @property
    def counts_ends(self) -> bool:
        """Whether the rule wants episodes in the order of their ends."""
        return self.rule is not None and self.rule.order == "ends"

    @property
    def passed(self) -> bool:
        """Whether the lesson's criterion is met at this very moment."""
        return self.rule is not None and self.rule.passed

    @property
    def counted(self) -> int:
        """How many episodes count, in the order that the rule wants."""
        return self.rule.episodes if self.rule is not None and self.counts_ends else self.episodes

    @property
    def proven(self) -> Mapping[Cell, RateWindow]:
        """What a lesson that was passed by evidence of its win rate has proven; else empty."""
        return {} if self.rule is None else self.rule.proven()

    @property
    def mean_return(self) -> float | None:
        """The mean of the last returns where no episode can be won; None: not known, or it can."""
        known = [] if self.has_wins else [one.reward for one in self.recent]
        return fmean(found) if (found := [one for one in known if one is not None]) else None

    @property
    def log_evidence(self) -> float | None:
        """Log of the evidence, of the weakest cell where every cell must pass."""
        return None if self.rule is None else self.rule.log_evidence

    @property
    def log_bound(self) -> float | None:
        """Log of the evidence that passes."""
        return None if self.rule is None else self.rule.log_bound

    @property
    def lacking(self) -> tuple[bool, ...]:
        """Which cells have not passed; where all are judged together, all or none of them."""
        return tuple(self.rule is not None and self.rule.lacks(cell) for cell in self.cells)

    def ask(self, cells: Sequence[Cell]) -> None:
        """The lesson's mix is made of `cells` now."""
        self.cells = tuple(cells)
        if self.rule is not None:
            self.rule.ask(cells)

    def show(self, outcome: Outcome) -> None:
        """Let an episode be seen in win rates."""
        self.episodes += 1
        if self.has_wins:
            self.windows.count(outcome.cell, won=outcome.won)
        self.recent.append(outcome)

    def count(self, outcome: Outcome) -> None:
        """Let an episode count for the rule."""
        if self.rule is not None:
            self.rule.count(outcome)

    def look(self, share: float) -> None:
        """A step of the world is over; `share` of all training steps are taken."""
        if self.rule is not None:
            self.rule.look(share)

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        return {
            "episodes": self.episodes,
            "windows": self.windows.state(),
            "recent": [outcome.as_json() for outcome in self.recent],
            "rule": None if self.rule is None else self.rule.state(),
        }

    def tally(self) -> dict[str, Any]:
        """What only reports need beside `state()`."""
        return {} if self.rule is None else self.rule.tally()

    def resume(self, state: Mapping[str, Any], tally: Mapping[str, Any]) -> None:
        """Go on from what `state()` and `tally()` gave for the same lesson and cells."""
        self.episodes = state["episodes"]
        self.windows.resume(state["windows"])
        self.recent.extend(map(Outcome.from_json, state["recent"]))
        if self.rule is not None:
            self.rule.resume(state["rule"])
            self.rule.resume_tally(tally)


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
