"""What a league came to."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from aimbot_lab.evaluation.matches import MatchPlayer
from aimbot_lab.foundation.statistics.cycles import ALPHA, cycles_of
from aimbot_lab.foundation.statistics.nash import nash_weights
from aimbot_lab.foundation.statistics.ratings import ratings_of

ANCHOR, ANCHOR_POINTS = "greedy", 1200.0  # so that leagues compare


@dataclass(frozen=True)
class RatedPlayer:
    """A player of the league."""

    name: str
    run: str | None  # None: a script
    step: int | None
    rating: float
    lower: float
    upper: float
    games: int
    score: float  # mean over all its games
    nash: float  # weight in the most even mixture that nobody beats


@dataclass(frozen=True)
class League:
    """Players, best first, with their scores against each other."""

    players: tuple[RatedPlayer, ...]
    scores: tuple[tuple[float | None, ...], ...]  # [P][P] mean scores; None: of itself
    counts: tuple[tuple[str, str, int, int, int], ...]  # player, player, wins, draws, losses
    cycle_p: float
    cyclic_share: float
    cycle: tuple[str, str, str] | None  # each beats the next
    anchor: str
    left_out: tuple[str, ...]  # snapshots that could not be read, with the reason

    @property
    def verdict(self) -> str:
        """Whether ratings tell the whole story, in a sentence."""
        if self.cycle_p > ALPHA:
            return f"Ratings explain these games (test for cycles: p = {self.cycle_p:.3g})."
        named = "" if self.cycle is None else f": {' beats '.join((*self.cycle, self.cycle[0]))}"
        share = f"{self.cyclic_share:.0%} of the logits are cyclic"
        return f"Ratings do not tell the whole story (p = {self.cycle_p:.3g}, {share}){named}."

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}

    def games_text(self) -> str:
        """The games as CSV."""
        lines = [",".join(map(str, row)) for row in self.counts]
        return "\n".join(["player,opponent,wins,draws,losses", *lines]) + "\n"


def rated(
    players: Sequence[MatchPlayer],
    counts: np.ndarray,
    *,
    seed: int,
    left_out: Sequence[str] = (),
) -> League:
    """The league of `players` that played `counts` [P, P, 3]."""
    names = [player.name for player in players]
    anchor = names.index(ANCHOR) if ANCHOR in names else 0
    made = _rated_players(players, counts, anchor)
    order = sorted(range(len(players)), key=lambda place: -made[place].rating)
    scores, games = _scores(counts), counts.sum(axis=2)
    cycles, cycle = cycles_of(counts, seed=seed), None
    if cycles.strongest is not None:
        one, two, three = cycles.strongest
        cycle = names[one], names[two], names[three]
    return League(
        players=tuple(made[place] for place in order),
        scores=tuple(
            tuple(float(scores[i, j]) if games[i, j] else None for j in order) for i in order
        ),
        counts=tuple(_count_rows(names, counts)),
        cycle_p=cycles.p,
        cyclic_share=cycles.share,
        cycle=cycle,
        anchor=names[anchor],
        left_out=tuple(left_out),
    )


def _rated_players(
    players: Sequence[MatchPlayer], counts: np.ndarray, anchor: int
) -> list[RatedPlayer]:
    ratings, scores, games = ratings_of(counts), _scores(counts), counts.sum(axis=2)
    points, errors = ANCHOR_POINTS + ratings.above(anchor), ratings.error_above(anchor)
    weights = nash_weights(np.where(games > 0, scores, 0.5))
    means = (scores * games).sum(axis=1) / np.maximum(games.sum(axis=1), 1)
    return [
        RatedPlayer(
            name=player.name,
            run=player.run,
            step=player.step,
            rating=float(points[place]),
            lower=float(points[place] - errors[place]),
            upper=float(points[place] + errors[place]),
            games=int(games[place].sum()),
            score=float(means[place]),
            nash=float(weights[place]),
        )
        for place, player in enumerate(players)
    ]


def _scores(counts: np.ndarray) -> np.ndarray:
    """Mean scores [P, P]; 0 where nothing was played."""
    points = counts[:, :, 0] + 0.5 * counts[:, :, 1]
    return np.asarray(points / np.maximum(counts.sum(axis=2), 1))


def _count_rows(
    names: Sequence[str], counts: np.ndarray
) -> Iterator[tuple[str, str, int, int, int]]:
    for one, other in combinations(range(len(names)), 2):
        wins, draws, losses = counts[one, other].tolist()
        yield names[one], names[other], wins, draws, losses
