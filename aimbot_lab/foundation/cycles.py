"""Whether ratings tell the whole story: cycles such as rock, paper, scissors, and Nash weights.

The statistic sums over pairs n (score - p)^2 / (p (1 - p) - draws / 4), p being the expected score
under the fitted ratings, draws the share of draws; its law is that of tables drawn under these
ratings (a parametric bootstrap). The cyclic share is the part of the logits of all scores that no
difference of strengths explains (Balduzzi et al. 2019, "Open-ended learning in symmetric zero-sum
games", arXiv:1901.08106).

Nash weights are the mixture of players that no player beats, and of all such the most even one: the
maximum-entropy equilibrium of a symmetric zero-sum game, whose value is 0 (Balduzzi et al. 2018,
"Re-evaluating evaluation", arXiv:1806.02643).
"""

from itertools import combinations
from math import erfc, sqrt

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, minimize

from aimbot_lab.foundation.ratings import ELO, expected_scores, strengths_of

Floats = npt.NDArray[np.float64]
TABLES = 999  # drawn under the ratings
ALPHA = 0.05
SLACK = 1e-9  # by which the mixture may fall short of the value


def cycle_p(counts: npt.ArrayLike, *, seed: int, tables: int = TABLES) -> float:
    """The chance of a table that fits as badly as `counts`, were the ratings all there is."""
    wins, draws, losses = np.moveaxis(np.asarray(counts, np.float64), 2, 0)
    games, scores = wins + draws + losses, wins + 0.5 * draws
    expected = expected_scores(ELO * strengths_of(games, scores))
    room = 2.0 * np.minimum(expected, 1.0 - expected)  # that an expected score leaves for draws
    drawn = np.minimum(draws / np.maximum(games, 1.0), room)
    found = _statistic(games, scores, drawn)
    simulated = _drawn_scores(games, expected, drawn, np.random.default_rng(seed), tables)
    others = _statistic(games, simulated, drawn)
    return float((1 + (others >= found).sum()) / (1 + tables))


def _statistic(games: Floats, scores: Floats, drawn: Floats) -> Floats:
    """Of tables `scores` [..., P, P], each with ratings of its own."""
    expected = expected_scores(ELO * strengths_of(games, scores))
    played = np.maximum(games, 1.0)
    variance = np.maximum(expected * (1.0 - expected) - 0.25 * drawn, 0.25 / (played + 1.0))
    parts = games * (scores / played - expected) ** 2 / variance
    return np.asarray(0.5 * parts.sum(axis=(-2, -1)))


def _drawn_scores(
    games: Floats, expected: Floats, drawn: Floats, random: np.random.Generator, tables: int
) -> Floats:
    """Scores [tables, P, P] of as many games between players of these expected scores."""
    above = np.triu_indices(len(games), 1)
    count = games[above].astype(np.int64)
    won = np.clip(expected[above] - 0.5 * drawn[above], 0.0, 1.0)
    wins = random.binomial(count, won, size=(tables, len(count)))
    left = np.clip(drawn[above] / np.maximum(1.0 - won, 1e-12), 0.0, 1.0)
    halves = random.binomial(count - wins, left)
    found = np.zeros((tables, *games.shape))
    found[:, above[0], above[1]] = wins + 0.5 * halves
    found[:, above[1], above[0]] = count - wins - 0.5 * halves
    return found


def cyclic_share(counts: npt.ArrayLike) -> float:
    """The share of the logits, from 0 to 1, that no ratings explain."""
    wins, draws, losses = np.moveaxis(np.asarray(counts, np.float64), 2, 0)
    score = (wins + 0.5 * draws + 0.5) / (wins + draws + losses + 1.0)
    logits = np.log(score / (1.0 - score))
    np.fill_diagonal(logits, 0.0)
    strength = logits.mean(axis=1)
    rest = logits - (strength[:, None] - strength[None, :])
    np.fill_diagonal(rest, 0.0)
    whole = float((logits**2).sum())
    return float((rest**2).sum()) / whole if whole else 0.0


def strongest_cycle(counts: npt.ArrayLike) -> tuple[int, int, int] | None:
    """The three that beat each other in turn by the widest narrowest margin, each one surely.

    None where there are none. An edge is sure where its one-sided p-value holds among all edges
    after Holm.
    """
    table = np.asarray(counts, np.float64)
    wins, draws, losses = np.moveaxis(table, 2, 0)
    games = np.maximum(wins + draws + losses, 1.0)
    score = (wins + 0.5 * draws) / games
    sure = _sure_edges(table, score, games)
    best, found = 0.0, None
    for one, two, three in combinations(range(len(table)), 3):
        for cycle in ((one, two, three), (one, three, two)):
            edges = [(cycle[k], cycle[(k + 1) % 3]) for k in range(3)]
            margin = min(score[edge] for edge in edges) - 0.5
            if all(edge in sure for edge in edges) and margin > best:
                best, found = margin, cycle
    return found


def _sure_edges(counts: Floats, score: Floats, games: Floats) -> set[tuple[int, int]]:
    """Pairs (i, j) of which i scores more than half, by Holm's rule over all pairs."""
    chances = []
    for one, other in combinations(range(len(counts)), 2):
        pair = (one, other) if score[one, other] >= 0.5 else (other, one)
        draws = counts[pair][1] / games[pair]
        error = sqrt(max(score[pair] * (1.0 - score[pair]) - 0.25 * draws, 1e-12) / games[pair])
        chances.append((0.5 * erfc((score[pair] - 0.5) / error / sqrt(2.0)), pair))
    sure = set()
    for rank, (chance, pair) in enumerate(sorted(chances)):
        if chance > ALPHA / (len(chances) - rank):
            break
        sure.add(pair)
    return sure


def nash_weights(scores: npt.ArrayLike) -> Floats:
    """Weights [P], which sum to 1, of players with the mean `scores` [P, P] against each other.

    A score lies between 0 and 1, and those of i against j and of j against i sum to 1.
    """
    payoff = np.asarray(scores, np.float64) - 0.5
    payoff = 0.5 * (payoff - payoff.T)
    first, value = _some_equilibrium(payoff)
    found = minimize(
        _negative_entropy,
        0.9 * first + 0.1 / len(first),
        jac=lambda weights: np.log(np.maximum(weights, 1e-12)) + 1.0,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(first),
        constraints=[
            {"type": "eq", "fun": lambda weights: weights.sum() - 1.0},
            {"type": "ineq", "fun": lambda weights: weights @ payoff - value + SLACK},
        ],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    weights = np.clip(found.x if found.success else first, 0.0, 1.0)
    return np.asarray(weights / weights.sum())


def _some_equilibrium(payoff: Floats) -> tuple[Floats, float]:
    """A mixture [P] whose worst result is the best there is, and that result."""
    count = len(payoff)
    # Unknown are the weights and the result v: maximise v with weights @ payoff >= v.
    bound = np.hstack([-payoff.T, np.ones((count, 1))])
    found = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=bound,
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[*[(0.0, 1.0)] * count, (None, None)],
    )
    return np.asarray(found.x[:-1]), min(float(found.x[-1]), 0.0)


def _negative_entropy(weights: Floats) -> float:
    return float((weights * np.log(np.maximum(weights, 1e-12))).sum())
