"""A league as tables and as a page."""

from collections.abc import Sequence
from itertools import cycle

from aimbot_lab.experiment.analysis.charts import (
    COLOURS,
    Interval,
    Trail,
    interval_chart,
    trail_chart,
)
from aimbot_lab.experiment.analysis.html_page import heading, html_table, page, paragraph
from aimbot_lab.league.result import League

HEAD = ("player", "step", "rating", "95 % interval", "games", "score", "Nash")
COLOUR = COLOURS[0]
SHORT_ID = 8


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


def _over_steps(league: League) -> list[str]:
    chart = trail_chart(trails(league), x_name="environment steps", y_name="rating")
    note = "Snapshots, last and best agent of each run, with 95 % intervals."
    return [heading("Ratings over steps"), chart, paragraph(note, quiet=True)]


def league_page(league: League) -> str:
    """The whole page, in one text."""
    head, rows = score_rows(league)
    ends = [end for one in league.players for end in (one.lower, one.upper)]
    intervals = [
        Interval(one.name, one.rating, one.lower, one.upper, COLOUR) for one in league.players
    ]
    return page(
        "League",
        [
            paragraph(league.verdict),
            paragraph(f"{league.anchor} has 1200 points.", quiet=True),
            html_table(HEAD, rating_rows(league)),
            interval_chart(intervals, low=min(ends), high=max(ends), zero=None),
            *_over_steps(league),
            heading("Scores"),
            html_table(head, rows),
            *(paragraph(f"Left out: {line}") for line in league.left_out),
        ],
    )
