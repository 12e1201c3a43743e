"""Episodes of a build's agents: numbered as they begin, told as columns when they end."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.result_lines import EpisodeResult
from aimbot_lab.foundation.world import BoolArray, Float32Array, Scenario, WorldSpec
from aimbot_lab.worlds.unity.results import Result

NO_RESULT = "no result came with the end of an episode"


class EpisodeCounter:
    """Counts the episodes in `rows` rows of a world of `spec`."""

    def __init__(self, rows: int, spec: WorldSpec) -> None:
        self._spec, self.scenario, self.begun = spec, 0, 0
        self._order = np.zeros(rows, np.int64)
        self._scenarios = np.zeros(rows, np.int64)
        self._lengths = np.zeros(rows, np.int64)
        difficulties = list(spec.difficulties.items())
        self._only = Cell(difficulties[0][0], 0) if [n for _, n in difficulties] == [0] else None

    def restart(self) -> None:
        """Number episodes from 0 on."""
        self.begun = 0

    def begin_all(self) -> None:
        """An episode begins in every row."""
        self._begin(np.arange(len(self._order)))

    def _begin(self, rows: np.ndarray) -> None:
        self._order[rows] = self.begun + np.arange(len(rows))
        self._scenarios[rows], self._lengths[rows] = self.scenario, 0
        self.begun += len(rows)

    def ended(
        self,
        finished: BoolArray,
        results: Mapping[int, Result],
        returns: Float32Array,
        *,
        untold: Sequence[int],
    ) -> EpisodeBatch:
        """The episodes of rows that are `finished`, in which others begin.

        Those whose result can't be read are no entries, nor are those of the rows `untold`.
        """
        self._lengths += 1
        over = np.flatnonzero(finished)
        lost = set(untold)
        said = {row: results.get(row, NO_RESULT) for row in over.tolist() if row not in lost}
        found = {row: one for row, one in said.items() if isinstance(one, EpisodeResult)}
        unread = {row: one for row, one in said.items() if isinstance(one, str)}
        rows = np.array(list(found), np.int64)
        batch = EpisodeBatch(
            row=rows,
            agent=np.zeros_like(rows),
            order=self._order[rows],
            scenario=self._scenarios[rows],
            cell=tuple(self._only if one.cell is None else one.cell for one in found.values()),
            outcome=np.array([one.outcome for one in found.values()], np.int8),
            length=self._lengths[rows],
            terms=returns[rows, None].astype(np.float64),
            running_order=self._order,
            running_scenario=self._scenarios,
            columns={name: _column(found, name) for name in self._spec.episode_columns},
            unread=tuple(unread.values()),
            untold=tuple(sorted([*unread, *lost])),
        )
        self._begin(over)
        return batch

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"scenario": self.scenario, "begun": self.begun}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Count on from what `state()` gave."""
        self.scenario, self.begun = state["scenario"], state["begun"]


def _column(found: Mapping[int, EpisodeResult], name: str) -> np.ndarray:
    """[E] what result lines say of `name`; NaN where one does not."""
    values = [one.seconds if name == "seconds" else one.columns.get(name) for one in found.values()]
    return np.array([np.nan if value is None else value for value in values], np.float64)


def check_scenario(scenario: Scenario, spec: WorldSpec) -> None:
    """Raise ConfigurationError for what builds of `spec` have not, and where nothing is drawn."""
    for target, weight in scenario.targets.items():
        if target not in spec.difficulties:
            known = ", ".join(spec.difficulties)
            raise ConfigurationError(f"scenario: no target {target!r}; there are {known}")
        if not (np.isfinite(weight) and weight >= 0):
            raise ConfigurationError(f"scenario: the weight of {target} must not be negative")
    if not any(scenario.targets.values()):
        raise ConfigurationError("scenario: no target has a weight above 0")
    for name in scenario.parameters:
        if spec.parameters and name not in spec.parameters:
            known = ", ".join(spec.parameters)
            raise ConfigurationError(f"scenario: no parameter {name!r}; there are {known}")
