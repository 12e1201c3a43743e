"""What a league came to: ratings, scores and cycles, as tables and as a page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, cycle
from typing import Any

import numpy as np

from aimbot_lab.evaluation.matches import MatchPlayer
from aimbot_lab.experiment.analysis.charts import (
    COLOURS,
    Interval,
    Trail,
    heading,
    html_table,
    interval_chart,
    page,
    paragraph,
    trail_chart,
)
from aimbot_lab.experiment.analysis.matches import SHORT_ID
from aimbot_lab.foundation.cycles import ALPHA, cycles_of, nash_weights
from aimbot_lab.foundation.ratings import ratings_of
from aimbot_lab.training.self_play.scores import GAMES_HEAD

ANCHOR, ANCHOR_POINTS = "greedy", 1200.0  # so that leagues compare
HEAD = ("player", "step", "rating", "95 % interval", "games", "score", "Nash")
COLOUR = COLOURS[0]


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
    nash: float  # weight in the most even mixture that no player beats


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
        return GAMES_HEAD + "".join(f"{line}\n" for line in lines)


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


def rating_rows(league: League) -> list[tuple[str, ...]]:
    """A row for each player, the best first."""
    return [
        (
            one.name,
            "script" if one.step is None else f"{one.step:,}",
            f"{one.rating:.0f}",
            f"{one.lower:.0f} to {one.upper:.0f}",
            f"{one.games:,}",
            f"{one.score:.3f}",
            f"{one.nash:.2f}",
        )
        for one in league.players
    ]


def score_rows(league: League) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Heads and rows of the mean scores of each player against each, numbered as rated."""
    numbers = [str(place + 1) for place in range(len(league.players))]
    rows = [
        (
            f"{number} {player.name}",
            *("" if score is None else f"{score:.2f}" for score in scores),
        )
        for number, player, scores in zip(numbers, league.players, league.scores, strict=True)
    ]
    return ("score against", *numbers), rows


def trails(league: League) -> list[Trail]:
    """The ratings of each run's players by the step that they are from."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for one in league.players:
        if one.run is not None and one.step is not None:
            point = float(one.step), one.rating, one.lower, one.upper
            found.setdefault(one.run, []).append(point)
    named = sorted(found.items())
    return [
        Trail(f"run {run[:SHORT_ID]}", sorted(points), colour)
        for (run, points), colour in zip(named, cycle(COLOURS), strict=False)
    ]


def league_page(league: League) -> str:
    """The whole page, in one text."""
    head, rows = score_rows(league)
    ends = [end for one in league.players for end in (one.lower, one.upper)]
    intervals = [
        Interval(one.name, one.rating, one.lower, one.upper, COLOUR) for one in league.players
    ]
    chart = trail_chart(trails(league), x_name="environment steps", y_name="rating")
    note = "Snapshots, last and best agent of each run, with 95 % intervals."
    return page(
        "League",
        [
            paragraph(league.verdict),
            paragraph(f"{league.anchor} has 1200 points.", quiet=True),
            html_table(HEAD, rating_rows(league)),
            interval_chart(intervals, low=min(ends), high=max(ends), zero=None),
            *[heading("Ratings over steps"), chart, paragraph(note, quiet=True)],
            heading("Scores"),
            html_table(head, rows),
            *(paragraph(f"Left out: {line}") for line in league.left_out),
        ],
    )
