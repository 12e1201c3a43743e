"""Players whose episodes are not the same: the test and the interval of independent ones."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

from aimbot_lab.evaluation.episodes import CellEpisodes
from aimbot_lab.experiment.analysis.comparison import Wins, differences
from aimbot_lab.foundation.episodes import Cell, difference_of_means, welch


def drawn(times: int, n: int, first: float, second: float) -> list[Wins]:
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
    p_values = np.array([wins.p_value for wins in drawn(2000, 60, 0.7, 0.7)])
    assert np.mean(p_values <= 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("rates", [(0.9, 0.97), (0.02, 0.3)])
def test_the_interval_covers_the_difference_as_often_as_it_says(rates: tuple[float, float]) -> None:
    found = [wins.interval() for wins in drawn(2000, 80, *rates)]
    inside = np.mean([low <= rates[1] - rates[0] <= high for low, high in found])
    assert 0.93 <= inside <= 0.99


def test_as_many_episodes_as_are_asked_for_find_the_difference_with_their_power() -> None:
    enough = Wins(100, 60, 75).episodes_to_find()
    assert enough is not None
    found = np.mean([wins.p_value <= 0.05 for wins in drawn(800, enough, 0.6, 0.75)])
    assert found == pytest.approx(0.8, abs=0.05)
    assert Wins(100, 60, 60).episodes_to_find() is None


def test_as_many_as_are_asked_for_rule_a_difference_out_with_their_power() -> None:
    enough = Wins(200, 160, 160).episodes_to_rule_out(0.1)
    ends = [wins.interval() for wins in drawn(800, enough, 0.8, 0.8)]
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
    wanted = ttest_ind(second, first, equal_var=False).confidence_interval()
    assert welch(first, second) == pytest.approx((np.mean(second) - np.mean(first), *wanted))
    assert welch([500.0, 500.0], [500.0, 500.0]) == (0.0, None, None)
    assert welch([500.0], [480.0, 500.0]) == (-10.0, None, None)


def test_a_player_against_itself_in_other_episodes_is_no_pair() -> None:
    random, nothing = np.random.default_rng(5), np.full(300, np.nan)
    one, two = (
        [CellEpisodes(Cell("goto", 1), random.random(300) < 0.6, nothing, nothing)]
        for _ in range(2)
    )
    ((paired, _),) = differences(one, [one], margin=0.05)
    assert (paired.verdict, paired.first_only) == ("alike", 0)
    ((together, cell),) = differences(one, [two], margin=0.05, are_paired=False)
    for row in (together, cell):
        assert (row.first_only, row.second_only, row.verdict) == (None, None, "unclear")
        assert row.p_value == Wins.of(one[0].won, two[0].won).p_value
        assert (row.lower, row.upper) == Wins.of(one[0].won, two[0].won).interval()
        assert row.more_episodes > 0
