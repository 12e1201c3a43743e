"""Players compared cell by cell."""

import math
from dataclasses import replace

import numpy as np
import pytest

from aimbot_lab.evaluation.episodes import CellEpisodes
from aimbot_lab.experiment.analysis.comparison import differences
from aimbot_lab.foundation.episodes import Cell

CELLS = (Cell("goto", 1), Cell("goto", 2), Cell("free", 0))
N = 400
HALVES = (slice(None, N // 2), slice(N // 2, None))


def player(seed: int, *rates: float) -> list[CellEpisodes]:
    random = np.random.default_rng(seed)
    nothing = np.full(N, np.nan)
    return [
        CellEpisodes(cell, random.random(N) < rate, nothing, nothing)
        for cell, rate in zip(CELLS, rates, strict=True)
    ]


def test_a_player_against_itself_is_alike_everywhere() -> None:
    same = player(1, 0.9, 0.5, 0.1)
    ((together, *cells),) = differences(same, [same], margin=0.05)
    assert (together.cell, [row.cell for row in cells]) == (None, list(CELLS))
    for row in (together, *cells):
        assert (row.difference, row.adjusted_p_value, row.verdict) == (0.0, 1.0, "alike")
        assert row.more_episodes == 0


def test_what_differs_is_found_where_it_differs() -> None:
    first, second = player(1, 0.9, 0.9, 0.5), player(2, 0.9, 0.7, 0.8)
    ((together, same, worse, better),) = differences(first, [second], margin=0.01)
    assert (same.verdict, worse.verdict, better.verdict) == ("unclear", "worse", "better")
    assert worse.upper < 0 < better.lower
    assert together.difference == pytest.approx(
        np.mean([row.difference for row in (same, worse, better)])
    )
    assert same.more_episodes > 0
    assert worse.more_episodes == better.more_episodes == 0


def test_the_cells_of_all_comparisons_share_one_chance_of_error() -> None:
    first = player(1, 0.8, 0.8, 0.8)
    others = [player(seed, 0.8, 0.8, 0.8) for seed in range(2, 7)]
    rows = [row for _, *cells in differences(first, others, margin=0.05) for row in cells]
    smallest = min(rows, key=lambda row: row.p_value)
    assert smallest.adjusted_p_value == pytest.approx(min(1.0, len(rows) * smallest.p_value))
    assert all(row.adjusted_p_value >= row.p_value for row in rows)


def test_the_episodes_that_are_lacking_are_shared_by_the_cells() -> None:
    whole = [player(seed, 0.5, 0.5, 0.5)[0] for seed in (1, 2)]
    halves = [
        [
            replace(side, cell=cell, won=side.won[part])
            for cell, part in zip(CELLS[:2], HALVES, strict=True)
        ]
        for side in whole
    ]
    ((one, _),) = differences(whole[:1], [whole[1:]], margin=0.02)
    ((two, *_),) = differences(halves[0], [halves[1]], margin=0.02)
    assert one.more_episodes > 100
    assert two.more_episodes == math.ceil(one.more_episodes / 2)


def test_other_cells_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same cells"):
        differences(player(1, 1, 1, 1)[:2], [player(1, 1, 1, 1)[1:]], margin=0.05)
