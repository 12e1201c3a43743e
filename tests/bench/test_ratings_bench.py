"""The simulation of leagues: tables as they were asked for, and counts that are shares."""

import numpy as np

from aimbot_lab.bench.simulations import RatingsPlan, bench_ratings, drawn_table
from aimbot_lab.foundation.ratings import expected_scores

TINY = RatingsPlan(
    players=4,
    games=30,
    tables=5,
    cycle_players=6,
    cycle_tables=4,
    drawn_tables=19,
    draws=(0.0, 0.5),
)


def test_a_drawn_table_has_the_games_and_the_scores_that_were_asked_for() -> None:
    scores = expected_scores(100.0 * np.arange(4))
    counts = drawn_table(scores, 40_000, 0.5, np.random.default_rng(1))
    found = (counts[:, :, 0] + 0.5 * counts[:, :, 1]) / 40_000
    off_diagonal = ~np.eye(4, dtype=bool)
    assert (counts.sum(axis=2)[off_diagonal] == 40_000).all()
    np.testing.assert_allclose(found[off_diagonal], scores[off_diagonal], atol=0.01)
    np.testing.assert_array_equal(counts[:, :, 0], counts[:, :, 2].T)
    assert counts[:, :, 1][off_diagonal].min() > 0


def test_the_simulation_tells_shares_of_every_kind() -> None:
    told: list[str] = []
    found = bench_ratings(TINY, told.append)
    document = found.document
    assert len(document["coverage"]) == 4
    assert len(document["cycles"]) == 6
    assert len(told) == 10
    assert all(0.0 <= one["share"] <= 1.0 for one in document["coverage"] + document["cycles"])
    assert bench_ratings(TINY, told.append) == found
