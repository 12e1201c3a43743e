"""Cycles among players, and the mixture that nobody beats."""

import numpy as np
import pytest

from aimbot_lab.foundation.cycles import cycle_p, cycles_of, nash_weights


def even_games(scores: np.ndarray, games: int) -> np.ndarray:
    """The table of players whose scores against each other are exactly these, without draws."""
    wins = np.round(scores * games)
    np.fill_diagonal(wins, 0)
    played = games * (1 - np.eye(len(scores)))
    return np.stack([wins, np.zeros_like(wins), played - wins], axis=2)


ROCK_PAPER_SCISSORS = np.array([[0.5, 0.8, 0.2], [0.2, 0.5, 0.8], [0.8, 0.2, 0.5]])
LADDER = 1 / (1 + 10 ** (-(np.arange(4)[:, None] - np.arange(4)[None]) * 150 / 400))


def test_rock_paper_scissors_is_found_and_each_has_a_third() -> None:
    found = cycles_of(even_games(ROCK_PAPER_SCISSORS, 200), seed=1, tables=199)
    assert found.p <= 0.01
    assert found.share == pytest.approx(1.0, abs=1e-6)
    assert found.strongest in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    np.testing.assert_allclose(nash_weights(ROCK_PAPER_SCISSORS), 1 / 3, atol=0.02)


def test_a_ladder_has_no_cycle_and_all_weight_on_its_top() -> None:
    found = cycles_of(even_games(LADDER, 200), seed=1, tables=199)
    assert found.p > 0.05
    assert found.strongest is None
    assert found.share < 0.05
    np.testing.assert_allclose(nash_weights(LADDER), [0, 0, 0, 1], atol=0.02)


def test_players_that_are_alike_share_the_weight_evenly() -> None:
    np.testing.assert_allclose(nash_weights(np.full((5, 5), 0.5)), 0.2, atol=1e-3)


def test_the_test_is_wrong_no_more_often_than_it_says() -> None:
    random, points = np.random.default_rng(7), np.linspace(0, 300, 8)
    expected = 1 / (1 + 10 ** (-(points[:, None] - points[None]) / 400))
    found = []
    for seed in range(60):
        above = np.triu(np.ones((8, 8), bool), 1)
        wins = np.where(above, random.binomial(100, expected), 0)
        wins = wins + np.where(above.T, 100 - wins.T, 0)
        games = 100 * (1 - np.eye(8))
        table = np.stack([wins, np.zeros((8, 8)), games - wins], axis=2)
        found.append(cycle_p(table, seed=seed, tables=99) <= 0.05)
    assert np.mean(found) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
