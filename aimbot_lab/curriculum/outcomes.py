"""What one finished episode is to the curriculum."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from aimbot_lab.foundation.episodes import Cell

Order = Literal["beginnings", "ends"]  # in which episodes count


class Outcome(NamedTuple):
    """A finished episode of a lesson or of a cell that is watched."""

    won: bool
    cell: Cell | None  # None where none is known
    reward: float | None = None  # sum of its rewards; None where a game did not say
    counts: bool = True  # for the lesson; False: watched only
    drawn: bool = False
    rating: float | None = None  # the learner's running rating after it; None: it has none

    @property
    def score(self) -> float:
        """1 where it was won, 0.5 where it was drawn, else 0."""
        return 0.5 if self.drawn else float(self.won)

    def as_json(self) -> list[Any]:
        """Plain values, which `from_json` reads."""
        cell = None if self.cell is None else list(self.cell)
        more: list[Any] = [1] if self.drawn else []
        if self.rating is not None:
            more = [int(self.drawn), self.rating]
        return [int(self.won), cell, self.reward, int(self.counts), *more]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> "Outcome":
        """What `as_json` gave."""
        won, cell, reward, counts, *more = values
        known = None if cell is None else Cell(*cell)
        drawn, rating = bool(more and more[0]), more[1] if len(more) > 1 else None
        return cls(bool(won), known, reward, bool(counts), drawn, rating)
