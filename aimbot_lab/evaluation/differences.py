"""What separates two players in every cell they both played, and how sure that is."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from aimbot_lab.evaluation import paired, unpaired
from aimbot_lab.evaluation.episodes import CellEpisodes
from aimbot_lab.evaluation.paired import LEVEL, Pairs, holm
from aimbot_lab.evaluation.unpaired import Wins
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.intervals import difference_of_means, mean_interval
from aimbot_lab.foundation.world import BoolArray

Verdict = Literal["better", "worse", "alike", "unclear"]
Players = Sequence[CellEpisodes]  # one player's episodes, cell by cell


@dataclass(frozen=True)
class Difference:
    """The second of two players against the first, in the same episodes or each in its own."""

    cell: Cell | None  # None: all cells together
    episodes: int  # of each player
    first_win_rate: float
    second_win_rate: float
    first_only: int | None  # episodes that the first player alone won; None: not the same ones
    second_only: int | None
    difference: float  # second less first
    lower: float  # interval at 95 %
    upper: float
    p_value: float  # mid-p of McNemar's test, or of Fisher's where episodes are not the same ones
    adjusted_p_value: float  # Holm's, over the cells of all comparisons; of all together its own
    verdict: Verdict
    more_episodes: int  # of each cell, until the verdict is likely to be clear; 0 where it is
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """Mean difference of what the world measures with an interval, by name, with NAME_lower and
    NAME_upper."""


def differences(
    first: Players, others: Sequence[Players], *, margin: float, are_paired: bool = True
) -> tuple[tuple[Difference, ...], ...]:
    """For each of `others` its difference to `first`: all cells together, then each by itself.

    The n-th episodes of all players are the same one if they `are_paired`. A player is better or
    worse where Holm's p-value is at most 0.05, alike where the interval lies within plus or minus
    `margin`, else it is unclear. All cells together are one question that was there from the start:
    its p-value needs no adjustment. Raises ValueError where players did not play the same cells.
    """
    compared = [
        [_compared([one], [two], one.cell, are_paired) for one, two in _cells(first, other)]
        for other in others
    ]
    adjusted = iter(holm([row.p_value for rows in compared for row in rows]))
    questions = sum(map(len, compared))
    return tuple(
        (
            _judged(_compared(first, other, None, are_paired), margin, cells=len(rows)),
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


def _compared(first: Players, second: Players, cell: Cell | None, are_paired: bool) -> Difference:
    won = [np.concatenate([played.won for played in side]) for side in (first, second)]
    count: Callable[[BoolArray, BoolArray], Pairs | Wins]
    count = paired.count_pairs if are_paired else unpaired.count_wins
    row = _difference(cell, count(*won), *(float(side.mean()) for side in won))
    return replace(row, measures=_measured(first, second, are_paired))


def _measured(first: Players, second: Players, are_paired: bool) -> dict[str, float | None]:
    """The mean difference of each measure that has an interval."""
    found: dict[str, float | None] = {}
    for measure in first[0].measures:
        if not measure.interval or measure.only:
            continue
        one, two = (
            np.concatenate([measure.values(played.columns) for played in side])
            for side in (first, second)
        )
        interval = mean_interval((two - one).tolist()) if are_paired else None
        mean, lower, upper = interval or difference_of_means(one.tolist(), two.tolist())
        name = measure.name
        found |= {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}
    return found


def _difference(
    cell: Cell | None, counts: Pairs | Wins, first_rate: float, second_rate: float
) -> Difference:
    if isinstance(counts, Pairs):
        interval, p_value = paired.difference_interval(counts), paired.mcnemar(counts)
    else:
        interval, p_value = unpaired.difference_interval(counts), unpaired.fisher(counts)
    return Difference(
        cell=cell,
        episodes=counts.episodes,
        first_win_rate=first_rate,
        second_win_rate=second_rate,
        first_only=counts.first_only if isinstance(counts, Pairs) else None,
        second_only=counts.second_only if isinstance(counts, Pairs) else None,
        difference=counts.difference,
        lower=interval.lower,
        upper=interval.upper,
        p_value=p_value,
        adjusted_p_value=p_value,
        verdict="unclear",
        more_episodes=0,
    )


def _judged(row: Difference, margin: float, *, cells: int = 1, questions: int = 1) -> Difference:
    """`row` with its verdict; it is one of `questions`, over the episodes of `cells`."""
    if row.adjusted_p_value <= LEVEL:
        return replace(row, verdict="better" if row.difference > 0 else "worse")
    if -margin <= row.lower and row.upper <= margin:
        return replace(row, verdict="alike")
    enough = _enough_episodes(row, margin, level=LEVEL / questions)
    more = [count - row.episodes for count in enough if count and count > row.episodes]
    return replace(row, more_episodes=math.ceil(min(more, default=row.episodes) / cells))


def _enough_episodes(row: Difference, margin: float, *, level: float) -> list[int | None]:
    """How many would find the difference, and how many would rule it out."""
    if row.first_only is None or row.second_only is None:
        rates = row.first_win_rate, row.second_win_rate
        wins = Wins(row.episodes, *(round(rate * row.episodes) for rate in rates))
        found = unpaired.episodes_to_find(wins, level=level)
        return [found, unpaired.episodes_to_rule_out(wins, margin)]
    pairs = Pairs(row.episodes, row.first_only, row.second_only)
    return [
        paired.episodes_to_find(pairs, level=level),
        paired.episodes_to_rule_out(pairs, margin),
    ]
