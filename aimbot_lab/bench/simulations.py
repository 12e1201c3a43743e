"""`bench rules` and `bench ratings`: how often tests of promotions and of leagues are wrong.

Beside the evidence on which lessons end stands what is usual: the share of the last hundred
episodes won, compared with the threshold after every one.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.bench.turns import Report, Say, Table
from aimbot_lab.curriculum.evidence import EvidenceTest
from aimbot_lab.foundation.cycles import ALPHA, cycle_p
from aimbot_lab.foundation.ratings import expected_scores, ratings_of
from aimbot_lab.foundation.shown_text import percent

Outcomes = npt.NDArray[np.bool_]  # [episodes, lessons]
Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NEVER = 2**62
WINDOW = 100
AT_ONCE = 250  # lessons that are worked on together, which bounds the memory
CYCLE = ((2, 3), (3, 4), (4, 2))  # pairs of neighbours, in which the first is better than rated


@dataclass(frozen=True)
class RulesPlan:
    """Which lessons `bench_rules` simulates."""

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


def bench_rules(plan: RulesPlan, say: Say) -> Report:
    """The rules in simulated lessons; `say` hears what is being simulated."""
    promoted = []  # shares of lessons, although the rate never exceeded the threshold
    for threshold in plan.thresholds:
        say(f"lessons that should not be promoted, threshold {percent(threshold)}")
        for rate in (round(threshold - below, 10) for below in plan.below):
            all_alike = np.full(plan.episodes, rate)
            both = _promotions(plan, all_alike, threshold, lessons=plan.lessons)
            shares = {name: float((one < NEVER).mean()) for name, one in both.items()}
            promoted.append({"threshold": threshold, "rate": rate, **shares})
    say("lessons that should be promoted")
    rates = [np.full(plan.episodes, plan.above_threshold + above) for above in plan.above]
    delays = [_delay(plan, percent(one[0]), one, plan.lessons) for one in rates]
    climbing = np.linspace(*plan.climb, plan.climb_episodes)
    name = "{} to {} in {:,}".format(*map(percent, plan.climb), plan.climb_episodes)
    delays.append(_delay(plan, name, climbing, plan.climb_lessons))
    say("cells that are watched")
    watching = _watching(plan)
    document = {"plan": asdict(plan), "false_promotions": promoted, "delays": delays}
    falsely = "Shares of lessons that were ended although the win rate never exceeded the threshold"
    soon = (
        f"Episodes until a win rate above the threshold, {percent(plan.above_threshold)}, ends the "
        "lesson (median; -: never; of one that climbs, since it crossed the threshold; negative: "
        "before)"
    )
    watched = (
        f"A watched cell at its floor, {percent(plan.floor)}, that is reported lost within "
        f"{plan.watched_episodes:,} episodes: the share of agents and its stated bound; episodes "
        f"to the report of a fall from {percent(plan.fall[0])} to {percent(plan.fall[1])}"
    )
    tables = (
        *(
            Table(falsely, promoted, ("threshold", "rate", "evidence", "last_100")),
            Table(soon, delays),
        ),
        Table(watched, [watching], ("false_reports", "bound")),
    )
    return Report({**document, "watching": watching}, tables)


def _delay(plan: RulesPlan, name: str, rates: Floats, lessons: int) -> dict[str, Any]:
    """Median episodes from the one on whose rate is above the threshold; negative: before it.

    None: at least half never.
    """
    since = int(np.argmax(rates > plan.above_threshold))
    both = _promotions(plan, rates, plan.above_threshold, lessons=lessons)
    medians = {one: round(float(np.median(promoted))) - since for one, promoted in both.items()}
    known = {one: None if median >= NEVER / 2 else median for one, median in medians.items()}
    return {"rate": name, **known}


def _watching(plan: RulesPlan) -> dict[str, float]:
    """How a watched cell fares."""
    test = EvidenceTest(1 - plan.floor, plan.alpha / 2)
    reports = []
    for part, done in enumerate(range(0, plan.watched_agents, 20)):
        rng = np.random.default_rng([plan.seed, 1, part])
        lost = (
            rng.random((plan.watched_episodes, min(20, plan.watched_agents - done))) >= plan.floor
        )
        reports.append(_first(test.trace(lost) >= test.log_bound))
    rates = np.repeat(plan.fall, plan.episodes)
    rng = np.random.default_rng([plan.seed, 2])
    lost = rng.random((len(rates), AT_ONCE)) >= rates[:, None]
    reported = _first(test.trace(lost) >= test.log_bound) - plan.episodes
    return {
        "false_reports": float((np.concatenate(reports) < NEVER).mean()),  # share of agents
        "bound": plan.alpha / 2,  # on it
        "episodes_to_report": round(float(np.median(reported))),  # after a fall
    }


def _promotions(
    plan: RulesPlan, rates: Floats, threshold: float, *, lessons: int
) -> dict[str, Numbers]:
    """The episode at which evidence and the window promote each lesson [lessons], or NEVER."""
    test = EvidenceTest(threshold, plan.alpha)
    evidence, window = [], []
    for part, done in enumerate(range(0, lessons, AT_ONCE)):
        rng = np.random.default_rng([plan.seed, 0, part])
        won = rng.random((len(rates), min(AT_ONCE, lessons - done))) < rates[:, None]
        evidence.append(_first(test.trace(won) >= test.log_bound))
        window.append(window_promotions(won, threshold))
    return {"evidence": np.concatenate(evidence), "last_100": np.concatenate(window)}


def window_promotions(won: Outcomes, threshold: float) -> Numbers:
    """The episode at which the last hundred first exceed `threshold`, [lessons], or NEVER."""
    total = np.cumsum(np.concatenate([np.zeros((1, won.shape[1]), np.int64), won]), axis=0)
    exceeds = np.zeros(won.shape, np.bool_)
    exceeds[WINDOW - 1 :] = (total[WINDOW:] - total[:-WINDOW]) / WINDOW > threshold
    return _first(exceeds)


def _first(passes: Outcomes) -> Numbers:
    """Number, from 1, of the first episode that passes, [lessons], or NEVER."""
    return np.where(passes.any(axis=0), passes.argmax(axis=0) + 1, NEVER)


@dataclass(frozen=True)
class RatingsPlan:
    """Which leagues `bench_ratings` simulates."""

    players: int = 12
    games: int = 100  # a pair
    rungs: tuple[int, ...] = (50, 200)  # points between neighbours
    draws: tuple[float, ...] = (0.0, 0.35, 0.7)  # of the most that the expected score allows
    tables: int = 200  # of each kind
    cycle_players: int = 8
    cycle_rung: float = 50.0
    cycle_tables: int = 300
    drawn_tables: int = 199  # under each one's ratings
    bends: tuple[float, ...] = (0.0, 0.1, 0.15)  # of the score, in each pair of one three-cycle
    seed: int = 1


def bench_ratings(plan: RatingsPlan, say: Say) -> Report:
    """How often intervals hold and cycles are found; `say` is called with what is done next."""
    random = np.random.default_rng(plan.seed)
    coverage, cycles = [], []
    for rung in plan.rungs:
        for draws in plan.draws:
            say(f"intervals: {rung} points a rung, {100 * draws:.0f} % draws")
            points = rung * np.arange(plan.players, dtype=np.float64)
            held = []
            for _ in range(plan.tables):
                ratings = ratings_of(
                    drawn_table(expected_scores(points), plan.games, draws, random)
                )
                held.append(np.abs(ratings.above(0) - points)[1:] <= ratings.error_above(0)[1:])
            share = float(np.mean(held))
            coverage.append({"rating_points_apart": rung, "draws": draws, "share": share})
    for bend in plan.bends:  # 0: there is no cycle
        for draws in plan.draws[:2]:
            say(f"cycles: bent by {bend:g}, {100 * draws:.0f} % draws")
            scores = expected_scores(
                plan.cycle_rung * np.arange(plan.cycle_players, dtype=np.float64)
            )
            for one, other in CYCLE:
                scores[one, other] += bend
                scores[other, one] -= bend
            hits = 0
            for table in range(plan.cycle_tables):
                counts = drawn_table(scores, plan.games, draws, random)
                hits += cycle_p(counts, seed=plan.seed + table, tables=plan.drawn_tables) <= ALPHA
            counted = {"strength_of_cycle": bend, "draws": draws, "share": hits / plan.cycle_tables}
            cycles.append(counted)
    covered = (
        f"95 % intervals of differences to the first player that hold: {plan.players} players, "
        f"{plan.games} games a pair, {plan.tables} tables each"
    )
    found = (
        f"Cycles found at 5 %: {plan.cycle_players} players, {plan.games} games a pair, "
        f"{plan.cycle_tables} tables each, with a cycle of three players of that strength"
    )
    return Report(
        {"plan": asdict(plan), "coverage": coverage, "cycles": cycles},
        [Table(covered, coverage, ("draws", "share")), Table(found, cycles, ("draws", "share"))],
    )


def drawn_table(scores: Floats, games: int, draws: float, random: np.random.Generator) -> Numbers:
    """[P, P, 3] wins, draws and losses of `games` games between players of these scores.

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
