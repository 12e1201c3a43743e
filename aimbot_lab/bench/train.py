"""Whole trainings on the arena: our PPO against stable-baselines3's own, in the same run.

A repeat is a fresh training of a few rollouts with lessons, callbacks and tracking, as a
curriculum has them. The repeats of all variants take turns, and of each the fastest counts.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.fresh_process import measure_at_once
from aimbot_lab.bench.timing.lap import PARTS, Lap, run_lap
from aimbot_lab.bench.timing.machine import Machine, this_machine
from aimbot_lab.bench.timing.products import seconds_of_products
from aimbot_lab.bench.train_plan import OURS, THEIRS, TrainBenchPlan, Variant
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.training import Training


@dataclass(frozen=True)
class TrainSpeed:
    """How fast a variant trains."""

    variant: Variant
    steps_per_second: float  # environment steps, from end to end
    shares: Mapping[str, float]  # part -> share of the time; they sum to 1
    update_steps_per_second: float  # of the update by itself
    product_steps_per_second: float | None  # of a BLAS that does its products; ours only


@dataclass(frozen=True)
class TrainBench:
    """All that was measured."""

    machine: Machine
    plan: TrainBenchPlan
    speeds: tuple[TrainSpeed, ...]
    at_once: float | None  # steps per second of two trainings together, on one thread each

    def best(self, name: str, net: str) -> TrainSpeed:
        """The fastest of all numbers of threads."""
        own = [s for s in self.speeds if (s.variant.name, s.variant.net) == (name, net)]
        return max(own, key=lambda speed: speed.steps_per_second)

    @property
    def ratios(self) -> dict[str, float]:
        """Per net: our best speed over stable-baselines3's best."""
        nets = dict.fromkeys(speed.variant.net for speed in self.speeds)
        return {
            net: self.best(OURS, net).steps_per_second / self.best(THEIRS, net).steps_per_second
            for net in nets
        }


def bench_train(plan: TrainBenchPlan, say: Say) -> TrainBench:
    """All measurements of `plan`; `say` is called with what begins."""
    laps: dict[Variant, list[Lap]] = {variant: [] for variant in plan.variants}
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as folder:
        say("making a store to track to, compiling what is not in the cache yet")
        data_folder = DataFolder(Path(folder))
        for variant in plan.variants:
            _train(plan, variant, data_folder)
        for repeat in range(plan.repeats):
            say(f"repeat {repeat + 1} of {plan.repeats}: {len(laps)} trainings")
            for variant, done in laps.items():
                done.append(_train(plan, variant, data_folder))
    say("the matrix products alone")
    speeds = tuple(_speed(plan, variant, done) for variant, done in laps.items())
    return TrainBench(this_machine(), plan, speeds, _at_once(plan, say))


def _at_once(plan: TrainBenchPlan, say: Say) -> float | None:
    if not plan.at_once_rollouts:
        return None
    say("two trainings at once")
    return measure_at_once(plan.at_once_rollouts)


def _train(plan: TrainBenchPlan, variant: Variant, data_folder: DataFolder) -> Lap:
    training = Training(plan.training(variant))
    tracker = open_run(data_folder, TrackingSettings(), RunDescription(name=variant.name))
    try:
        return run_lap(training, tracker)
    finally:
        tracker.finish("FINISHED")


def _speed(plan: TrainBenchPlan, variant: Variant, laps: list[Lap]) -> TrainSpeed:
    best = min(laps, key=lambda lap: lap.whole / lap.rollouts)
    steps = best.rollouts * plan.steps
    products = None
    if variant.name == OURS:
        model = Training(plan.training(variant)).model
        assert isinstance(model, HybridPPO)
        assert isinstance(model.engine, FusedEngine)
        products = 1.0 / (seconds_of_products(model.engine, variant.threads) * plan.n_epochs)
    return TrainSpeed(
        variant=variant,
        steps_per_second=steps / best.whole,
        shares={part: best.seconds.get(part, 0.0) / best.whole for part in PARTS},
        update_steps_per_second=steps / best.seconds["update"],
        product_steps_per_second=products,
    )
