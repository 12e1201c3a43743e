"""Ratings of players from all their games at once, with their errors.

Bradley-Terry: the expected score of i against j is 1 / (1 + 10^(-(r_i - r_j) / 400)), a draw being
half a score (Bradley and Terry 1952, doi:10.2307/2334029). The likelihood is that of the scores,
which is not that of draws; so the covariance is the robust one, A^-1 B A^-1 with A the information
and B the sum of squared scores (White 1982, doi:10.2307/1912526). Each player has one draw with a
player of strength 0 besides, so that a player without a loss has a finite rating.

Ratings do not depend on the order of the games, as those by updates after each game do.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
ELO = 400.0 / math.log(10.0)  # rating points of a unit of strength
SIGMAS = 1.959963984540054  # of a 95 % interval
MAX_STEPS, MAX_STEP, CLOSE = 500, 2.0, 1e-11  # how many, how long, and when it is done


class Ratings(NamedTuple):
    """Strengths of P players in rating points, from an origin that means nothing by itself."""

    points: Floats  # [P]
    covariance: Floats  # [P, P]

    def above(self, anchor: int) -> Floats:
        """Points [P] above the player `anchor`."""
        return np.asarray(self.points - self.points[anchor])

    def error_above(self, anchor: int) -> Floats:
        """Half the width [P] of the 95 % intervals of `above`."""
        own, shared = np.diag(self.covariance), self.covariance[anchor]
        variance = own + self.covariance[anchor, anchor] - 2.0 * shared
        return np.asarray(SIGMAS * np.sqrt(np.maximum(variance, 0.0)))


def expected_score(points: float) -> float:
    """Expected score of a player rated `points` higher."""
    return 1.0 / (1.0 + math.exp(-points / ELO))


def points_of(score: float, games: int) -> float:
    """The points at which `score` is expected, kept finite by half a draw more a side."""
    mean = (score * games + 0.5) / (games + 1.0)
    return ELO * math.log(mean / (1.0 - mean))


def ratings_of(counts: npt.ArrayLike) -> Ratings:
    """Ratings from `counts` [P, P, 3]: wins, draws and losses of each player against each.

    Both halves of the table are filled: what i won against j, j lost against i.
    """
    wins, draws, losses = np.moveaxis(np.asarray(counts, np.float64), 2, 0)
    games, scores = wins + draws + losses, wins + 0.5 * draws
    strength = strengths_of(games, scores)
    expected = _expected(strength)
    information = _information(strength, games)
    squares = wins * (1 - expected) ** 2 + draws * (0.5 - expected) ** 2 + losses * expected**2
    spread = np.diag(squares.sum(axis=1)) - squares
    inverse = np.linalg.inv(information)
    return Ratings(ELO * strength, ELO**2 * (inverse @ spread @ inverse))


def strengths_of(games: Floats, scores: Floats) -> Floats:
    """The strengths [..., P] with the highest likelihood; `...` is () or parallel tables.

    Of `games` [P, P] and `scores` [..., P, P] of each player against each. By Newton's steps, none
    longer than MAX_STEP: the likelihood is concave.
    """
    strength = np.zeros(scores.shape[:-1])
    total = scores.sum(axis=-1)
    for _ in range(MAX_STEPS):
        gradient = total - (games * _expected(strength)).sum(axis=-1) + 0.5 - _logistic(strength)
        step = np.linalg.solve(_information(strength, games), gradient[..., None])[..., 0]
        longest = np.abs(step).max(initial=0.0, axis=-1, keepdims=True)
        strength = strength + step * np.minimum(1.0, MAX_STEP / np.maximum(longest, CLOSE))
        if longest.max(initial=0.0) < CLOSE:
            break
    return strength


def _information(strength: Floats, games: Floats) -> Floats:
    """[..., P, P] Minus the second derivative of the log-likelihood."""
    expected, own = _expected(strength), _logistic(strength)
    weights = games * expected * (1.0 - expected)
    on_diagonal = np.eye(len(games))
    weights = weights * (1.0 - on_diagonal)
    each = weights.sum(axis=-1) + own * (1.0 - own)
    return np.asarray(each[..., None] * on_diagonal - weights)


def expected_scores(points: Floats) -> Floats:
    """[..., P, P] Expected score of each player against each, of their rating points [..., P]."""
    return _expected(np.asarray(points) / ELO)


def _expected(strength: Floats) -> Floats:
    return _logistic(strength[..., :, None] - strength[..., None, :])


def _logistic(values: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))
