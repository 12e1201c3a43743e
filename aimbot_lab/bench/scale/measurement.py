"""Trainings in one and in several processes, by turns: speed, processor time, and the exchange.

All processes of a net's trainings are there from its beginning to its end, and rest while another
training has its turn. Each turn is compared with the turn of one process in the same round. Where
cores are few or busy the clock says little, but the processor's time still holds.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median

from aimbot_lab.bench.scale import group
from aimbot_lab.bench.scale.plan import ScaleBenchPlan, ScaleVariant
from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.machine import Machine, this_machine
from aimbot_lab.bench.timing.ratios import MeanRatio, mean_ratio

WORKER, WAYS = "aimbot_lab.bench.scale.worker", "aimbot_lab.bench.scale.ways"
ALL_REDUCE = "all_reduce"


@dataclass(frozen=True)
class Turn:
    """What a training took in its turn for a rollout and its update."""

    rollout_ms: float  # on the clock, of the slowest process
    processor_ms: float  # of all processes and threads together
    main_thread_ms: float  # of the processor, of the process with most
    exchange_ms: float  # on the clock, waiting included, mean of the processes
    exchanges: float


@dataclass(frozen=True)
class ScaleSpeed:
    """How fast a training goes."""

    processes: int
    threads: int  # of each process
    net: str
    steps_per_second: float  # environment steps, of the median turn
    exchange_share: float  # of the time
    exchanges: float  # of a rollout
    processor_us_per_step: float  # of all processes together, of the median turn
    main_thread_ms: float  # of a rollout, of the median turn
    ratio_to_one_process: MeanRatio  # of speeds, turn by turn
    fastest_steps_per_second: float  # of the fastest turn, which other programs disturbed least
    fastest_ratio: float  # of these speeds, to one process's
    processor_ratio: MeanRatio  # of the processor's time for a step, to one process's


@dataclass(frozen=True)
class ExchangeSpeed:
    """What an exchange between two processes takes."""

    floats: int
    milliseconds: Mapping[str, float]  # by way, mean of the fastest tenth

    @property
    def ratios(self) -> dict[str, float]:
        """By way: over gloo's all_reduce."""
        own = self.milliseconds
        return {way: one / own[ALL_REDUCE] for way, one in own.items() if way != ALL_REDUCE}


@dataclass(frozen=True)
class ScaleBench:
    """All that was measured."""

    machine: Machine
    plan: ScaleBenchPlan
    rows: tuple[ScaleSpeed, ...]
    exchanges: tuple[ExchangeSpeed, ...]


def bench_scale(plan: ScaleBenchPlan, say: Say) -> ScaleBench:
    """All measurements of `plan`; `say` is called with what begins."""
    rows = tuple(row for layers in plan.nets for row in _speeds(plan, layers, say))
    say("exchanges between two processes")
    return ScaleBench(this_machine(), plan, rows, _exchanges(plan))


def _speeds(plan: ScaleBenchPlan, layers: tuple[int, ...], say: Say) -> list[ScaleSpeed]:
    """The rows of a net."""
    variants = list(plan.variants(layers))
    turns: dict[ScaleVariant, list[Turn]] = {variant: [] for variant in variants}
    with ExitStack() as stack:
        say(f"{variants[0].net}: {sum(one.processes for one in variants)} processes begin")
        groups = {one: stack.enter_context(_started(plan, one)) for one in variants}
        for one in variants:  # compiles what is not in the cache yet, and is not counted
            _turn(groups[one], rollouts=1)
        for number in range(plan.turns):
            say(f"{variants[0].net}: turn {number + 1} of {plan.turns} of {len(variants)}")
            for one in variants[:: -1 if number % 2 else 1]:
                turns[one].append(_turn(groups[one], rollouts=plan.rollouts))
    return speeds(plan, turns)


def _started(plan: ScaleBenchPlan, variant: ScaleVariant) -> AbstractContextManager[group.Group]:
    training = replace(plan.training, layers=variant.layers, threads=variant.threads)
    return group.started(WORKER, [json.dumps(asdict(training))], processes=variant.processes)


def _turn(members: group.Group, *, rollouts: int) -> Turn:
    """What a rollout took in a turn of so many."""
    found = members.answers(str(rollouts))

    def every(name: str) -> list[float]:
        return [1e3 * one[name] / rollouts for one in found]

    return Turn(
        rollout_ms=max(every("seconds")),
        processor_ms=sum(every("processor")),
        main_thread_ms=max(every("main_thread")),
        exchange_ms=fmean(every("exchange")),
        exchanges=found[0]["exchanges"] / rollouts,
    )


def speeds(plan: ScaleBenchPlan, turns: Mapping[ScaleVariant, Sequence[Turn]]) -> list[ScaleSpeed]:
    """The rows of a net, from the turns of each variant; the first is one process."""
    first = next(iter(turns.values()))
    fastest = {variant: min(one.rollout_ms for one in own) for variant, own in turns.items()}
    fastest_first = next(iter(fastest.values()))
    medians = {variant: median(one.rollout_ms for one in own) for variant, own in turns.items()}

    def row(variant: ScaleVariant, own: Sequence[Turn]) -> ScaleSpeed:
        pairs = list(zip(first, own, strict=True))
        processor_ms = median(one.processor_ms for one in own)
        return ScaleSpeed(
            processes=variant.processes,
            threads=variant.threads,
            net=variant.net,
            steps_per_second=1e3 * plan.training.steps / medians[variant],
            exchange_share=sum(t.exchange_ms for t in own) / sum(t.rollout_ms for t in own),
            exchanges=own[0].exchanges,
            processor_us_per_step=1e3 * processor_ms / plan.training.steps,
            main_thread_ms=median(one.main_thread_ms for one in own),
            ratio_to_one_process=mean_ratio([a.rollout_ms / b.rollout_ms for a, b in pairs]),
            fastest_steps_per_second=1e3 * plan.training.steps / fastest[variant],
            fastest_ratio=fastest_first / fastest[variant],
            processor_ratio=mean_ratio([b.processor_ms / a.processor_ms for a, b in pairs]),
        )

    return [row(variant, own) for variant, own in turns.items()]


def _exchanges(plan: ScaleBenchPlan) -> tuple[ExchangeSpeed, ...]:
    with group.started(WAYS, [], processes=2) as pair:
        return tuple(
            ExchangeSpeed(floats, pair.answers(f"{floats} {plan.exchanges}")[0])
            for floats in plan.floats
        )
