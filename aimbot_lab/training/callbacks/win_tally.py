"""The win rate of the episodes that were counted since it was last taken, as metrics."""

from collections.abc import Iterable
from typing import Any

from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.curriculum.win_rate_windows import ALL_CELLS
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.intervals import MIN_EPISODES, wilson


class WinTally:
    """Episodes of all cells together and of each, in the order in which they began.

    Each is taken and emptied by itself, once it has as many as make a rate.
    """

    def __init__(self) -> None:
        self._counts: dict[Cell, list[int]] = {}  # episodes and wins

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count episodes."""
        for outcome in outcomes:
            for cell in (ALL_CELLS,) if outcome.cell is None else (ALL_CELLS, outcome.cell):
                count = self._counts.setdefault(cell, [0, 0])
                count[0] += 1
                count[1] += outcome.won

    def take(self) -> dict[str, float]:
        """Metrics of what has `MIN_EPISODES` or more, which is forgotten; what has less is kept.

        The bounds are Wilson's at 95 % of these episodes alone: a block of a curve, to be looked
        at among its neighbours.
        """
        metrics: dict[str, float] = {}
        ripe = [cell for cell, count in self._counts.items() if count[0] >= MIN_EPISODES]
        for cell in ripe:
            episodes, wins = self._counts.pop(cell)
            if cell == ALL_CELLS:
                _, lower, upper = wilson(wins, episodes)
                metrics[names.LEARNING_WIN_RATE_LOWER] = lower
                metrics[names.LEARNING_WIN_RATE_UPPER] = upper
            metrics[names.of_cell(names.LEARNING_WIN_RATE, cell)] = wins / episodes
        return metrics

    def state(self) -> list[list[Any]]:
        """Everything counted since it was taken."""
        return [[*cell, *count] for cell, count in self._counts.items()]

    def resume(self, state: Iterable[Iterable[Any]]) -> None:
        """Go on from what `state()` gave."""
        self._counts = {Cell(target, level): count for target, level, *count in state}
