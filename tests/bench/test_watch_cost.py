"""What being watched costs: windows of both kinds by turns, in one training."""

import pytest

from aimbot_lab.bench.panel.watching import WARM_UP, measure_watch_cost, watch_cost


def test_the_cost_is_that_of_the_watched_windows() -> None:
    found = watch_cost([1e-6, 1.1e-6] * 10)
    assert (found.windows, found.seconds_without) == (10, pytest.approx(1.0))
    assert found.seconds_with == pytest.approx(1.1)
    assert (found.difference, found.lower, found.upper) == (pytest.approx(0.1),) * 3
    assert WARM_UP % 2 == 0  # else the kinds would be swapped


def test_as_many_windows_of_each_kind_are_measured() -> None:
    found = measure_watch_cost(2, seconds=0.05, num_envs=16)
    assert found.windows == 2
    assert found.lower <= found.difference <= found.upper
