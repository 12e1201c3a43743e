"""What the model of `training.processes.forecast` expects, beside what was measured.

On paper it holds for one processor. Fitted, its computing is scaled so that one process takes as
long as it did here, which leaves to compare what more processes bring.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from aimbot_lab.bench.scale.plan import ScaleBenchPlan, ScaleVariant
from aimbot_lab.experiment.runs.processes.expected_work import work_of
from aimbot_lab.training.processes.forecast import ON_PAPER, Costs, Work, expected


class Expected(NamedTuple):
    """A forecast."""

    rollout_ms: float  # of a rollout and its update
    steps_per_second: float
    exchange_share: float
    ratio_to_one_process: float
    over_measured: float  # rollout_ms over that of the median turn


class Expectation(NamedTuple):
    """What is expected of a training."""

    on_paper: Expected
    fitted: Expected


def expectations(
    plan: ScaleBenchPlan, measured_ms: Mapping[ScaleVariant, float]
) -> dict[ScaleVariant, Expectation]:
    """By variant, of those with one thread, from the milliseconds of a rollout of each.

    The first variant is one process.
    """
    first, first_ms = next(iter(measured_ms.items()))
    work = work_of(replace(plan.training, layers=first.layers).plan())
    fitted = ON_PAPER.scaled(first_ms / expected(work, 1).whole_ms)
    return {
        variant: Expectation(
            *(_expected(work, variant.processes, costs, measured) for costs in (ON_PAPER, fitted))
        )
        for variant, measured in measured_ms.items()
        if variant.threads == 1
    }


def _expected(work: Work, processes: int, costs: Costs, measured_ms: float) -> Expected:
    found = expected(work, processes, costs)
    return Expected(
        rollout_ms=found.whole_ms,
        steps_per_second=1e3 * work.samples / found.whole_ms,
        exchange_share=found.exchange_share,
        ratio_to_one_process=expected(work, 1, costs).whole_ms / found.whole_ms,
        over_measured=found.whole_ms / measured_ms,
    )
