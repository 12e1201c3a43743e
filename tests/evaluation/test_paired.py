"""Paired comparison: closed forms, coverage, and p-values under the null."""

import numpy as np
import pytest
from scipy import stats

from aimbot_lab.experiment.analysis.comparison import Pairs, holm

RANDOM = np.random.default_rng(11)


def drawn(times: int, n: int, first_only: float, second_only: float) -> list[Pairs]:
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
def test_the_p_value_is_the_exact_one_less_half_of_what_lies_at_the_imbalance(
    a: int, b: int
) -> None:
    n, k = a + b, min(a, b)
    exact = stats.binomtest(k, n, 0.5).pvalue
    at = stats.binom.pmf(k, n, 0.5) * (1 if a == b else 2)
    assert sum(Pairs(5000, a, b).tails) == pytest.approx(exact, rel=1e-9)
    assert Pairs(5000, a, b).p_value == pytest.approx(exact - at / 2, rel=1e-9)
    assert Pairs(5000, a, b).p_value == Pairs(5000, b, a).p_value


def test_a_player_against_itself_shows_nothing() -> None:
    won = RANDOM.random(500) < 0.7
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
    tables = drawn(8000, n, share / 2, share / 2)
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
    found = [table.p_value <= 0.05 for table in drawn(4000, 200, 0.05, 0.15)]
    needed = Pairs(200, 10, 30).episodes_to_find()
    assert needed == pytest.approx(155, abs=3)
    assert np.mean(found) == pytest.approx(0.89, abs=0.03)
    enough = [table.p_value <= 0.05 for table in drawn(4000, needed, 0.05, 0.15)]
    assert np.mean(enough) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("n", "first", "second"),
    [(50, 0.1, 0.1), (200, 0.01, 0.02), (200, 0.0, 0.3)],
)
def test_the_interval_covers_the_difference_as_often_as_it_says(
    n: int, first: float, second: float
) -> None:
    intervals = np.array([table.interval() for table in drawn(6000, n, first, second)])
    covered = (intervals[:, 0] <= second - first) & (second - first <= intervals[:, 1])
    assert 0.94 <= covered.mean() <= 0.985


def test_episodes_that_rule_out_a_difference_do_so_as_often_as_they_should() -> None:
    needed = Pairs(1000, 50, 50).episodes_to_rule_out(0.05)
    tables = drawn(4000, needed, 0.05, 0.05)
    inside = [max(map(abs, table.interval())) <= 0.05 for table in tables]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.03)


def test_holms_values_rise_with_the_number_of_questions() -> None:
    assert holm([0.01]) == (0.01,)
    assert holm([0.04, 0.01, 0.03]) == pytest.approx((0.06, 0.03, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()
