"""What separates two players in every cell they both played, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from aimbot_lab.evaluation.episodes import CellEpisodes
from aimbot_lab.evaluation.paired import (
    LEVEL,
    Pairs,
    count_pairs,
    difference_interval,
    episodes_to_find,
    episodes_to_rule_out,
    holm,
    mcnemar,
)
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.intervals import mean_interval
from aimbot_lab.foundation.world import BoolArray

Verdict = Literal["better", "worse", "alike", "unclear"]
Players = Sequence[CellEpisodes]  # one player's episodes, cell by cell


@dataclass(frozen=True)
class Difference:
    """The second of two players against the first, in the same episodes."""

    cell: Cell | None  # None: all cells together
    episodes: int
    first_win_rate: float
    second_win_rate: float
    first_only: int  # episodes that the first player alone won
    second_only: int
    difference: float  # second less first
    lower: float  # interval at 95 %
    upper: float
    p_value: float  # McNemar's test, mid-p
    adjusted_p_value: float  # Holm's, over the cells of all comparisons; of all together its own
    verdict: Verdict
    more_episodes: int  # of each cell, until the verdict is likely to be clear; 0 where it is
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """Mean difference of what the world measures with an interval, by name, with NAME_lower and
    NAME_upper."""


def differences(
    first: Players, others: Sequence[Players], *, margin: float
) -> tuple[tuple[Difference, ...], ...]:
    """For each of `others` its difference to `first`: all cells together, then each by itself.

    One is better or worse where Holm's p-value is at most 0.05, alike where the interval lies
    within plus or minus `margin`, else it is unclear. All cells together are one question that
    was there from the start: its p-value needs no adjustment. Raises ValueError where players did
    not play the same episodes.
    """
    compared = [[_compared(one, two) for one, two in _cells(first, other)] for other in others]
    adjusted = iter(holm([row.p_value for rows in compared for row in rows]))
    questions = sum(map(len, compared))
    return tuple(
        (
            _judged(_together(first, other), margin, cells=len(rows)),
            *(
                _judged(replace(row, adjusted_p_value=next(adjusted)), margin, questions=questions)
                for row in rows
            ),
        )
        for other, rows in zip(others, compared, strict=True)
    )


def _cells(first: Players, second: Players) -> list[tuple[CellEpisodes, CellEpisodes]]:
    if [played.cell for played in first] != [played.cell for played in second]:
        raise ValueError("the players did not play the same cells")
    return list(zip(first, second, strict=True))


def _compared(first: CellEpisodes, second: CellEpisodes) -> Difference:
    row = _difference(first.cell, first.won, second.won)
    return replace(row, measures=_measured([first], [second]))


def _together(first: Players, second: Players) -> Difference:
    won = [np.concatenate([played.won for played in side]) for side in (first, second)]
    return replace(_difference(None, *won), measures=_measured(first, second))


def _measured(first: Players, second: Players) -> dict[str, float | None]:
    """The mean difference, episode by episode, of each measure that has an interval."""
    found: dict[str, float | None] = {}
    for measure in first[0].measures:
        if not measure.interval or measure.only:
            continue
        pairs = zip(first, second, strict=True)
        values = [measure.values(two.columns) - measure.values(one.columns) for one, two in pairs]
        mean, lower, upper = mean_interval(np.concatenate(values).tolist())
        name = measure.name
        found |= {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}
    return found


def _difference(cell: Cell | None, first: BoolArray, second: BoolArray) -> Difference:
    pairs = count_pairs(first, second)
    lower, upper = difference_interval(pairs)
    return Difference(
        cell=cell,
        episodes=pairs.episodes,
        first_win_rate=float(first.mean()),
        second_win_rate=float(second.mean()),
        first_only=pairs.first_only,
        second_only=pairs.second_only,
        difference=pairs.difference,
        lower=lower,
        upper=upper,
        p_value=mcnemar(pairs),
        adjusted_p_value=mcnemar(pairs),
        verdict="unclear",
        more_episodes=0,
    )


def _judged(row: Difference, margin: float, *, cells: int = 1, questions: int = 1) -> Difference:
    """`row` with its verdict; it is one of `questions`, over the episodes of `cells`."""
    if row.adjusted_p_value <= LEVEL:
        return replace(row, verdict="better" if row.difference > 0 else "worse")
    if -margin <= row.lower and row.upper <= margin:
        return replace(row, verdict="alike")
    pairs = Pairs(row.episodes, row.first_only, row.second_only)
    found = episodes_to_find(pairs, level=LEVEL / questions)
    enough = [found, episodes_to_rule_out(pairs, margin)]
    more = [count - row.episodes for count in enough if count and count > row.episodes]
    return replace(row, more_episodes=math.ceil(min(more, default=row.episodes) / cells))
