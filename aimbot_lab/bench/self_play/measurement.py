"""Whole trainings by self-play beside as many rows of the hardest target, by turns."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aimbot_lab.bench.self_play.acting import ActingSpeed, fill, measure_acting
from aimbot_lab.bench.self_play.plan import SELF_PLAY, SelfPlayBenchPlan, SelfPlayVariant
from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.lap import OPPONENTS, PARTS, Lap, run_lap
from aimbot_lab.bench.timing.machine import Machine, this_machine
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.training import Training


@dataclass(frozen=True)
class SelfPlaySpeed:
    """How fast a variant learns."""

    name: str  # SELF_PLAY, or the target that it is compared with
    net: str
    threads: int
    engine: str
    steps_per_second: float  # of the learner, from end to end
    update_steps_per_second: float  # of the update by itself
    shares: Mapping[str, float]  # part -> share of the time; they sum to 1
    ratio_to_hardest_target: float  # of learner steps a second, with as many threads


@dataclass(frozen=True)
class SelfPlayBench:
    """All that was measured."""

    machine: Machine
    plan: SelfPlayBenchPlan
    rows: tuple[SelfPlaySpeed, ...]
    acting: tuple[ActingSpeed, ...]


def bench_self_play(plan: SelfPlayBenchPlan, say: Say) -> SelfPlayBench:
    """All measurements of `plan`; `say` is called with what begins."""
    laps: dict[SelfPlayVariant, list[Lap]] = {variant: [] for variant in plan.variants}
    engines: dict[SelfPlayVariant, str] = {}
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as folder:
        data_folder = DataFolder(Path(folder))
        for repeat in range(plan.repeats):
            say(f"repeat {repeat + 1} of {plan.repeats}: {len(laps)} trainings")
            for variant, done in laps.items():
                lap, engines[variant] = _train(plan, variant, data_folder)
                done.append(lap)
    best = {variant: min(done, key=lambda lap: lap.whole) for variant, done in laps.items()}
    rows = tuple(_row(plan, variant, best, engine=engines[variant]) for variant in best)
    say(f"acting of {plan.at_once} networks and of one on {plan.opposite} rows")
    return SelfPlayBench(this_machine(), plan, rows, measure_acting(plan))


def _train(
    plan: SelfPlayBenchPlan, variant: SelfPlayVariant, data_folder: DataFolder
) -> tuple[Lap, str]:
    """(where the time went, what computed)."""
    training = Training(plan.training(variant))
    model: Any = training.model
    if training.self_play is not None:  # as after a while: with as many past selves as may be met
        fill(training.self_play.pool, model.policy.state_dict(), plan.window)
        training.self_play.past_selves.line_up = tuple(range(plan.at_once))
    tracker = open_run(data_folder, TrackingSettings(), RunDescription(name=variant.name))
    try:
        return run_lap(training, tracker), model.engine.name
    finally:
        tracker.finish("FINISHED")


def _row(
    plan: SelfPlayBenchPlan,
    variant: SelfPlayVariant,
    best: Mapping[SelfPlayVariant, Lap],
    *,
    engine: str,
) -> SelfPlaySpeed:
    lap = best[variant]
    (other,) = (one for one in best if one.threads == variant.threads and one.name != SELF_PLAY)
    speeds = [one.rollouts * plan.steps / one.whole for one in (lap, best[other])]
    return SelfPlaySpeed(
        name=variant.name,
        net="x".join(map(str, plan.layers)),
        threads=variant.threads,
        engine=engine,
        steps_per_second=speeds[0],
        update_steps_per_second=lap.rollouts * plan.steps / lap.seconds["update"],
        shares={part: lap.seconds.get(part, 0.0) / lap.whole for part in (*PARTS, OPPONENTS)},
        ratio_to_hardest_target=speeds[0] / speeds[1],
    )
