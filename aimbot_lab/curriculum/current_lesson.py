"""The lesson that is being learned: its counted episodes and its open question."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.curriculum.rules import MlAgentsMemory, Rule, new_rule
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.curriculum.win_rate_windows import RateWindow, WinRateWindows
from aimbot_lab.foundation.episodes import Cell

RECENT_EPISODES = 500


class CurrentLesson:
    """Counts a lesson's outcomes in the order in which they are given.

    `windows` are those that win rates are shown of, and `recent` rewards: in the order of their
    beginnings under every rule.
    """

    def __init__(self, lesson: Lesson, cells: Sequence[Cell], *, memory: MlAgentsMemory) -> None:
        self.lesson = lesson
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
