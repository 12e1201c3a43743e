"""The lesson that is being learned: its counted episodes and its open test."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from aimbot_lab.curriculum.cells import lesson_cells
from aimbot_lab.curriculum.evidence import Evidence, EvidenceTest
from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson

RECENT_EPISODES = 500


class OpenLesson:
    """Counts a lesson's outcomes, in the order in which they are given."""

    def __init__(self, lesson: Lesson, difficulties: Mapping[str, int]) -> None:
        self.lesson = lesson
        self.cells = lesson_cells(lesson, difficulties)
        self.episodes = 0
        self.recent: deque[Outcome] = deque(maxlen=RECENT_EPISODES)
        self._parts = [_Part(criteria) for criteria in self._part_criteria()]

    def _part_criteria(self) -> list[CompletionCriteria]:
        criteria = self.lesson.completion_criteria
        if criteria is None:
            return []
        return [criteria] * (len(self.cells) if self.every_cell else 1)

    @property
    def every_cell(self) -> bool:
        """Whether each cell must pass by itself."""
        criteria = self.lesson.completion_criteria
        return criteria is not None and criteria.scope == "every_cell"

    @property
    def passed(self) -> bool:
        """Whether the lesson's criterion is met at this very episode."""
        criteria = self.lesson.completion_criteria
        if criteria is None or self.episodes < criteria.min_lesson_length:
            return False
        return all(part.passed for part in self._parts)

    @property
    def log_evidence(self) -> float | None:
        """Log of the evidence, of the weakest cell where every cell must pass."""
        return min((part.log_evidence for part in self._parts), default=None)

    @property
    def log_bound(self) -> float | None:
        """Log of the evidence that passes."""
        return self._parts[0].test.log_bound if self._parts else None

    @property
    def lacking(self) -> tuple[bool, ...]:
        """Which cells have not passed; where all are judged together, all or none of them."""
        if self.every_cell:
            return tuple(not part.passed for part in self._parts)
        lacks = any(not part.passed for part in self._parts)
        return (lacks,) * len(self.cells)

    def carrying_episodes(self) -> list[Outcome]:
        """Of the most recent episodes those that speak most for having passed."""
        recent = list(self.recent)
        criteria = self.lesson.completion_criteria
        if criteria is None or not recent:
            return recent
        test = EvidenceTest(criteria.threshold, criteria.alpha)
        return recent[-test.episodes_that_carry_it([outcome.won for outcome in recent]) :]

    def count_until_passed(self, outcomes: Iterable[Outcome]) -> None:
        """Count `outcomes`, up to the one that passes the lesson."""
        for outcome in outcomes:
            self._count(outcome)
            if self.passed:
                return

    def _count(self, outcome: Outcome) -> None:
        self.episodes += 1
        self.recent.append(outcome)
        if self._parts:
            self._parts[outcome.cell if self.every_cell else 0].count(outcome.won)

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        return {
            "episodes": self.episodes,
            "recent": [[int(outcome.won), outcome.cell] for outcome in self.recent],
            "evidence": [part.state() for part in self._parts],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave for the same lesson."""
        self.episodes = state["episodes"]
        self.recent.extend(Outcome(bool(won), cell) for won, cell in state["recent"])
        for part, kept in zip(self._parts, state["evidence"], strict=True):
            part.resume(kept)


class _Part:
    """The test of all cells together, or of one."""

    def __init__(self, criteria: CompletionCriteria) -> None:
        self.test = EvidenceTest(criteria.threshold, criteria.alpha)
        self._take(self.test.start())

    def _take(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.log_evidence = float(self.test.log_evidence(evidence))

    @property
    def passed(self) -> bool:
        return self.log_evidence >= self.test.log_bound

    def count(self, won: bool) -> None:
        self._take(self.test.fold(self._evidence, won))

    def state(self) -> dict[str, Any]:
        return {
            "log_wealth": self._evidence.log_wealth.tolist(),
            "episodes": self._evidence.episodes,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        self._take(Evidence(np.array(state["log_wealth"], np.float64), state["episodes"]))
