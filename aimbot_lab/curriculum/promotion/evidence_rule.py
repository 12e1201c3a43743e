"""A lesson that is passed on evidence, by all cells together or by each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Order, Outcome
from aimbot_lab.curriculum.promotion.evidence import Evidence, EvidenceTest, FloatArray
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.ratings import expected_score

POOLED = Cell("", 0)  # stands for all cells together


class EvidenceRule:
    """Tests the win rate or score, or the reward between the bounds that are declared for it.

    Where the criteria name an opponent, only the episodes of that target count.
    """

    order: Order = "beginnings"
    every_step = False

    def __init__(self, criteria: CompletionCriteria, cells: Sequence[Cell]) -> None:
        self._criteria = criteria
        self._test = evidence_test(criteria)
        self.episodes = 0
        self._parts: dict[Cell, _Part] = {}
        self.below_range = 0  # rewards below the lowest that was declared
        self._asked: list[Cell] = []
        self.ask(cells)

    def ask(self, cells: Sequence[Cell]) -> None:
        """The lesson's mix is made of `cells` now; what others have shown is kept."""
        known = [cell for cell in cells if self._is_asked(cell)]
        self._asked = known if self._criteria.every_cell else [POOLED]
        for cell in self._asked:
            self._parts.setdefault(cell, _Part(self._test))

    def _is_asked(self, cell: Cell | None) -> bool:
        against = self._criteria.against
        return against is None or (cell is not None and cell.target == against)

    @property
    def statistic(self) -> float:
        """Log of the evidence, of the weakest cell where every cell must pass."""
        return min(self._parts[cell].log_evidence for cell in self._asked)

    @property
    def bound(self) -> float:
        """Log of the evidence that passes."""
        return self._test.log_bound

    @property
    def passed(self) -> bool:
        """Whether the lesson is passed at this very episode."""
        long_enough = self.episodes >= self._criteria.min_lesson_length
        return long_enough and all(not self._parts[cell].lacks for cell in self._asked)

    def lacks(self, cell: Cell) -> bool:
        """Whether `cell` has not passed, or all together."""
        if not self._is_asked(cell):
            return False
        return self._parts[cell if self._criteria.every_cell else POOLED].lacks

    def count(self, outcome: Outcome) -> None:
        """Take one more episode."""
        if not self._is_asked(outcome.cell):
            return
        self.episodes += 1
        if self._criteria.measured.of_rewards and outcome.reward is not None:
            self.below_range += outcome.reward < self._lowest
        place = outcome.cell if self._criteria.every_cell else POOLED
        if place in self._parts:
            self._parts[place].count(measured(outcome, self._criteria))

    @property
    def _lowest(self) -> float:
        return self._criteria.reward_range[0] if self._criteria.reward_range else -np.inf

    def look(self, share: float) -> None:
        """Nothing new: only episodes are evidence."""

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        parts = [[*cell, *part.state()] for cell, part in self._parts.items()]
        return {"episodes": self.episodes, "below_range": self.below_range, "parts": parts}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.episodes, self.below_range = state["episodes"], state["below_range"]
        self._parts = {}
        for target, difficulty, *kept in state["parts"]:
            part = self._parts[Cell(target, difficulty)] = _Part(self._test)
            part.resume(kept)


class _Part:
    """The evidence of all cells together, or of one."""

    def __init__(self, test: EvidenceTest) -> None:
        self._test = test
        self._take(test.start())

    def _take(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.log_evidence = float(self._test.log_evidence(evidence))

    @property
    def lacks(self) -> bool:
        return self.log_evidence < self._test.log_bound

    def count(self, value: bool | float) -> None:
        self._take(self._test.fold(self._evidence, value))

    def state(self) -> list[Any]:
        return [self._evidence.log_wealth.tolist(), self._evidence.episodes]

    def resume(self, state: Iterable[Any]) -> None:
        log_wealth, episodes = state
        self._take(Evidence(np.array(log_wealth, np.float64), episodes))


def evidence_test(criteria: CompletionCriteria) -> EvidenceTest:
    """The test of `criteria`, in the units of `measured`."""
    if criteria.measured.of_points:  # the expected score at so many points
        return EvidenceTest(expected_score(criteria.threshold), criteria.alpha)
    return EvidenceTest(_scaled(criteria.threshold, criteria), criteria.alpha)


def measured(outcome: Outcome, criteria: CompletionCriteria) -> bool | float:
    """What the test of `criteria` reads off an episode: won, or the reward as a share of its range.

    A reward above the range counts as its upper end, which can only weaken the evidence; one below
    counts as its lower end, and there the range was declared wrongly.
    """
    value = criteria.measured.value(outcome)
    if value is None:
        raise ValueError("an episode without a reward")
    if isinstance(value, bool):
        return value
    return min(max(_scaled(value, criteria), 0.0), 1.0)


def as_values(outcomes: Sequence[Outcome], criteria: CompletionCriteria) -> FloatArray:
    """`measured` of all `outcomes` [N], as the test's `trace` takes them."""
    return np.array([measured(outcome, criteria) for outcome in outcomes])


def _scaled(value: float, criteria: CompletionCriteria) -> float:
    """`value`, of the threshold or of an episode, between 0 and 1."""
    if criteria.reward_range is None:
        return value
    low, high = criteria.reward_range
    return (value - low) / (high - low)
