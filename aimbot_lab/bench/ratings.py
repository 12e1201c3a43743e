"""How often intervals of ratings hold, and how often cycles are found: simulated."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.statistics.cycles import ALPHA, cycle_p
from aimbot_lab.foundation.statistics.ratings import expected_scores, ratings_of

Floats = npt.NDArray[np.float64]
CYCLE = ((2, 3), (3, 4), (4, 2))  # pairs of neighbours, in which the first is better than rated


@dataclass(frozen=True)
class RatingsPlan:
    """What `bench_ratings` simulates."""

    players: int = 12
    games: int = 100  # a pair
    rungs: tuple[float, ...] = (50.0, 200.0)  # points between neighbours
    draws: tuple[float, ...] = (0.0, 0.35, 0.7)  # of the most that the expected score allows
    tables: int = 200  # of each kind
    cycle_players: int = 8
    cycle_rung: float = 50.0
    cycle_tables: int = 300
    drawn_tables: int = 199  # under each one's ratings
    bends: tuple[float, ...] = (0.0, 0.1, 0.15)  # of the score, in each pair of one three-cycle
    seed: int = 1


@dataclass(frozen=True)
class Coverage:
    """How often 95 % intervals of differences to the first player hold the true one."""

    rung: float
    draws: float
    share: float


@dataclass(frozen=True)
class Found:
    """How often a cycle was found."""

    bend: float  # 0: there is none
    draws: float
    share: float


@dataclass(frozen=True)
class RatingsBench:
    """All that was simulated."""

    plan: RatingsPlan
    coverage: tuple[Coverage, ...]
    cycles: tuple[Found, ...]


def bench_ratings(plan: RatingsPlan, tell: Callable[[str], None]) -> RatingsBench:
    """The simulation of `plan`; `tell` is called with what is done next."""
    random = np.random.default_rng(plan.seed)
    coverage, cycles = [], []
    for rung in plan.rungs:
        for draws in plan.draws:
            tell(f"intervals: {rung:g} points a rung, {draws:.0%} draws")
            coverage.append(Coverage(rung, draws, _covered(plan, rung, draws, random)))
    for bend in plan.bends:
        for draws in plan.draws[:2]:
            tell(f"cycles: bent by {bend:g}, {draws:.0%} draws")
            cycles.append(Found(bend, draws, _found(plan, bend, draws, random)))
    return RatingsBench(plan, tuple(coverage), tuple(cycles))


def _covered(plan: RatingsPlan, rung: float, draws: float, random: np.random.Generator) -> float:
    points = rung * np.arange(plan.players, dtype=np.float64)
    held = []
    for _ in range(plan.tables):
        ratings = ratings_of(drawn_table(expected_scores(points), plan.games, draws, random))
        held.append(np.abs(ratings.above(0) - points)[1:] <= ratings.error_above(0)[1:])
    return float(np.mean(held))


def _found(plan: RatingsPlan, bend: float, draws: float, random: np.random.Generator) -> float:
    scores = expected_scores(plan.cycle_rung * np.arange(plan.cycle_players, dtype=np.float64))
    for one, other in CYCLE:
        scores[one, other] += bend
        scores[other, one] -= bend
    hits = 0
    for table in range(plan.cycle_tables):
        counts = drawn_table(scores, plan.games, draws, random)
        hits += cycle_p(counts, seed=plan.seed + table, tables=plan.drawn_tables) <= ALPHA
    return hits / plan.cycle_tables


def drawn_table(
    scores: Floats, games: int, draws: float, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """[P, P, 3] wins, draws and losses of so many games between players of these scores.

    `draws` is the share of draws, of the most that a score allows.
    """
    one, other = np.triu_indices(len(scores), 1)
    score = scores[one, other]
    drawn = 2.0 * draws * np.minimum(score, 1.0 - score)
    chances = np.stack([score - drawn / 2, drawn, 1.0 - score - drawn / 2], axis=1)
    found = random.multinomial(games, chances)
    counts = np.zeros((*scores.shape, 3), np.int64)
    counts[one, other], counts[other, one] = found, found[:, ::-1]
    return counts
