"""Ratings of players who met, and circles among them."""

import math

import numpy as np
import pytest

from aimbot_lab.foundation.cycles import cycle_p, cyclic_share, nash_weights, strongest_cycle
from aimbot_lab.foundation.ratings import expected_score, ratings_of


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
    above = ratings_of(table({(0, 1): (70_000, 10_000, 20_000)}, 2)).above(1)[0]
    assert above == pytest.approx(400 * math.log10(0.75 / 0.25), abs=0.05)
    assert expected_score(float(above)) == pytest.approx(0.75, abs=1e-4)


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


@pytest.mark.parametrize("draws", [0.0, 0.5])
def test_each_scores_as_much_as_the_ratings_expect(draws: float) -> None:
    """As where the likelihood is highest; each has drawn a game with one of 0 points, too."""
    counts = drawn(np.random.default_rng(1).uniform(0, 500, 7), 30, draws=draws, seed=1)
    points = ratings_of(counts).points
    expected = 1 / (1 + 10 ** (-(points[:, None] - points[None]) / 400))
    surplus = counts[..., 0] + counts[..., 1] / 2 - expected * counts.sum(axis=2)
    origin = 0.5 - 1 / (1 + 10 ** (-points / 400))
    np.testing.assert_allclose(surplus.sum(axis=1) + origin, 0.0, atol=1e-6)


def even_games(scores: np.ndarray, games: int) -> np.ndarray:
    """The table of players whose scores against each other are exactly these, without draws."""
    wins = np.round(scores * games)
    np.fill_diagonal(wins, 0)
    played = games * (1 - np.eye(len(scores)))
    return np.stack([wins, np.zeros_like(wins), played - wins], axis=2)


ROCK_PAPER_SCISSORS = np.array([[0.5, 0.8, 0.2], [0.2, 0.5, 0.8], [0.8, 0.2, 0.5]])
LADDER = 1 / (1 + 10 ** (-(np.arange(4)[:, None] - np.arange(4)[None]) * 150 / 400))


def test_rock_paper_scissors_is_found_and_each_has_a_third() -> None:
    games = even_games(ROCK_PAPER_SCISSORS, 200)
    assert cycle_p(games, seed=1, tables=199) <= 0.01
    assert cyclic_share(games) == pytest.approx(1.0, abs=1e-6)
    assert strongest_cycle(games) in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    np.testing.assert_allclose(nash_weights(ROCK_PAPER_SCISSORS), 1 / 3, atol=0.02)
    np.testing.assert_allclose(nash_weights(np.full((5, 5), 0.5)), 0.2, atol=1e-3)  # all alike


def test_a_ladder_has_no_cycle_and_all_weight_on_its_top() -> None:
    games = even_games(LADDER, 200)
    assert cycle_p(games, seed=1, tables=199) > 0.05
    assert strongest_cycle(games) is None
    assert cyclic_share(games) < 0.05
    np.testing.assert_allclose(nash_weights(LADDER), [0, 0, 0, 1], atol=0.02)


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
