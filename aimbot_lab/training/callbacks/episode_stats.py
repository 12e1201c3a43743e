"""Means over the episodes that ended since the last report, as metrics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.statistics.measures import Measure
from aimbot_lab.foundation.world import WorldSpec


class EpisodeTally:
    """Sums of length, return, reward terms and what a world measures over episodes, and draws.

    They are taken and emptied together. Draws count where the world `has_draws`, or once there
    was one.
    These describe the training, in the order in which episodes end; win rates are the
    curriculum's, in the order in which they began.
    """

    def __init__(
        self,
        reward_terms: Sequence[str],
        columns: Sequence[str],
        measures: Sequence[Measure] = (),
        *,
        has_draws: bool = False,
    ) -> None:
        self._names = tuple(reward_terms)
        self._has_draws = has_draws
        own = measures or [
            Measure(name, name, training=names.episode_column(name)) for name in columns
        ]
        self._measures = tuple(one for one in own if one.training)
        self._clear()

    @classmethod
    def of(cls, spec: WorldSpec) -> "EpisodeTally":
        """For episodes of a world with `spec`."""
        return cls(spec.reward_terms, spec.episode_columns, spec.measures, has_draws=spec.has_draws)

    def _clear(self) -> None:
        self._episodes = 0
        self._decisions = 0
        self._terms = np.zeros(len(self._names))
        self._sums = {one.training: 0.0 for one in self._measures}
        self._counts = dict.fromkeys(self._sums, 0)
        self._cells: Counter[Cell | None] = Counter()
        self._drawn: Counter[Cell | None] = Counter()

    def add(self, batch: EpisodeBatch) -> None:
        """Count the episodes of `batch`."""
        if batch:
            self._episodes += len(batch.cell)
            self._decisions += int(batch.length.sum())
            self._terms += batch.terms.sum(axis=0)
            for one in self._measures:
                values = one.values(batch.columns)
                self._sums[one.training] += float(values.sum())
                self._counts[one.training] += len(values)
            self._cells.update(batch.cell)
            drawn = np.flatnonzero(batch.drawn).tolist()
            self._drawn.update(batch.cell[place] for place in drawn)
            self._has_draws |= bool(drawn)

    def take(self) -> dict[str, float]:
        """Metrics of the episodes counted since the last call; empty without any."""
        if not self._episodes:
            return {}
        terms = self._terms / self._episodes
        metrics = {
            names.EPISODE_LENGTH: self._decisions / self._episodes,
            names.EPISODE_RETURN: float(terms.sum()),
            names.EPISODES_ENDED: float(self._episodes),
        }
        for name, total in self._sums.items():
            if self._counts[name]:
                metrics[name] = total / self._counts[name]
        pairs = zip(self._names, terms, strict=True)
        metrics.update({names.reward_term(name): float(value) for name, value in pairs})
        metrics.update(self._draw_rates() if self._has_draws else {})
        self._clear()
        return metrics

    def _draw_rates(self) -> dict[str, float]:
        """Shares of drawn episodes, of all cells and of each."""
        cells = {cell: count for cell, count in self._cells.items() if cell is not None}
        return {
            names.DRAW_RATE: self._drawn.total() / self._episodes,
            **{
                names.of_cell(names.DRAW_RATE, cell): self._drawn[cell] / count
                for cell, count in cells.items()
            },
        }

    def state(self) -> dict[str, Any]:
        """Everything counted since the last `take`."""
        return {
            "episodes": self._episodes,
            "decisions": self._decisions,
            "terms": self._terms.copy(),
            "columns": dict(self._sums),
            "counts": dict(self._counts),
            "has_draws": self._has_draws,
            "cells": [[cell, count, self._drawn[cell]] for cell, count in self._cells.items()],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._episodes, self._decisions = state["episodes"], state["decisions"]
        self._terms = state["terms"]
        self._sums = dict(state["columns"])
        self._has_draws |= state.get("has_draws", False)
        for cell, count, drawn in state.get("cells", ()):
            known = None if cell is None else Cell(*cell)
            self._cells[known], self._drawn[known] = count, drawn
        if "counts" in state:
            self._counts = dict(state["counts"])
            return
        # By an older version, which summed the columns of all episodes under their own names.
        self._sums = {names.episode_column(name): total for name, total in self._sums.items()}
        self._counts = dict.fromkeys(self._sums, self._episodes)
