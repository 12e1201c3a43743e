"""What episodes prove of a win rate: the order they count in, a test, and intervals over windows.

**Order.** Wins end sooner than losses, so among the episodes that have ended shortly after a start
wins are far too many: each episode waits until all that began before it have ended. Episodes that
can't be counted are reported by reason.

**Test.** Evidence that a win rate exceeds a threshold, valid however often one looks at it. Against
"the rate never exceeded `threshold`" (q below) a bettor stakes a fixed fraction f of what a stake
may be, 1/q: a win (x = 1) or loss (x = 0) multiplies the wealth by

    1 + (f / q) (x - q)        win: 1 + f (1 - q) / q, loss: 1 - f.

Averaged over a few f, the wealth is an e-process: it reaches 1/alpha with a chance of at most
alpha, ever (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by
betting", doi:10.1093/jrsssb/qkad009). A policy learns, so its bad beginning must not weigh for
ever: a fresh bettor starts every 256 episodes, the k-th (from 0) with the weight
1 / ((k + 1) (k + 2)). Those weights sum to 1 and a bettor who has not started holds 1, so the
weighted sum is an e-process again; restarts are those of e-detectors (Shin, Ramdas and Rinaldo
2024, "E-detectors", doi:10.51387/23-NEJSDS51), weighted for a bound that holds for all time.

All bettors with the same f gain the same from an episode, so one number per f, the log of
their weighted sum, is the whole state, and an episode costs the same after any number of them.

Nothing but x >= 0 is used of x, so the same bet serves any value that is never negative, such as
a reward counted from the lowest that there can be: 1 + (f / q) (x - q) is at least 1 - f, and at
most 1 on average while the mean of x is at most q.

**Windows.** Intervals of the win rate over windows that end with a lesson's last episode. A window
begins where a lesson does, or 256, 512, ... of its episodes later. The k-th start (from 0) has the
share 1 / ((k + 1) (k + 2)) of the chance to miss, as the test's bettors have of its stake: with
95 % the intervals of all windows of a cell hold at once. Whichever window is shown, and whenever a
lesson is stopped, its interval holds with 95 % or more. What it holds is the mean, over the
episodes of the window, of the chance to win.

With p_i the chance that episode i is won, given those before it, and S the wins among the first n
episodes of a window, the product of exp(L x_i) / (1 + p_i (exp(L) - 1)) is a martingale with mean
1 for every L. The logarithm is concave, so that

    exp(L S - n log(1 + m (exp(L) - 1))),  m the mean of p_1 to p_n,

is never larger. Averaged over a few fixed L it exceeds 1 / alpha with a chance of at most alpha,
ever: whatever m that happens to is refuted (Ville's inequality; the mixtures of Howard, Ramdas,
McAuliffe and Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences",
doi:10.1214/20-AOS1991, for exactly Bernoulli values). Nothing is asked of the p_i: the policy may
learn or forget meanwhile.

At 97.5 %, the level of a lesson's first window, this was as narrow as a betting sequence
(Waudby-Smith and Ramdas 2024) and narrower than a beta-binomial mixture, which both need a rate
that stands still: 375 wins of 500, 0.678 to 0.814 against 0.682 to 0.814 and 0.673 to 0.818; 1,920
of 2,000, 0.943 to 0.974 against 0.943 to 0.992 and 0.940 to 0.975.
"""

import math
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import DRAW, UNCOUNTED, WIN, Cell, EpisodeBatch, WinRate
from aimbot_lab.foundation.seeds import derive_seed

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Value = bool | float | npt.NDArray[np.bool_] | FloatArray

STAKES = (0.1, 0.2, 0.4, 0.8)
RESTART_EVERY = 256
_PROVEN_HALVINGS = 40  # of the range in which `proven` looks for a win rate


class Evidence(NamedTuple):
    """What the episodes so far have shown; `...` is () or the shape of parallel lessons."""

    log_wealth: FloatArray  # [..., stakes] log of the weighted sum over all started bettors
    episodes: int


