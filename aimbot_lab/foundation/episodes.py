"""Finished episodes as columns, in the form in which every layer above a world reads them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

LOSS, DRAW, WIN = -1, 0, 1  # outcomes
UNCOUNTED = 0  # a scenario older than those that worlds number: no lesson counts its episodes
NO_COLUMNS: Mapping[str, npt.NDArray[np.float64]] = {}
NONE_RUNNING = np.zeros(0, np.int64)
ARRAYS = ("row", "agent", "order", "scenario", "outcome", "length", "terms")  # [E, ...] of a batch


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
    step: int = 0  # environment steps of the training at their end; 0: it is not known
    rating: float | None = None  # the learner's running one after them, under self-play

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

    def oldest_running(self, first: int | None) -> int | None:
        """Rank of the oldest episode that runs in scenario `first` or a later one; None: none."""
        return oldest(self.running_order, self.running_scenario, first)

    def beside(self, rank: int | None, first: int | None) -> "EpisodeBatch":
        """This batch, beside which only the episode of `rank`, of scenario `first`, goes on.

        Unlike the world's own arrays, what that leaves may be kept beyond the world's next step.
        """
        if rank is None or first is None:
            return self._replace(running_order=NONE_RUNNING, running_scenario=NONE_RUNNING)
        return self._replace(running_order=np.array([rank]), running_scenario=np.array([first]))

    def some(self, places: Sequence[int] | npt.NDArray[np.int64]) -> "EpisodeBatch":
        """The episodes at `places` [K] of this batch, in that order."""
        chosen = np.asarray(places, np.int64)
        arrays: dict[str, Any] = {name: getattr(self, name)[chosen] for name in ARRAYS}
        return self._replace(
            **arrays,
            cell=tuple([self.cell[place] for place in chosen.tolist()]),
            columns={name: column[chosen] for name, column in self.columns.items()},
        )


def joined(batches: Sequence[EpisodeBatch]) -> EpisodeBatch:
    """The episodes of all `batches`, of which there is one at least; all else is the first's."""
    first = batches[0]
    if len(batches) == 1:
        return first
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in batches]) for name in ARRAYS
    }
    return first._replace(
        **arrays,
        cell=tuple(cell for one in batches for cell in one.cell),
        columns={
            name: np.concatenate([one.columns[name] for one in batches]) for name in first.columns
        },
    )


def oldest(
    order: npt.NDArray[np.int64], scenario: npt.NDArray[np.int64], first: int | None
) -> int | None:
    """The lowest of the ranks `order` [N] whose `scenario` [N] is `first` or later; None: none."""
    if first is None:
        return None
    counts = order[scenario >= first]
    return int(counts.min()) if counts.size else None
