"""Intervals of a win rate that hold at every episode at once, so also where a lesson was stopped.

With p_i the chance that episode i is won, given those before it, and S the wins among the first n
episodes of a window, the product of exp(L x_i) / (1 + p_i (exp(L) - 1)) is a martingale with mean
1 for every L. The logarithm is concave, so that

    exp(L S - n log(1 + m (exp(L) - 1))),  m the mean of p_1 to p_n,

is never larger. Averaged over a few fixed L it exceeds 1 / alpha with a chance of at most alpha,
ever: whatever m that happens to is refuted (Ville's inequality; the mixtures of Howard, Ramdas,
McAuliffe and Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences",
doi:10.1214/20-AOS1991, for exactly Bernoulli values). Nothing is asked of the p_i: the policy may
learn or forget meanwhile. The interval is about their mean over the window.

At 97.5 %, the level of a lesson's first window, this was as narrow as a betting sequence
(Waudby-Smith and Ramdas 2024) and narrower than a beta-binomial mixture, which both need a rate
that stands still: 375 wins of 500, 0.678 to 0.814 against 0.682 to 0.814 and 0.673 to 0.818; 1,920
of 2,000, 0.943 to 0.974 against 0.943 to 0.992 and 0.940 to 0.975.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_TILTS = np.geomspace(0.05, 6.0, 12)
TILTS = np.concatenate([-_TILTS[::-1], _TILTS])  # [24] the L
_GROWTH = np.expm1(TILTS)
_HALVINGS = 16  # of the range in which an end lies: to 2e-5


class Bounds(NamedTuple):
    """The ends of intervals."""

    lower: FloatArray  # [...]
    upper: FloatArray  # [...]


def confidence_bounds(
    wins: npt.ArrayLike, episodes: npt.ArrayLike, *, alpha: npt.ArrayLike = 0.05
) -> Bounds:
    """The interval [...] of the mean win rate after `wins` [...] of `episodes` [...].

    Over all lengths of a window together, one of its intervals misses with a chance of at most
    `alpha` [...]. Without episodes it is 0 to 1.
    """
    won, length, level = np.broadcast_arrays(
        np.asarray(wins, np.float64), np.asarray(episodes, np.float64), np.asarray(alpha)
    )
    inner = np.broadcast_to(won / np.maximum(length, 1), (2, *won.shape))
    outer = np.zeros_like(inner)
    outer[1] = 1.0
    ends = _ends(outer, inner, lambda mean: is_refuted(mean, won, length, alpha=level))
    return Bounds(*np.where(length == 0, outer, ends))


def is_refuted(
    mean: FloatArray, wins: FloatArray, episodes: FloatArray, *, alpha: npt.ArrayLike
) -> BoolArray:
    """Whether a window's evidence that its mean win rate is not `mean` [...] reaches 1 / alpha."""
    terms = TILTS * wins[..., None] - episodes[..., None] * np.log1p(mean[..., None] * _GROWTH)
    bound = np.log(len(TILTS) / np.asarray(alpha))
    return np.asarray(np.exp(np.minimum(terms - bound[..., None], 1.0)).sum(axis=-1) >= 1.0)


def _ends(
    outer: FloatArray, inner: FloatArray, refuted_at: Callable[[FloatArray], BoolArray]
) -> FloatArray:
    """Where between `outer` and `inner`, which is not refuted, the refuted means end.

    The evidence is convex in the mean, so there is one such place, or none: then `outer`. Rounded
    outwards.
    """
    free = ~refuted_at(outer)
    refuted, held = outer, inner
    for _ in range(_HALVINGS):
        middle = (refuted + held) / 2
        beyond = refuted_at(middle)
        refuted, held = np.where(beyond, middle, refuted), np.where(beyond, held, middle)
    return np.where(free, outer, refuted)