@dataclass(frozen=True)
class EvidenceTest:
    """The test of one threshold at one alpha."""

    threshold: float
    alpha: float

    @cached_property
    def log_bound(self) -> float:
        """Log of the evidence that promotes."""
        return float(-np.log(self.alpha))

    def start(self, shape: tuple[int, ...] = ()) -> Evidence:
        """Evidence before the first episode, for one lesson or for `shape` parallel ones."""
        return Evidence(np.full((*shape, len(STAKES)), _log_weight(0)), 0)

    def fold(self, evidence: Evidence, value: Value) -> Evidence:
        """Evidence after one more episode; `value` is one or, [...], one per parallel lesson.

        Either whether it was won, or a number that is at least 0.
        """
        wealth = evidence.log_wealth + self._log_growth(value)
        episodes = evidence.episodes + 1
        if episodes % RESTART_EVERY == 0:
            wealth = np.logaddexp(wealth, _log_weight(episodes // RESTART_EVERY))
        return Evidence(wealth, episodes)

    def log_evidence(self, evidence: Evidence) -> FloatArray:
        """Log of the e-process, [...]."""
        return _mixture(evidence.log_wealth, evidence.episodes // RESTART_EVERY + 1)

    def proven(self, wins: IntArray, episodes: IntArray) -> tuple[float, int]:
        """The win rate that a passed test proves to be exceeded, and since which start it does.

        `wins` and `episodes` [K] are those since each start. The rate is the lower end of the
        interval that belongs to the test, which holds every rate that it would not reject: the
        highest threshold that would have passed as well. The interval has no upper end but 1.

        The chance to win may change meanwhile. With p_i the chance of episode i, the evidence
        against the highest of them is at most the mixture of the products of
        1 + (f / p_i) (x_i - p_i), because a win brings less the higher the rate is; so with
        1 - `alpha` that highest chance exceeds this end, at every episode.

        The start is the earliest whose bettors by themselves have won 1 / `alpha`; the share of
        episodes won since then exceeds the rate.
        """
        low, high = self.threshold, 1.0
        started = np.arange(1, len(wins) + 1)
        log_weight = -np.log(started * (started + 1.0))[:, None]
        for _ in range(_PROVEN_HALVINGS):
            middle = (low + high) / 2
            held = np.logaddexp.reduce(self._at(middle, wins, episodes) + log_weight, axis=0)
            passes = _mixture(held, len(wins)) >= self.log_bound
            low, high = (middle, high) if passes else (low, middle)
        alone = np.logaddexp.reduce(self._at(low, wins, episodes), axis=1) - math.log(len(STAKES))
        return low, int((alone >= min(self.log_bound, alone.max())).argmax())

    def _at(self, threshold: float, wins: IntArray, episodes: IntArray) -> FloatArray:
        """Log of the wealth [K, stakes] against `threshold` of bettors who began at each start."""
        gain, loss = EvidenceTest(threshold, self.alpha)._log_factors
        return wins[:, None] * gain + (episodes - wins)[:, None] * loss

    def trace(self, values: npt.NDArray[np.bool_] | FloatArray) -> FloatArray:
        """Log of the e-process after each of `values` [N, ...], [N, ...].

        The same numbers to the bit as by `fold` one by one, far sooner.
        """
        growth = self._log_growth(values)
        log_evidence = np.empty(growth.shape[:-1])
        wealth = self.start(growth.shape[1:-1]).log_wealth
        for first in range(0, len(growth), RESTART_EVERY):
            block = growth[first : first + RESTART_EVERY]
            held = np.cumsum(np.concatenate([wealth[None], block]), axis=0)[1:]
            starts = first // RESTART_EVERY
            log_evidence[first : first + len(block)] = _mixture(held, starts + 1)
            if len(block) == RESTART_EVERY:
                wealth = np.logaddexp(held[-1], _log_weight(starts + 1))
                log_evidence[first + len(block) - 1] = _mixture(wealth, starts + 2)
        return log_evidence

    def _log_growth(self, values: Value) -> FloatArray:
        """Log of what each stake's wealth is multiplied by, [..., stakes]."""
        gain, loss = self._log_factors
        if isinstance(values, bool):  # one episode of a training, which must cost little
            return gain if values else loss
        if np.asarray(values).dtype == np.bool_:
            return np.where(np.expand_dims(values, -1), gain, loss)
        above = np.expand_dims(values, -1) - self.threshold
        return np.asarray(
            np.log(self.threshold + np.array(STAKES) * above) - np.log(self.threshold)
        )

    @cached_property
    def _log_factors(self) -> tuple[FloatArray, FloatArray]:
        stakes = np.array(STAKES)
        gain = np.log(self.threshold + stakes * (1 - self.threshold)) - np.log(self.threshold)
        return gain, np.log1p(-stakes)


def _log_weight(start: int) -> float:
    return float(-np.log((start + 1.0) * (start + 2.0)))


def _mixture(log_wealth: FloatArray, started: int) -> FloatArray:
    """Log of the e-process over `started` bettors of each stake and all that have not started."""
    mean = np.logaddexp.reduce(log_wealth, axis=-1) - math.log(len(STAKES))
    return np.asarray(np.logaddexp(mean, -math.log(started + 1.0)))


BoolArray = npt.NDArray[np.bool_]

_TILTS = np.geomspace(0.05, 6.0, 12)
TILTS = np.concatenate([-_TILTS[::-1], _TILTS])  # [24] the L
_GROWTH = np.expm1(TILTS)
_END_HALVINGS = 16  # of the range in which an end lies: to 2e-5


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
    for _ in range(_END_HALVINGS):
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


NOTHING = Count(0, 0)


class WinRateWindows:
    """The episodes of one lesson, counted from each start."""

    def __init__(self) -> None:
        self._totals: dict[Cell, Count] = {}
        # Blocks of episodes after which a window begins, with what was counted before it.
        self._starts = deque[tuple[int, Mapping[Cell, Count]]]([(0, {})], maxlen=STARTS_KEPT)

    def count(self, cell: Cell | None, *, won: bool) -> None:
        """Take one more episode; `cell` is None where none is known."""
        for place in (ALL_CELLS,) if cell is None else (ALL_CELLS, cell):
            episodes, wins = self._totals.get(place, NOTHING)
            self._totals[place] = Count(episodes + 1, wins + won)
        block, rest = divmod(self._totals[ALL_CELLS].episodes, RESTART_EVERY)
        if not rest:
            self._starts.append((block, dict(self._totals)))

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
        before = self._starts[place][1].get(cell, NOTHING)
        return Count(now.episodes - before.episodes, now.wins - before.wins)

    def _bounds(self, cells: Sequence[Cell]) -> FloatArray:
        """The lower and upper ends [2, cells, starts] of the intervals of all windows."""
        places = range(len(self._starts))
        counts = np.array([[self._since(place, cell) for place in places] for cell in cells])
        alpha = [alpha_of(number) for number, _ in self._starts]
        return confidence_bounds(counts[..., 1], counts[..., 0], alpha=alpha)

    def _windows(self, cells: Sequence[Cell], starts: Sequence[int]) -> tuple[RateWindow, ...]:
        """Of each cell the window from the given place among the kept starts."""
        counts = [self._since(place, cell) for cell, place in zip(cells, starts, strict=True)]
        lower, upper = confidence_bounds(
            [count.wins for count in counts],
            [count.episodes for count in counts],
            alpha=[alpha_of(self._starts[place][0]) for place in starts],
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
        starts = [[number, _listed(before)] for number, before in self._starts]
        return {"totals": _listed(self._totals), "starts": starts}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._totals = _counts(state["totals"])
        self._starts.clear()
        self._starts.extend((number, _counts(kept)) for number, kept in state["starts"])


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


Order = Literal["beginnings", "ends"]  # in which episodes count


class Outcome(NamedTuple):
    """A finished episode of a lesson or of a cell that is watched."""

    won: bool
    cell: Cell | None  # None where none is known
    reward: float | None = None  # sum of its rewards; None where a game did not say
    counts: bool = True  # for the lesson; False: watched only
    drawn: bool = False
    rating: float | None = None  # the learner's running rating after it; None: it has none

    @property
    def score(self) -> float:
        """1 where it was won, 0.5 where it was drawn, else 0."""
        return 0.5 if self.drawn else float(self.won)

    def as_json(self) -> list[Any]:
        """Plain values, which `from_json` reads."""
        cell = None if self.cell is None else list(self.cell)
        more: list[Any] = [1] if self.drawn else []
        if self.rating is not None:
            more = [int(self.drawn), self.rating]
        return [int(self.won), cell, self.reward, int(self.counts), *more]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> "Outcome":
        """What `as_json` gave."""
        won, cell, reward, counts, *more = values
        known = None if cell is None else Cell(*cell)
        drawn, rating = bool(more and more[0]), more[1] if len(more) > 1 else None
        return cls(bool(won), known, reward, bool(counts), drawn, rating)


MAX_REASONS = 20
OTHER_REASONS = "other reasons"
SEEDS = 2**32


class Reader:
    """Reads the episodes of one lesson after another; of several agents a row, the first one's.

    Where a cell is drawn more often than the lesson's mix says, only the due share of its episodes
    counts for the lesson; which ones, follows from their rank alone.
    """

    def __init__(self) -> None:
        self.unparsed: dict[str, int] = {}
        self._shares: dict[int, dict[Cell, float]] = {}

    def begin_lesson(self) -> None:
        """Count all episodes of the scenarios to come."""
        self._shares = {}

    def count_shares(self, scenario: int, shares: Mapping[Cell, float]) -> None:
        """Of each cell of `shares`, count that share of the episodes of `scenario`."""
        if shares:
            self._shares[scenario] = dict(shares)

    def read(
        self,
        batch: EpisodeBatch,
        *,
        first: int | None,
        known: Sequence[Cell],
        watched: Container[Cell],
        cell_required: bool,
        reward_required: bool,
    ) -> list[Outcome | None]:
        """The outcome of each episode, None where it does not count or can't be counted.

        The lesson's are those of scenario `first` and later ones; `known` are its cells, and
        `watched` those of earlier ones. What can't be counted is never a loss: `cell_required`
        says whether an episode must be of one of the lesson's cells, `reward_required` whether it
        must carry a return.
        """
        for reason in batch.unread:
            self._count_unread(reason)
        outcomes: list[Outcome | None] = []
        results = zip(batch.cell, batch.outcome.tolist(), batch.returns.tolist(), strict=True)
        begun = zip(batch.scenario.tolist(), batch.order.tolist(), strict=True)
        for agent, (scenario, rank), (cell, result, total) in zip(
            batch.agent.tolist(), begun, results, strict=True
        ):
            # One trial a row: what one agent wins the others may have lost.
            if agent > 0 or scenario == UNCOUNTED:
                outcomes.append(None)
                continue
            is_present = first is not None and scenario >= first
            place, counts = counted_as(cell, known, watched) if is_present else (None, True)
            reason = ""
            if reward_required and math.isnan(total):
                reason = "carries no return, which the lesson is measured by"
            elif is_present and place is None and cell_required:
                reason = "names no target and difficulty of the lesson's mix"
            if reason:
                self._count_unread(reason)
                outcomes.append(None)
                continue
            reward = None if math.isnan(total) else total
            outcome = Outcome(result == WIN, place, reward, counts, result == DRAW)
            outcomes.append(self._thinned(outcome, scenario, rank))
        return outcomes

    def _count_unread(self, reason: str) -> None:
        if reason not in self.unparsed and len(self.unparsed) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.unparsed[reason] = self.unparsed.get(reason, 0) + 1

    def _thinned(self, outcome: Outcome, scenario: int, rank: int) -> Outcome:
        shares = self._shares.get(scenario)
        if shares is None or outcome.cell not in shares:
            return outcome
        if derive_seed(rank, "rehearsal") < shares[outcome.cell] * SEEDS:
            return outcome
        return outcome._replace(counts=False)

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        shares = [
            [scenario, [[*cell, share] for cell, share in of.items()]]
            for scenario, of in self._shares.items()
        ]
        return {"unparsed": dict(self.unparsed), "shares": shares}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.unparsed = dict(state["unparsed"])
        self._shares = {
            scenario: {Cell(target, level): share for target, level, share in of}
            for scenario, of in state["shares"]
        }


def counted_as(
    cell: Cell | None, known: Sequence[Cell], watched: Container[Cell]
) -> tuple[Cell | None, bool]:
    """The cell that an episode of `cell` counts for, and whether for the lesson, not only watched.

    The lesson's cells are `known`. With one cell only, an episode that names none is that cell's.
    """
    if cell in known:
        return cell, True
    if cell is not None and cell in watched:
        return cell, False
    return known[0] if cell is None and len(known) == 1 else None, True


class StartOrder:
    """Releases the outcomes of a lesson in the order in which their episodes began.

    The lesson's episodes are those of scenario `first` and of all later ones: a world numbers its
    scenarios upwards, and a lesson whose mix is changed goes on under further numbers.
    """

    def __init__(self, first: int | None = None) -> None:
        self.first = first
        self._waiting: list[tuple[int, Outcome]] = []

    def begin(self, first: int | None) -> None:
        """Forget all that waits; from now on episodes from scenario `first` on count."""
        self.first = first
        self._waiting = []

    def add(self, batch: EpisodeBatch, outcomes: Sequence[Outcome | None]) -> list[Outcome]:
        """The outcomes that `batch` released; `outcomes` has one for each of its episodes.

        An episode of an earlier scenario, and one whose outcome is None, is dropped; neither
        keeps others waiting.
        """
        if not batch or self.first is None:
            return []
        for rank, scenario, outcome in zip(
            batch.order.tolist(), batch.scenario.tolist(), outcomes, strict=True
        ):
            if scenario >= self.first and outcome is not None:
                heappush(self._waiting, (rank, outcome))
        running = batch.running_order[batch.running_scenario >= self.first]
        oldest_running = int(running.min()) if running.size else None
        released = []
        while self._waiting and (oldest_running is None or self._waiting[0][0] < oldest_running):
            released.append(heappop(self._waiting)[1])
        return released

    @property
    def waiting(self) -> list[tuple[int, Outcome]]:
        """What waits, by rank; to be stored and given to `resume`."""
        return sorted(self._waiting, key=lambda entry: entry[0])

    def resume(self, first: int | None, waiting: Sequence[tuple[int, Outcome]]) -> None:
        """Go on from a stored state."""
        self.first = first
        self._waiting = list(waiting)
        heapify(self._waiting)
