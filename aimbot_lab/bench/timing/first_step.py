"""Seconds from the first import to the first step done; run as a program in a fresh process."""

import sys
import time


def seconds_to_first_step() -> float:
    """How long this process, which has imported nothing yet, takes until a world has stepped."""
    started = time.perf_counter()
    import numpy as np

    from aimbot_lab.foundation.world import Scenario, new_step_buffers
    from aimbot_lab.worlds.registry import default_type, make_world, settings_with

    world = make_world(settings_with(num_envs=16))
    world.set_scenario(Scenario(dict.fromkeys(default_type().targets(None), 1.0)))
    spec = world.spec
    buffers = new_step_buffers(16, len(spec.observation_names))
    world.reset(0, buffers.observations)
    world.step(np.zeros((16, len(spec.branches) + spec.continuous), np.float32), buffers)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.stdout.write(f"{seconds_to_first_step()}\n")
