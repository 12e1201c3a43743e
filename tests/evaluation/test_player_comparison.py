"""Players compared: in the same episodes, in others, and cell by cell."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from aimbot_lab.evaluation.episodes import CellEpisodes
from aimbot_lab.experiment.analysis.comparison import Pairs, Wins, differences, holm
from aimbot_lab.foundation.episodes import Cell, difference_of_means, welch

CELLS = (Cell("goto", 1), Cell("goto", 2), Cell("free", 0))
N = 400
HALVES = (slice(None, N // 2), slice(N // 2, None))


def drawn_pairs(times: int, n: int, first_only: float, second_only: float) -> list[Pairs]:
    shares = [first_only, second_only, 1 - first_only - second_only]
    counts = np.random.default_rng(11).multinomial(n, shares, times)
    return [Pairs(n, int(a), int(b)) for a, b, _ in counts]


def test_pairs_are_counted_by_who_won_alone() -> None:
    first = np.array([True, True, True, False, False])
    second = np.array([True, False, False, True, False])
    assert Pairs.of(first, second) == (5, 2, 1)
    assert Pairs.of(first, second).difference == pytest.approx(-0.2)
    with pytest.raises(ValueError, match="paired"):
        Pairs.of(first, second[:3])


@pytest.mark.parametrize(("a", "b"), [(0, 6), (4, 4), (900, 1100)])
def test_the_p_value_of_pairs_is_the_exact_one_less_half_of_what_lies_at_the_imbalance(
    a: int, b: int
) -> None:
    n, k = a + b, min(a, b)
    exact = stats.binomtest(k, n, 0.5).pvalue
    at = stats.binom.pmf(k, n, 0.5) * (1 if a == b else 2)
    assert sum(Pairs(5000, a, b).tails) == pytest.approx(exact, rel=1e-9)
    assert Pairs(5000, a, b).p_value == pytest.approx(exact - at / 2, rel=1e-9)
    assert Pairs(5000, a, b).p_value == Pairs(5000, b, a).p_value


def test_a_player_against_itself_shows_nothing() -> None:
    won = np.random.default_rng(11).random(500) < 0.7
    pairs = Pairs.of(won, won)
    assert (pairs.difference, pairs.p_value) == (0.0, 1.0)
    lower, upper = pairs.interval()
    assert -0.01 < lower < 0 < upper < 0.01
    assert pairs.episodes_to_find() is None


@pytest.mark.parametrize(("n", "share"), [(200, 0.2), (1000, 0.01)])
def test_under_the_null_p_values_are_uniform(n: int, share: float) -> None:
    """A count has steps, so a p-value can be uniform only where each step is filled by a draw.

    Mid-p stands in the middle of the step: on average it is 1/2 (but for tables in which no pair
    differs, where it is 1), and it falls below a level about as often as that says.
    """
    tables = drawn_pairs(8000, n, share / 2, share / 2)
    chance = np.random.default_rng(12).random(len(tables))
    larger, at = np.array([table.tails for table in tables]).T
    assert stats.kstest(larger + chance * at, "uniform").pvalue > 0.01
    told = [table for table in tables if table.first_only + table.second_only]
    values = np.array([table.p_value for table in told])
    assert values.mean() == pytest.approx(0.5, abs=0.015)
    for level in (0.01, 0.05, 0.1, 0.2):
        assert (values <= level).mean() < level * 1.15 + 0.005


def test_two_different_players_are_told_apart() -> None:
    """0.80 against 0.90 in 200 episodes: the test finds it about as often as its power says."""
    found = [table.p_value <= 0.05 for table in drawn_pairs(4000, 200, 0.05, 0.15)]
    needed = Pairs(200, 10, 30).episodes_to_find()
    assert needed == pytest.approx(155, abs=3)
    assert np.mean(found) == pytest.approx(0.89, abs=0.03)
    enough = [table.p_value <= 0.05 for table in drawn_pairs(4000, needed, 0.05, 0.15)]
    assert np.mean(enough) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("n", "first", "second"), [(50, 0.1, 0.1), (200, 0.01, 0.02), (200, 0.0, 0.3)]
)
def test_the_interval_of_pairs_covers_the_difference_as_often_as_it_says(
    n: int, first: float, second: float
) -> None:
    intervals = np.array([table.interval() for table in drawn_pairs(6000, n, first, second)])
    covered = (intervals[:, 0] <= second - first) & (second - first <= intervals[:, 1])
    assert 0.94 <= covered.mean() <= 0.985


def test_episodes_that_rule_out_a_difference_do_so_as_often_as_they_should() -> None:
    needed = Pairs(1000, 50, 50).episodes_to_rule_out(0.05)
    tables = drawn_pairs(4000, needed, 0.05, 0.05)
    inside = [max(map(abs, table.interval())) <= 0.05 for table in tables]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.03)


def test_holms_values_rise_with_the_number_of_questions() -> None:
    assert holm([0.01]) == (0.01,)
    assert holm([0.04, 0.01, 0.03]) == pytest.approx((0.06, 0.03, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def drawn_wins(times: int, n: int, first: float, second: float) -> list[Wins]:
    random = np.random.default_rng(7)
    pairs = np.column_stack([random.binomial(n, rate, times) for rate in (first, second)])
    return [Wins(n, *pair) for pair in pairs.tolist()]


def test_wins_are_counted_player_by_player() -> None:
    first, second = np.array([True, True, False]), np.array([False, True, False])
    assert Wins.of(first, second) == Wins(3, 2, 1)
    assert Wins.of(first, second).difference == pytest.approx(-1 / 3)
    with pytest.raises(ValueError, match="one played 3 episodes, the other 2"):
        Wins.of(first, second[:2])


@pytest.mark.parametrize("wins", [Wins(10, 8, 3), Wins(7, 0, 7)])
def test_the_p_value_is_the_exact_one_less_half_of_what_lies_at_the_imbalance(wins: Wins) -> None:
    n, total = wins.episodes, wins.first + wins.second
    chance = {
        k: math.comb(n, k) * math.comb(n, total - k) / math.comb(2 * n, total)
        for k in range(max(0, total - n), min(n, total) + 1)
    }
    imbalance = abs(2 * wins.first - total)
    larger = sum(p for k, p in chance.items() if abs(2 * k - total) > imbalance)
    at = sum(p for k, p in chance.items() if abs(2 * k - total) == imbalance)
    assert wins.p_value == pytest.approx(larger + at / 2)


def test_players_who_win_as_many_show_nothing_whatever_they_win() -> None:
    for wins in (0, 20, 40):
        assert Wins(40, wins, wins).p_value > 0.5
        assert Wins(40, wins, wins).interval()[0] < 0


def test_under_the_null_p_values_keep_to_their_level() -> None:
    p_values = np.array([wins.p_value for wins in drawn_wins(2000, 60, 0.7, 0.7)])
    assert np.mean(p_values <= 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("rates", [(0.9, 0.97), (0.02, 0.3)])
def test_the_interval_covers_the_difference_as_often_as_it_says(rates: tuple[float, float]) -> None:
    found = [wins.interval() for wins in drawn_wins(2000, 80, *rates)]
    inside = np.mean([low <= rates[1] - rates[0] <= high for low, high in found])
    assert 0.93 <= inside <= 0.99


def test_as_many_episodes_as_are_asked_for_find_the_difference_with_their_power() -> None:
    enough = Wins(100, 60, 75).episodes_to_find()
    assert enough is not None
    found = np.mean([wins.p_value <= 0.05 for wins in drawn_wins(800, enough, 0.6, 0.75)])
    assert found == pytest.approx(0.8, abs=0.05)
    assert Wins(100, 60, 60).episodes_to_find() is None


def test_as_many_as_are_asked_for_rule_a_difference_out_with_their_power() -> None:
    enough = Wins(200, 160, 160).episodes_to_rule_out(0.1)
    ends = [wins.interval() for wins in drawn_wins(800, enough, 0.8, 0.8)]
    inside = np.mean([low >= -0.1 and high <= 0.1 for low, high in ends])
    assert inside == pytest.approx(0.8, abs=0.06)


def test_the_difference_of_independent_means_covers_the_truth() -> None:
    random, inside = np.random.default_rng(3), 0
    for _ in range(500):
        first, second = random.normal(0, 1, 50), random.normal(1, 3, 60)
        mean, low, high = difference_of_means(first.tolist(), second.tolist())
        assert mean == pytest.approx(second.mean() - first.mean())
        assert low is not None
        assert high is not None
        inside += low <= 1 <= high
    assert 0.92 <= inside / 500 <= 0.98
    assert difference_of_means([1.0], [2.0, 3.0]) == (1.5, None, None)


def test_the_means_of_few_runs_differ_by_welch_s_interval() -> None:
    first, second = [-140.0, -152.0, -149.0], [-210.0, -160.0, -480.0, -155.0]
    wanted = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert welch(first, second) == pytest.approx((np.mean(second) - np.mean(first), *wanted))
    assert welch([500.0, 500.0], [500.0, 500.0]) == (0.0, None, None)
    assert welch([500.0], [480.0, 500.0]) == (-10.0, None, None)


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
        assert (row.first_only, row.more_episodes) == (0, 0)


def test_a_player_against_itself_in_other_episodes_is_no_pair() -> None:
    one, two = (player(seed, 0.6, 0.6, 0.6)[:1] for seed in (5, 6))
    ((together, cell),) = differences(one, [two], margin=0.05, are_paired=False)
    for row in (together, cell):
        assert (row.first_only, row.second_only, row.verdict) == (None, None, "unclear")
        assert row.p_value == Wins.of(one[0].won, two[0].won).p_value
        assert (row.lower, row.upper) == Wins.of(one[0].won, two[0].won).interval()
        assert row.more_episodes > 0


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
