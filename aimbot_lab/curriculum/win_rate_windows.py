"""Win rates of a lesson over windows that end with its last episode, at every episode at once.

A window begins where a lesson does, or 256, 512, ... of its episodes later. The k-th start (from 0)
has the share 1 / ((k + 1) (k + 2)) of the chance to miss, as the test's bettors have of its stake:
with 95 % the intervals of all windows of a cell hold at once. Whichever window is shown, and
whenever a lesson is stopped, its interval holds with 95 % or more. What it holds is the mean, over
the episodes of the window, of the chance to win.

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

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.curriculum.evidence import RESTART_EVERY
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.intervals import WinRate

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_TILTS = np.geomspace(0.05, 6.0, 12)
TILTS = np.concatenate([-_TILTS[::-1], _TILTS])  # [24] the L
_GROWTH = np.expm1(TILTS)
_HALVINGS = 16  # of the range in which an end lies: to 2e-5


def confidence_bounds(
    wins: npt.ArrayLike, episodes: npt.ArrayLike, *, alpha: npt.ArrayLike = 0.05
) -> FloatArray:
    """The ends [2, ...] of the interval of the mean win rate, the lower first.

    It is after `wins` [...] of `episodes` [...].

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
    return np.where(length == 0, outer, ends)


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


ALL_CELLS = Cell("", 0)  # stands for all cells together
STARTS_KEPT = 16  # so that a window has at most 4,351 episodes: the policy learns meanwhile
ALPHA = 0.05
MIN_EPISODES = 100  # of one cell, in a window that is shown while the lesson runs


class Count(NamedTuple):
    """Episodes of a cell."""

    episodes: int
    wins: int


class RateWindow(NamedTuple):
    """A win rate with its interval."""

    episodes: int
    wins: int
    rate: WinRate


class _Start(NamedTuple):
    number: int  # from 0: the window begins after that many blocks of episodes
    before: Mapping[Cell, Count]


NOTHING = Count(0, 0)


class WinRateWindows:
    """The episodes of one lesson, counted from each start."""

    def __init__(self) -> None:
        self._totals: dict[Cell, Count] = {}
        self._starts: deque[_Start] = deque([_Start(0, {})], maxlen=STARTS_KEPT)

    def count(self, cell: Cell | None, *, won: bool) -> None:
        """Take one more episode; `cell` is None where none is known."""
        for place in (ALL_CELLS,) if cell is None else (ALL_CELLS, cell):
            episodes, wins = self._totals.get(place, NOTHING)
            self._totals[place] = Count(episodes + 1, wins + won)
        block, rest = divmod(self._totals[ALL_CELLS].episodes, RESTART_EVERY)
        if not rest:
            self._starts.append(_Start(block, dict(self._totals)))

    def recent(self, cells: Sequence[Cell]) -> tuple[RateWindow, ...]:
        """Of each cell the shortest window with episodes enough; no outcome decides which."""
        starts = [self._recent_start(cell) for cell in cells]
        return self._windows(cells, starts)

    def highest(self, cells: Sequence[Cell]) -> tuple[RateWindow, ...]:
        """Of each cell the window that shows most: its interval has the highest lower end."""
        return self._windows(cells, np.argmax(self._bounds(cells)[0], axis=1).tolist())

    def lowest(self, cells: Sequence[Cell]) -> tuple[RateWindow, ...]:
        """Of each cell the window whose interval has the lowest upper end."""
        return self._windows(cells, np.argmin(self._bounds(cells)[1], axis=1).tolist())

    def _recent_start(self, cell: Cell) -> int:
        enough = RESTART_EVERY if cell == ALL_CELLS else MIN_EPISODES
        lengths = [self._since(place, cell).episodes for place in range(len(self._starts))]
        return max((place for place, length in enumerate(lengths) if length >= enough), default=0)

    def _since(self, place: int, cell: Cell) -> Count:
        now = self._totals.get(cell, NOTHING)
        before = self._starts[place].before.get(cell, NOTHING)
        return Count(now.episodes - before.episodes, now.wins - before.wins)

    def _bounds(self, cells: Sequence[Cell]) -> FloatArray:
        """The lower and upper ends [2, cells, starts] of the intervals of all windows."""
        places = range(len(self._starts))
        counts = np.array([[self._since(place, cell) for place in places] for cell in cells])
        alpha = [alpha_of(start.number) for start in self._starts]
        return confidence_bounds(counts[..., 1], counts[..., 0], alpha=alpha)

    def _windows(self, cells: Sequence[Cell], starts: Sequence[int]) -> tuple[RateWindow, ...]:
        """Of each cell the window from the given place among the kept starts."""
        counts = [self._since(place, cell) for cell, place in zip(cells, starts, strict=True)]
        lower, upper = confidence_bounds(
            [count.wins for count in counts],
            [count.episodes for count in counts],
            alpha=[alpha_of(self._starts[place].number) for place in starts],
        )
        ends = zip(counts, lower.tolist(), upper.tolist(), strict=True)
        return tuple(
            RateWindow(
                *count, WinRate(count.wins / count.episodes if count.episodes else None, *rest)
            )
            for count, *rest in ends
        )

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        starts = [[start.number, _listed(start.before)] for start in self._starts]
        return {"totals": _listed(self._totals), "starts": starts}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._totals = _counts(state["totals"])
        self._starts.clear()
        self._starts.extend(_Start(number, _counts(kept)) for number, kept in state["starts"])


def alpha_of(start: int) -> float:
    """The chance, at most, that an interval of the window from `start` (from 0) on ever misses."""
    return ALPHA / ((start + 1) * (start + 2))


def _listed(counts: Mapping[Cell, Count]) -> list[list[Any]]:
    return [[*cell, *count] for cell, count in counts.items()]


def _counts(listed: list[list[Any]]) -> dict[Cell, Count]:
    return {
        Cell(target, difficulty): Count(episodes, wins)
        for target, difficulty, episodes, wins in listed
    }
