"""A lesson that is passed on evidence, by all cells together or by each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Order, Outcome
from aimbot_lab.curriculum.promotion.evidence import (
    RESTART_EVERY,
    Evidence,
    EvidenceTest,
)
from aimbot_lab.curriculum.win_rate_windows import ALL_CELLS, Window
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.intervals import WinRate
from aimbot_lab.foundation.statistics.ratings import expected_score


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
        self._asked = known if self._criteria.every_cell else [ALL_CELLS]
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
        return self._parts[cell if self._criteria.every_cell else ALL_CELLS].lacks

    def count(self, outcome: Outcome) -> None:
        """Take one more episode."""
        if not self._is_asked(outcome.cell):
            return
        self.episodes += 1
        if self._criteria.measured.of_rewards and outcome.reward is not None:
            self.below_range += outcome.reward < self._lowest
        place = outcome.cell if self._criteria.every_cell else ALL_CELLS
        if place in self._parts:
            self._parts[place].count(measured(outcome, self._criteria))

    @property
    def _lowest(self) -> float:
        return self._criteria.reward_range[0] if self._criteria.reward_range else -np.inf

    def look(self, share: float) -> None:
        """Nothing new: only episodes are evidence."""

    @property
    def weakest(self) -> Cell:
        """The cell with the least evidence; ALL_CELLS where these are judged together."""
        return min(self._asked, key=lambda cell: self._parts[cell].log_evidence)

    def proven(self) -> dict[Cell, Window]:
        """Of each cell, or of ALL_CELLS, the episodes that prove a win rate, and its interval.

        Empty where the lesson is not passed, or by no win rate.
        """
        parts = {cell: self._parts[cell] for cell in self._asked}
        is_known = self._criteria.measured.of_wins and all(part.won for part in parts.values())
        if not (self.passed and is_known):
            return {}
        return {cell: part.proven() for cell, part in parts.items()}

    def tally(self) -> dict[str, Any]:
        """What `proven` needs beside `state()`, as plain JSON values."""
        return {"won": [[*cell, *part.won] for cell, part in self._parts.items()]}

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Go on from what `tally()` gave; empty: it is not known."""
        kept = {Cell(target, level): won for target, level, *won in tally.get("won", ())}
        for cell, part in self._parts.items():
            part.won = kept.get(cell, [])

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
        self.won = [0]  # wins in each block of RESTART_EVERY episodes; empty: not known
        self._take(test.start())

    def _take(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.log_evidence = float(self._test.log_evidence(evidence))

    @property
    def lacks(self) -> bool:
        return self.log_evidence < self._test.log_bound

    def count(self, value: bool | float) -> None:
        self._take(self._test.fold(self._evidence, value))
        if self.won:
            self.won[-1] += value is True
            if self._evidence.episodes % RESTART_EVERY == 0:
                self.won.append(0)

    def proven(self) -> Window:
        """The episodes since the start that proves most, and the interval of the test."""
        wins = np.cumsum(self.won[::-1])[::-1]
        episodes = self._evidence.episodes - RESTART_EVERY * np.arange(len(wins))
        lower, start = self._test.proven(wins, episodes)
        count, won = int(episodes[start]), int(wins[start])
        return Window(count, won, WinRate(won / count, lower, 1.0))

    def state(self) -> list[Any]:
        return [self._evidence.log_wealth.tolist(), self._evidence.episodes]

    def resume(self, state: Iterable[Any]) -> None:
        log_wealth, episodes = state
        self.won = []
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


def _scaled(value: float, criteria: CompletionCriteria) -> float:
    """`value`, of the threshold or of an episode, between 0 and 1."""
    if criteria.reward_range is None:
        return value
    low, high = criteria.reward_range
    return (value - low) / (high - low)
