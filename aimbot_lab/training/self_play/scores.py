"""The games of a run by self-play: results by pair of players, and the ratings that follow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.ratings import expected_score, ratings_of

GAMES_NAME = "games.csv"
GAMES_HEAD = "player,opponent,wins,draws,losses\n"
SCORES = (1.0, 0.5, 0.0)  # of a win, a draw, a loss
HALF_LIFE = 256  # games of the learner with the same snapshot
DECAY = 0.5 ** (1.0 / HALF_LIFE)
POINTS = 400.0  # in which the odds grow tenfold
FAR = 100_000.0  # from 0, beyond which powers of ten leave the range of floats


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
        """The names of all players, in the order of their first games."""
        return tuple(dict.fromkeys(name for pair in self._counts for name in pair))

    def text(self) -> str:
        """The table as CSV."""
        return GAMES_HEAD + "".join(",".join(map(str, row)) + "\n" for row in self.rows())

    def state(self) -> list[list[Any]]:
        """Plain JSON values."""
        return [list(row) for row in self.rows()]

    def resume(self, state: Sequence[Sequence[Any]]) -> None:
        """Go on from what `state()` gave."""
        self._counts = {(player, other): list(counts) for player, other, *counts in state}


class Rated(NamedTuple):
    """A rating in points, its 95 % interval, and the games that it rests on."""

    rating: float
    lower: float
    upper: float
    games: int


def rated_players(
    games: GamesTable, names: Sequence[str], *, anchor: str, points: float
) -> dict[str, Rated]:
    """The rating of each of `names`, on a scale where `anchor` has exactly `points`.

    Intervals are those of the difference to it.
    """
    players = tuple(dict.fromkeys((anchor, *names, *games.players)))
    counts = games.counts(players)
    ratings = ratings_of(counts)
    above, errors, played = ratings.above(0), ratings.error_above(0), counts.sum(axis=(1, 2))
    found = {}
    for name in names:
        place = players.index(name)
        rating, error = points + float(above[place]), float(errors[place])
        found[name] = Rated(rating, rating - error, rating + error, int(played[place]))
    return found


class RecentScores:
    """Discounted scores and games with each snapshot, by its number; a draw is half a score.

    A snapshot that was not met counts as one that was drawn with once.
    """

    def __init__(self) -> None:
        self._scores: list[float] = []
        self._games: list[float] = []

    def add(self, snapshot: int, score: float) -> None:
        """Take a game with `snapshot`."""
        missing = snapshot + 1 - len(self._games)
        self._scores += [0.0] * missing
        self._games += [0.0] * missing
        self._scores[snapshot] = DECAY * self._scores[snapshot] + score
        self._games[snapshot] = DECAY * self._games[snapshot] + 1.0

    def expected(self, count: int) -> npt.NDArray[np.float64]:
        """The expected score [count] against each of the first snapshots."""
        games, scores = np.zeros(count), np.zeros(count)
        known = min(count, len(self._games))
        games[:known], scores[:known] = self._games[:known], self._scores[:known]
        return np.asarray((scores + 0.5) / (games + 1.0))

    def state(self) -> list[list[float]]:
        """Plain JSON values."""
        return [list(self._scores), list(self._games)]

    def resume(self, state: Sequence[Sequence[float]]) -> None:
        """Go on from what `state()` gave."""
        self._scores, self._games = (list(part) for part in state)


class RunningRating:
    """The rating that ML-Agents keeps while its agents meet themselves, and its opponents' by name.

    Read in its Python package, version 1.1.0: trainers/ghost/trainer.py and controller.py. After
    each game the learner's rating moves by the result less its expectation, the opponent's by as
    much the other way (Elo with K = 1). A snapshot begins with the rating that the learner then
    has. Games against the present self change nothing. Scripted players, which ML-Agents does not
    have, begin as the first snapshot does.
    """

    def __init__(self, initial: float) -> None:
        self._initial = initial
        self.learner = initial
        self._opponents: dict[str, float] = {}

    def take(self, snapshot: str) -> None:
        """The learner as it is now is `snapshot` from now on."""
        self._opponents[snapshot] = self.learner

    def add(self, opponent: str, score: float) -> None:
        """Take a game with `opponent` in which the learner had 1, 0.5 or 0 points."""
        other = self._opponents.get(opponent, self._initial)
        change = score - expected(self.learner, other)
        self._opponents[opponent] = other - change
        self.learner += change

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"learner": self.learner, "opponents": dict(self._opponents)}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.learner, self._opponents = state["learner"], dict(state["opponents"])


def expected(own: float, other: float) -> float:
    """Expected score of a rating against another, rounded as in ML-Agents where that is finite."""
    if max(abs(own), abs(other)) > FAR:
        return expected_score(max(min(own - other, FAR), -FAR))
    mine, theirs = 10.0 ** (own / POINTS), 10.0 ** (other / POINTS)
    return float(mine / (mine + theirs))
