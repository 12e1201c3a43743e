"""Steps per second of one training of ours on one thread; run as a program."""

import sys
from dataclasses import replace

from aimbot_lab.bench.timing.lap import run_lap
from aimbot_lab.bench.train_plan import FULL, OURS, Variant
from aimbot_lab.tracking.memory_tracker import MemoryTracker
from aimbot_lab.training.training import Training


def steps_per_second(rollouts: int) -> float:
    """Of so many rollouts and updates, with two layers of 64 units."""
    plan = replace(FULL, rollouts=rollouts)
    lap = run_lap(Training(plan.training(Variant(OURS, (64, 64), 1))), MemoryTracker())
    return lap.rollouts * plan.steps / lap.whole


if __name__ == "__main__":
    sys.stdout.write(f"{steps_per_second(int(sys.argv[1]))}\n")
