"""Whether target attention is better than a linear head, judged seed by seed."""

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean, stdev

from aimbot_lab.bench.ablation.trainings import Attempt
from aimbot_lab.foundation.statistics.intervals import (
    MeanInterval,
    are_alike,
    shown_difference,
    student_quantile,
)

LINEAR = "target linear"
ATTENDING = {"target attention": "target attention", "everything": "everything (target attention)"}
"""Variants with attention, and what a sentence calls them."""
CONFIDENCE = 0.95


def contrast(done: Sequence[Attempt]) -> str | None:
    """One sentence: whether attention is better than the linear head, by how much.

    By the steps to the threshold where all of both reached it, else by win rates at the end, with
    Student's interval of the seeds' differences. None without two seeds of both.
    """
    linear = _by_seed(done, LINEAR)
    for name, called in ATTENDING.items():
        attending = _by_seed(done, name)
        seeds = sorted(attending.keys() & linear.keys())
        if len(seeds) > 1:
            pairs = [(attending[seed], linear[seed]) for seed in seeds]
            text = _found(pairs)
            return f"{called} against {LINEAR}: {text} ({len(seeds)} seeds in pairs, 95 %)"
    return None


def _by_seed(done: Sequence[Attempt], variant: str) -> Mapping[int, Attempt]:
    return {one.seed: one for one in done if one.variant == variant}


def _found(pairs: Sequence[tuple[Attempt, Attempt]]) -> str:
    if all(one.reached and other.reached for one, other in pairs):
        logs = student_interval([log(one.steps / other.steps) for one, other in pairs])
        ends = ", ".join(f"{exp(end):.3f}" for end in logs[1:] if end is not None)
        interval = f" [{ends}]" if ends else ""
        times = f"it took {exp(logs.mean):.3f}{interval} times the steps to the threshold"
        return f"{_judged(logs, less_is_better=True)}, {times}"
    more = student_interval([_rate(one) - _rate(other) for one, other in pairs])
    judged, found = _judged(more, less_is_better=False), shown_difference(*more)
    return f"{judged}, its win rate at the end is higher by {found}"


def _rate(attempt: Attempt) -> float:
    return attempt.wins / max(attempt.episodes, 1)


def _judged(found: MeanInterval, *, less_is_better: bool) -> str:
    if found.lower is None or found.upper is None or found.lower <= 0 <= found.upper:
        return "not shown to be better"
    return "better" if (found.upper < 0) == less_is_better else "worse"


def student_interval(values: Sequence[float]) -> MeanInterval:
    """The mean of two `values` or more, with Student's interval at 95 % unless they are alike."""
    if are_alike(values):
        return MeanInterval(fmean(values), None, None)
    mean, degrees = fmean(values), len(values) - 1
    width = student_quantile(0.5 + CONFIDENCE / 2, degrees)
    half = width * stdev(values, mean) / len(values) ** 0.5
    return MeanInterval(mean, mean - half, mean + half)
