"""Players of a training with their ratings, by all games so far."""

from collections.abc import Sequence
from typing import NamedTuple

from aimbot_lab.foundation.statistics.ratings import ratings_of
from aimbot_lab.training.self_play.games import GamesTable


class Rated(NamedTuple):
    """A rating in points, its 95 % interval, and the games that it rests on."""

    rating: float
    lower: float
    upper: float
    games: int


def rated_players(
    games: GamesTable, names: Sequence[str], *, anchor: str, points: float
) -> dict[str, Rated]:
    """The rating of each of `names`, of which `anchor` has exactly so many `points`.

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
