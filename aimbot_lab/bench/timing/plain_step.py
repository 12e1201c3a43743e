"""Steps per second of a small world on one thread; run as a program, with the JIT off."""

import sys

import numpy as np

from aimbot_lab.bench.sim_plan import FULL
from aimbot_lab.bench.timing.play import Play
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.registry import settings_with


def plain_steps_per_second(num_envs: int, repeats: int, *, seconds: float) -> float:
    """The best of `repeats` measurements, with all targets mixed evenly."""
    scenario = Scenario(dict.fromkeys(FULL.targets, 1.0))
    # Random words wrap round on purpose; uncompiled, numpy would warn of it.
    with np.errstate(over="ignore"):
        play = Play(settings_with(num_envs=num_envs), scenario)
        return num_envs / min(play.time_step(seconds) for _ in range(repeats))


def main(arguments: list[str]) -> None:
    """Print the figure for NUM_ENVS, REPEATS and SECONDS."""
    num_envs, repeats, seconds = arguments
    figure = plain_steps_per_second(int(num_envs), int(repeats), seconds=float(seconds))
    sys.stdout.write(f"{figure}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
