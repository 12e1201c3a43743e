"""A lesson that is passed after a share of the training, whatever was learned."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Order, Outcome
from aimbot_lab.foundation.episodes import Cell


class ProgressRule:
    """Compares the share of all training steps that are taken: nothing there is uncertain."""

    order: Order = "beginnings"
    every_step = True

    def __init__(self, criteria: CompletionCriteria) -> None:
        self._criteria = criteria
        self.episodes = 0
        self.statistic = math.nan
        self.passed = False

    @property
    def bound(self) -> float:
        """The threshold, which must be exceeded."""
        return self._criteria.threshold

    def lacks(self, cell: Cell) -> bool:  # noqa: ARG002
        """Whether the lesson is not passed: no cell by itself is judged."""
        return not self.passed

    def ask(self, cells: Sequence[Cell]) -> None:
        """Nothing changes: no cell by itself is judged."""

    def count(self, outcome: Outcome) -> None:  # noqa: ARG002
        """Take one more episode towards the least length."""
        self.episodes += 1

    def look(self, share: float) -> None:
        """Compare the share of all training steps."""
        self.statistic = share
        long_enough = self.episodes >= self._criteria.min_lesson_length
        self.passed = long_enough and share > self.bound

    def tally(self) -> dict[str, Any]:
        """Nothing: all is in `state()`."""
        return {}

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Nothing changes."""

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        share = None if math.isnan(self.statistic) else self.statistic
        return {"episodes": self.episodes, "share": share, "passed": self.passed}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.episodes, self.passed = state["episodes"], state["passed"]
        self.statistic = math.nan if state["share"] is None else state["share"]
