"""What benchmarks of the duel measure: the parts of a step."""

import numpy as np

from aimbot_lab.foundation.world import Scenario, StepBuffers
from aimbot_lab.foundation.world_type import StepParts
from aimbot_lab.worlds.arena.core.timed_parts import cast_all_rays
from aimbot_lab.worlds.duel.core.timed_parts import begin_all, move_all, observe_all
from aimbot_lab.worlds.duel.duel import Duel


def step_parts(duel: Duel, scenario: Scenario, buffers: StepBuffers) -> StepParts:
    """The kernels of a step of `scenario`, each on all matches of `duel`, which draws from it."""
    del scenario  # the duel's own is the same
    state, tables, seats = duel.state, duel.tables, len(duel.state.health)
    scratch = np.zeros((4, state.seats.ray_cos.shape[1]), np.float32)
    return {
        "rays": lambda _: cast_all_rays(state.seats, scratch, (0, seats)),
        "movement": lambda actions: move_all(state, tables.layouts, actions),
        "observation": lambda _: observe_all(state, tables, buffers.observations),
        "reset": lambda _: begin_all(state, tables, scratch, buffers),
    }
