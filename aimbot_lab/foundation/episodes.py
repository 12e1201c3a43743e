"""Finished episodes as columns, in the form in which every layer above a world reads them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LOSS, DRAW, WIN = -1, 0, 1  # outcomes
UNCOUNTED = 0  # a scenario older than those that worlds number: no lesson counts its episodes
NO_COLUMNS: Mapping[str, npt.NDArray[np.float64]] = {}


class Cell(NamedTuple):
    """A target at one difficulty; 0 where the target has none."""

    target: str
    difficulty: int

    @property
    def shown(self) -> str:
        """The cell as a person reads it."""
        return f"{self.target} {self.difficulty}" if self.difficulty else self.target


class EpisodeBatch(NamedTuple):
    """Episodes that ended in the same step of a batch of rows: E entries, one for each agent.

    With one agent a row there is one entry per episode.
    """

    row: npt.NDArray[np.int64]  # [E] row of the batch
    agent: npt.NDArray[np.int64]  # [E] number of the agent in its row
    order: npt.NDArray[np.int64]  # [E] rank by beginning: unique, rises with the start time
    scenario: npt.NDArray[np.int64]  # [E] number of the scenario it was drawn from
    cell: tuple[Cell | None, ...]  # [E] target and difficulty; None where a game did not say
    outcome: npt.NDArray[np.int8]  # [E] LOSS, DRAW or WIN
    length: npt.NDArray[np.int64]  # [E] decisions
    terms: npt.NDArray[np.float64]  # [E, T] sum of each reward term
    # These two are the world's own arrays: read them before its next step.
    running_order: npt.NDArray[np.int64]  # [N] rank of the episode now running in each seat
    running_scenario: npt.NDArray[np.int64]  # [N] scenario of the episode now running
    columns: Mapping[str, npt.NDArray[np.float64]] = NO_COLUMNS  # [E] each, by the spec's names
    unread: tuple[str, ...] = ()  # why a game's report of an episode, which is no entry, is unread
    untold: tuple[int, ...] = ()  # seats that finished without an entry: unread, or lost by a game

    def __bool__(self) -> bool:
        """Whether any episode ended."""
        return len(self.cell) > 0 or len(self.unread) > 0 or len(self.untold) > 0

    @property
    def won(self) -> npt.NDArray[np.bool_]:
        """[E] Whether the agent won; a draw is no win."""
        won: npt.NDArray[np.bool_] = self.outcome == WIN
        return won

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """[E] Whether the episode ended in a draw."""
        drawn: npt.NDArray[np.bool_] = self.outcome == DRAW
        return drawn

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """[E] Sum of the rewards; NaN where a game did not say."""
        total: npt.NDArray[np.float64] = self.terms.sum(axis=1)
        return total

    def seats(self, num_envs: int) -> npt.NDArray[np.int64]:
        """[E] Places among the N = agents x num_envs seats of a world: agent * num_envs + row."""
        return self.agent * num_envs + self.row
