"""Seconds from the first import to the first step done; run as a program in a fresh process."""

import sys
import time


def seconds_to_first_step() -> float:
    """How long this process, which has imported nothing yet, takes until an arena has stepped."""
    started = time.perf_counter()
    import numpy as np

    from aimbot_lab.foundation.world import Scenario, new_step_buffers
    from aimbot_lab.worlds.arena.arena import Arena
    from aimbot_lab.worlds.arena.settings import ArenaSettings

    arena = Arena(ArenaSettings(num_envs=16))
    arena.set_scenario(Scenario({"free": 1.0, "goto": 1.0, "attack": 1.0}))
    buffers = new_step_buffers(16, len(arena.spec.observation_names))
    arena.reset(0, buffers.observations)
    arena.step(np.zeros((16, 4), np.float32), buffers)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.stdout.write(f"{seconds_to_first_step()}\n")
