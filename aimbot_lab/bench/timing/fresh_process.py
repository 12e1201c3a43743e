"""Measurements that need a Python process of their own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aimbot_lab.bench.sim_plan import BenchPlan
from aimbot_lab.foundation.errors import LabError

FIRST_STEP = "aimbot_lab.bench.timing.first_step"
PLAIN_STEP = "aimbot_lab.bench.timing.plain_step"
LONE_TRAINING = "aimbot_lab.bench.timing.lone_training"


@dataclass(frozen=True)
class Starts:
    """Seconds from the first import to the first step done; None where not measured."""

    cold: float | None  # the kernels are compiled
    cached: float | None  # compiled kernels are read from the cache


def measure_starts(plan: BenchPlan) -> Starts:
    """A start with an empty kernel cache, and the best one after it."""
    if not plan.starts:
        return Starts(None, None)
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as folder:
        environment = {"NUMBA_CACHE_DIR": folder}
        cold = _number_from(FIRST_STEP, environment=environment)
        cached = [_number_from(FIRST_STEP, environment=environment) for _ in range(3)]
    return Starts(cold, min(cached))


def measure_plain_python(plan: BenchPlan) -> float:
    """Steps per second of the kernels' own source as plain Python, uncompiled, on one thread."""
    arguments = plan.plain_num_envs, plan.mixed_repeats, plan.plain_seconds
    return _number_from(PLAIN_STEP, *arguments, environment={"NUMBA_DISABLE_JIT": "1"})


def measure_at_once(rollouts: int) -> float:
    """Steps per second of two trainings beside each other, together, on one thread each."""

    def train(_: int) -> float:
        return _number_from(LONE_TRAINING, rollouts, environment={})

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(train, range(2)))


def _number_from(module: str, *arguments: float, environment: Mapping[str, str]) -> float:
    """The number that `module` prints, run as a program."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise LabError(f"{module} failed: {reason or done.returncode}")
    return float(done.stdout)
