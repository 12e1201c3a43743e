"""Ratings: closed forms, their errors, and that order does not matter."""

import math

import numpy as np
import pytest

from aimbot_lab.foundation.statistics.ratings import expected_score, ratings_of


def table(pairs: dict[tuple[int, int], tuple[int, int, int]], players: int) -> np.ndarray:
    counts = np.zeros((players, players, 3), np.int64)
    for (one, other), (wins, draws, losses) in pairs.items():
        counts[one, other] += (wins, draws, losses)
        counts[other, one] += (losses, draws, wins)
    return counts


def drawn(points: np.ndarray, games: int, *, draws: float, seed: int) -> np.ndarray:
    """A table of random games, the given share of what can be drawn being drawn."""
    random, found = np.random.default_rng(seed), {}
    for one in range(len(points)):
        for other in range(one):
            score = expected_score(float(points[one] - points[other]))
            drawn_ones = 2.0 * draws * min(score, 1.0 - score)
            chances = [score - drawn_ones / 2, drawn_ones, 1 - score - drawn_ones / 2]
            found[one, other] = tuple(random.multinomial(games, chances).tolist())
    return table(found, len(points))


def test_two_players_are_apart_by_the_logit_of_their_score() -> None:
    ratings = ratings_of(table({(0, 1): (70_000, 10_000, 20_000)}, 2))
    assert ratings.above(1)[0] == pytest.approx(400 * math.log10(0.75 / 0.25), abs=0.05)
    assert expected_score(float(ratings.above(1)[0])) == pytest.approx(0.75, abs=1e-4)


def test_who_never_lost_has_a_finite_rating_and_who_never_played_stands_at_the_origin() -> None:
    ratings = ratings_of(table({(0, 1): (50, 0, 0)}, 3))
    assert np.isfinite(ratings.points).all()
    assert ratings.points[0] > ratings.points[2] > ratings.points[1]


def test_players_in_another_order_get_the_same_ratings() -> None:
    counts = drawn(np.linspace(0, 600, 8), 40, draws=0.4, seed=3)
    order = np.random.default_rng(1).permutation(8)
    other = ratings_of(counts[order][:, order])
    np.testing.assert_allclose(other.points, ratings_of(counts).points[order], atol=1e-9)


@pytest.mark.parametrize("draws", [0.0, 0.5])
def test_intervals_of_differences_cover_as_often_as_they_say(draws: float) -> None:
    points, covered = np.arange(12) * 50.0, []
    for seed in range(60):
        ratings = ratings_of(drawn(points, 100, draws=draws, seed=seed))
        covered.append(np.abs(ratings.above(0) - points)[1:] <= ratings.error_above(0)[1:])
    assert 0.92 < np.mean(covered) < 0.98


def test_draws_make_intervals_narrower_than_wins_and_losses_of_the_same_score() -> None:
    decided = ratings_of(table({(0, 1): (50, 0, 50)}, 2)).error_above(1)[0]
    half_drawn = ratings_of(table({(0, 1): (25, 50, 25)}, 2)).error_above(1)[0]
    assert half_drawn == pytest.approx(decided / math.sqrt(2), rel=1e-6)
