"""Players compared cell by cell."""

import math
from dataclasses import replace

import numpy as np
import pytest

from aimbot_lab.evaluation.episodes import Act, CellEpisodes, play
from aimbot_lab.experiment.analysis.comparison import differences
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world_type import RandomAgent
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.world_type import GreedyAgent

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


def test_two_players_who_are_as_good_differ_by_chance_alone() -> None:
    """The whole way, from episodes to p-values, in small groups: a player in the arena who takes
    one step in three at random."""
    group, groups = 32, 200
    world = Arena(ArenaSettings(num_envs=group * groups, time_limit=10.0, goto_win_radius=3.0))
    cell = Cell("goto", 3)

    def careless(seed: int) -> Act:
        greedy, random = GreedyAgent(world.spec), RandomAgent(world.spec, seed)
        chance = np.random.default_rng(seed)
        return lambda seen, _starts: np.where(
            chance.random((len(seen), 1)) < 1 / 3, random(seen), greedy(seen)
        )

    won = [play(world, careless(seed), cell, seed=3).won for seed in (1, 2)]
    nothing = np.full(group, np.nan)
    p_values = []
    for first, second in zip(*(side.reshape(groups, group) for side in won), strict=True):
        sides = [CellEpisodes(cell, side, nothing, nothing) for side in (first, second)]
        row = differences(sides[:1], [sides[1:]], margin=0.05)[0][1]
        if row.first_only + row.second_only:
            p_values.append(row.p_value)
    assert len(p_values) > 0.9 * groups, f"win rates {[side.mean() for side in won]}"
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.06)
    assert np.mean(np.array(p_values) <= 0.1) <= 0.16
