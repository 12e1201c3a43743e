"""What agents of ML-Agents do, written as actions of a world."""

import numpy as np

from aimbot_lab.foundation.kernels.packed import Packed
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.mlagents.actions import ActionTuple
from aimbot_lab.mlagents.core.scaling import keep_actions, write_actions_packed


class ActionWriter:
    """Writes actions of ML-Agents into `out` [n, width], those of as many agents of a world."""

    def __init__(self, out: Float32Array, spec: WorldSpec) -> None:
        self._discrete = np.zeros((len(out), len(spec.branches)), np.int32)
        self._continuous: Float32Array = np.zeros((len(out), spec.continuous), np.float32)
        low, high = spec.action_ranges
        middle = ((low + high) / 2).astype(np.float32)
        half = ((high - low) / 2).astype(np.float32)
        writes = Packed(keep_actions, write_actions_packed)
        self._run = writes.call_with(self._discrete, self._continuous, middle, half, out)

    def write(self, action: ActionTuple | None) -> None:
        """Write `action`, zeros where there is none."""
        self._discrete[...] = 0 if action is None else action.discrete
        self._continuous[...] = 0.0 if action is None else action.continuous
        self._run()
