"""The rule by which ML-Agents ends a lesson, with what is odd about it.

Read in its Python package, version 1.1.0: `CompletionCriteriaSettings.need_increment` in
trainers/settings.py, and where it is called from. What surprises:

- It is asked after every step of the environment, not after an episode, and the smoothed measure
  moves towards the same mean each time: it delays by a few steps and filters nothing.
- The mean is over the last episodes to end, as many as the *largest* `min_lesson_length` of all
  lessons; those that began under an earlier lesson count.
- The smoothed measure starts at 0 and is carried from lesson to lesson; the episodes are dropped.

Its documentation has a measure Elo that its code never had: here the running rating after the last
episode stands in the place of the mean.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Order, Outcome
from aimbot_lab.foundation.episodes import Cell

KEPT, NEW = 0.25, 0.75  # weights of the smoothed measure and of the present one


class MlAgentsMemory:
    """What outlives a lesson: the values of the last episodes, newest first, and the smoothing."""

    def __init__(self, criteria: Iterable[CompletionCriteria]) -> None:
        lengths = [one.min_lesson_length for one in criteria if one.rule == "ml-agents"]
        self.values: deque[float] = deque(maxlen=max(1, *lengths, 1))
        self.smoothing = 0.0

    def end_lesson(self) -> None:
        """Drop the episodes; the smoothed measure stays."""
        self.values.clear()

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"values": list(self.values), "smoothing": self.smoothing}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.values.extend(state["values"])
        self.smoothing = state["smoothing"]


class MlAgentsRule:
    """One lesson under ML-Agents' rule."""

    order: Order = "ends"
    every_step = True

    def __init__(self, criteria: CompletionCriteria, memory: MlAgentsMemory) -> None:
        self._criteria = criteria
        self._memory = memory
        self._counted = 0
        self.statistic = math.nan
        self.passed = False

    @property
    def bound(self) -> float:
        """The threshold, which must be exceeded."""
        return self._criteria.threshold

    @property
    def episodes(self) -> int:
        """How many of the lesson have ended."""
        return max(self._counted, len(self._memory.values))

    def lacks(self, cell: Cell) -> bool:  # noqa: ARG002
        """Whether the lesson is not passed: no cell by itself is judged."""
        return not self.passed

    def ask(self, cells: Sequence[Cell]) -> None:
        """Nothing changes: no cell by itself is judged."""

    def count(self, outcome: Outcome) -> None:
        """Take one more episode that has ended."""
        self._counted += 1
        self._memory.values.appendleft(self._value(outcome))

    def _value(self, outcome: Outcome) -> float:
        if self._criteria.by_running_rating:
            return math.nan if outcome.rating is None else outcome.rating
        value = self._criteria.measured.value(outcome)
        return float(outcome.won if value is None else value)

    def look(self, share: float) -> None:
        """Ask whether the lesson is over."""
        self.passed = self._need_increment(share)

    def _need_increment(self, share: float) -> bool:
        criteria, memory = self._criteria, self._memory
        if len(memory.values) < criteria.min_lesson_length:
            return False
        if not criteria.measured.of_episodes:
            self.statistic = share
            return share > criteria.threshold
        if not memory.values:
            return False
        values = memory.values
        measure = values[0] if criteria.by_running_rating else float(np.mean(values))
        if math.isnan(measure):
            return False
        if criteria.smoothed:
            measure = KEPT * memory.smoothing + NEW * measure
            memory.smoothing = measure
        self.statistic = measure
        return measure > criteria.threshold

    def tally(self) -> dict[str, Any]:
        """What `episodes` needs beside `state()`."""
        return {"episodes": self._counted}

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Go on from what `tally()` gave."""
        self._counted = tally.get("episodes", 0)

    def state(self) -> dict[str, Any]:
        """Everything that the lesson has by itself, as plain JSON values."""
        statistic = None if math.isnan(self.statistic) else self.statistic
        return {"statistic": statistic, "passed": self.passed}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.statistic = math.nan if state["statistic"] is None else state["statistic"]
        self.passed = state["passed"]
