"""How often rules of promotion are wrong, and how soon they are right: simulated.

Beside the evidence of this project stands what is usual: the share of the last hundred episodes
won, compared with the threshold after every one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.curriculum.promotion.evidence import EvidenceTest

Outcomes = npt.NDArray[np.bool_]  # [episodes, lessons]
NEVER = 2**62
WINDOW = 100
AT_ONCE = 250  # lessons that are worked on together, which bounds the memory


@dataclass(frozen=True)
class RulesPlan:
    """What `bench_rules` simulates."""

    thresholds: tuple[float, ...] = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    below: tuple[float, ...] = (0.0, 0.05)  # how far the true rate lies below the threshold
    lessons: int = 2000
    episodes: int = 5000
    alpha: float = 0.05
    above: tuple[float, ...] = (0.05, 0.1, 0.2)  # how far above, where a promotion is right
    above_threshold: float = 0.7
    climb: tuple[float, float] = (0.3, 0.97)  # first and last rate of an agent that learns
    climb_episodes: int = 20_000
    climb_lessons: int = 200
    watched_agents: int = 2000
    watched_episodes: int = 100_000
    floor: float = 0.8  # below which no watched win rate may fall
    fall: tuple[float, float] = (0.9, 0.6)  # rate before and after something is lost
    seed: int = 1


@dataclass(frozen=True)
class FalsePromotions:
    """Shares of lessons that were promoted although the rate never exceeded the threshold."""

    threshold: float
    rate: float
    evidence: float
    window: float


@dataclass(frozen=True)
class Delay:
    """Median episodes from the moment on in which a promotion is right; negative: before it."""

    rate: str
    evidence: float | None  # None: at least half never
    window: float | None


@dataclass(frozen=True)
class Watching:
    """How a watched cell fares."""

    false_reports: float  # share of agents that stay at the floor
    bound: float  # on it
    episodes_to_report: float  # median, after a fall


@dataclass(frozen=True)
class RulesBench:
    """What was found."""

    plan: RulesPlan
    false_promotions: tuple[FalsePromotions, ...]
    delays: tuple[Delay, ...]
    watching: Watching


def bench_rules(plan: RulesPlan, tell: Callable[[str], None]) -> RulesBench:
    """The rules in simulated lessons; `tell` hears what is being simulated."""
    found = []
    for threshold in plan.thresholds:
        tell(f"lessons that should not be promoted, threshold {threshold:g}")
        found += [_false_promotions(plan, threshold, threshold - below) for below in plan.below]
    tell("lessons that should be promoted")
    delays = [_delay(plan, above) for above in plan.above]
    delays.append(_climbing(plan))
    tell("cells that are watched")
    return RulesBench(plan, tuple(found), tuple(delays), _watching(plan))


def _false_promotions(plan: RulesPlan, threshold: float, rate: float) -> FalsePromotions:
    rates = np.full(plan.episodes, rate)
    evidence, window = _promotions(plan, rates, threshold, lessons=plan.lessons)
    shares = [float((promoted < NEVER).mean()) for promoted in (evidence, window)]
    return FalsePromotions(threshold, round(rate, 10), *shares)


def _delay(plan: RulesPlan, above: float) -> Delay:
    rate = plan.above_threshold + above
    rates = np.full(plan.episodes, rate)
    both = _promotions(plan, rates, plan.above_threshold, lessons=plan.lessons)
    return Delay(f"{rate:.2f}", *(_median(promoted) for promoted in both))


def _climbing(plan: RulesPlan) -> Delay:
    first, last = plan.climb
    rates = np.linspace(first, last, plan.climb_episodes)
    crossed = int(np.argmax(rates > plan.above_threshold))
    both = _promotions(plan, rates, plan.above_threshold, lessons=plan.climb_lessons)
    text = f"{first:.2f} to {last:.2f} in {plan.climb_episodes:,}"
    return Delay(text, *(_median(promoted, since=crossed) for promoted in both))


def _watching(plan: RulesPlan) -> Watching:
    test = EvidenceTest(1 - plan.floor, plan.alpha / 2)
    reports = []
    for part, agents in enumerate(_parts(plan.watched_agents, most=20)):
        rng = np.random.default_rng([plan.seed, 1, part])
        lost = rng.random((plan.watched_episodes, agents)) >= plan.floor
        reports.append(_first(test.trace(lost) >= test.log_bound))
    before, after = plan.fall
    rates = np.repeat([before, after], plan.episodes)
    rng = np.random.default_rng([plan.seed, 2])
    lost = rng.random((len(rates), AT_ONCE)) >= rates[:, None]
    reported = _first(test.trace(lost) >= test.log_bound) - plan.episodes
    share = float((np.concatenate(reports) < NEVER).mean())
    return Watching(share, plan.alpha / 2, float(np.median(reported)))


def _promotions(
    plan: RulesPlan, rates: npt.NDArray[np.float64], threshold: float, *, lessons: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The episode at which evidence and the window promote each lesson [lessons], or NEVER."""
    test = EvidenceTest(threshold, plan.alpha)
    evidence, window = [], []
    for part, size in enumerate(_parts(lessons, most=AT_ONCE)):
        rng = np.random.default_rng([plan.seed, 0, part])
        won = rng.random((len(rates), size)) < rates[:, None]
        evidence.append(_first(test.trace(won) >= test.log_bound))
        window.append(window_promotions(won, threshold))
    return np.concatenate(evidence), np.concatenate(window)


def window_promotions(won: Outcomes, threshold: float) -> npt.NDArray[np.int64]:
    """The episode at which the last hundred first exceed `threshold`, [lessons], or NEVER."""
    total = np.cumsum(np.concatenate([np.zeros((1, won.shape[1]), np.int64), won]), axis=0)
    exceeds = np.zeros(won.shape, np.bool_)
    exceeds[WINDOW - 1 :] = (total[WINDOW:] - total[:-WINDOW]) / WINDOW > threshold
    return _first(exceeds)


def _first(passes: Outcomes) -> npt.NDArray[np.int64]:
    """Number, from 1, of the first episode that passes, [lessons], or NEVER."""
    return np.where(passes.any(axis=0), passes.argmax(axis=0) + 1, NEVER)


def _median(promoted: npt.NDArray[np.int64], *, since: int = 0) -> float | None:
    median = float(np.median(promoted))
    return None if median >= NEVER / 2 else median - since


def _parts(total: int, *, most: int) -> Sequence[int]:
    """`total` in parts of at most `most`."""
    return [min(most, total - first) for first in range(0, total, most)]
