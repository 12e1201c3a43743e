"""Whole trainings of a network beside plain layers and sb3-contrib's RecurrentPPO, by turns."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aimbot_lab.bench.networks.plan import (
    PLAIN,
    RECURRENT,
    SHARED,
    NetworkBenchPlan,
    NetworkVariant,
)
from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.lap import PARTS, Lap, run_lap
from aimbot_lab.bench.timing.machine import Machine, this_machine
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.training import Training


@dataclass(frozen=True)
class NetworkSpeed:
    """How fast a variant trains, and how many times as fast as others with as many threads."""

    network: str
    threads: int
    engine: str  # what computed
    steps_per_second: float  # environment steps, from end to end
    update_steps_per_second: float  # of the update by itself
    shares: Mapping[str, float]  # part -> share of the time; they sum to 1
    ratio_to_recurrent_ppo: float  # sb3-contrib's default, with an LSTM each of actor and critic
    ratio_to_recurrent_ppo_shared: float  # with one LSTM for both
    ratio_to_plain: float  # hybrid_ppo with two layers and neither memory nor encoders
    ratio_to_one_thread: float


@dataclass(frozen=True)
class NetworkBench:
    """All that was measured."""

    machine: Machine
    plan: NetworkBenchPlan
    rows: tuple[NetworkSpeed, ...]


class _Fastest:
    """The fastest repeat of a variant."""

    def __init__(self) -> None:
        self.lap: Lap | None = None
        self.engine = "torch"

    def take(self, lap: Lap, engine: str) -> None:
        self.engine = engine
        if self.lap is None or lap.whole < self.lap.whole:
            self.lap = lap

    @property
    def seconds(self) -> Mapping[str, float]:
        assert self.lap is not None
        return self.lap.seconds


def bench_networks(plan: NetworkBenchPlan, say: Say) -> NetworkBench:
    """All measurements of `plan`; `say` is called with what begins."""
    fastest = {variant: _Fastest() for variant in plan.variants}
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as folder:
        data_folder = DataFolder(Path(folder))
        for repeat in range(plan.repeats):
            say(f"repeat {repeat + 1} of {plan.repeats}: {len(fastest)} trainings")
            for variant, one in fastest.items():
                one.take(*_train(plan, variant, data_folder))
    speeds = {
        variant: plan.steps * plan.rollouts / sum(one.seconds.values())
        for variant, one in fastest.items()
    }
    rows = tuple(_row(plan, variant, one, speeds) for variant, one in fastest.items())
    return NetworkBench(this_machine(), plan, rows)


def _train(
    plan: NetworkBenchPlan, variant: NetworkVariant, data_folder: DataFolder
) -> tuple[Lap, str]:
    """(where the time went, what computed)."""
    training = Training(plan.training(variant))
    tracker = open_run(data_folder, TrackingSettings(), RunDescription(name=variant.network))
    try:
        lap = run_lap(training, tracker)
    finally:
        tracker.finish("FINISHED")
    model: Any = training.model
    return lap, model.engine.name if hasattr(model, "engine") else "torch"


def _row(
    plan: NetworkBenchPlan,
    variant: NetworkVariant,
    fastest: _Fastest,
    speeds: Mapping[NetworkVariant, float],
) -> NetworkSpeed:
    own, seconds = speeds[variant], fastest.seconds
    whole = sum(seconds.values())

    def ratio(network: str, threads: int = variant.threads) -> float:
        return own / speeds[NetworkVariant(network, threads)]

    return NetworkSpeed(
        network=variant.network,
        threads=variant.threads,
        engine=fastest.engine,
        steps_per_second=own,
        update_steps_per_second=plan.steps * plan.rollouts / seconds["update"],
        shares={part: seconds.get(part, 0.0) / whole for part in PARTS},
        ratio_to_recurrent_ppo=ratio(RECURRENT),
        ratio_to_recurrent_ppo_shared=ratio(SHARED),
        ratio_to_plain=ratio(PLAIN),
        ratio_to_one_thread=ratio(variant.network, plan.threads[0]),
    )
