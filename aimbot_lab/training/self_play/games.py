"""The games of a training: who met whom, and how that went."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

GAMES_NAME = "games.csv"
HEAD = "player,opponent,wins,draws,losses\n"
SCORES = (1.0, 0.5, 0.0)  # of a win, a draw, a loss


class GamesTable:
    """Wins, draws and losses of pairs of players, by their names."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = {}

    def add(self, player: str, opponent: str, score: float) -> None:
        """Take a game in which `player` had 1, 0.5 or 0 points."""
        counts = self._counts.setdefault((player, opponent), [0, 0, 0])
        counts[SCORES.index(score)] += 1

    def rows(self) -> Iterator[tuple[str, str, int, int, int]]:
        """(player, opponent, wins, draws, losses) of all pairs, as they first met."""
        return ((*pair, won, drawn, lost) for pair, (won, drawn, lost) in self._counts.items())

    def counts(self, players: Sequence[str]) -> np.ndarray:
        """[P, P, 3] wins, draws and losses of each of `players` against each."""
        place = {name: number for number, name in enumerate(players)}
        found = np.zeros((len(players), len(players), 3), np.int64)
        for player, opponent, wins, draws, losses in self.rows():
            one, other = place[player], place[opponent]
            found[one, other] += (wins, draws, losses)
            found[other, one] += (losses, draws, wins)
        return found

    @property
    def players(self) -> tuple[str, ...]:
        """Everybody who has played, as they first did."""
        return tuple(dict.fromkeys(name for pair in self._counts for name in pair))

    def text(self) -> str:
        """The table as CSV."""
        return HEAD + "".join(",".join(map(str, row)) + "\n" for row in self.rows())

    def state(self) -> list[list[Any]]:
        """Plain JSON values."""
        return [list(row) for row in self.rows()]

    def resume(self, state: Sequence[Sequence[Any]]) -> None:
        """Go on from what `state()` gave."""
        self._counts = {(player, other): list(counts) for player, other, *counts in state}
