"""Arrays that several actors of one shape work in, as many rows as a piece has."""

import numpy as np

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.kernels.packed import PackedTable
from aimbot_lab.training.fused.core.act_stacked import ActorWorkspace, keep_actor_workspace
from aimbot_lab.training.fused.core.parts import Floats, Head, Noise
from aimbot_lab.training.fused.weights import NetShape


def zeros(*size: int) -> Floats:
    """An array of this size."""
    return np.zeros(size, np.float32)


def new_actor_workspaces(shape: NetShape, most: int) -> tuple[PackedTable, ActorWorkspace]:
    """(those for 1 to `most` rows, all in the memory of the largest; one of them)."""
    memory = _Memory()
    found = [_workspace(shape, count, memory) for count in range(most, 0, -1)]
    return PackedTable(keep_actor_workspace, found[::-1]), found[0]


class _Memory:
    """Gives arrays; once it begins again, in the same order, smaller ones in the same memory."""

    def __init__(self) -> None:
        self._flat: list[Floats] = []
        self._given = 0

    def begin(self) -> None:
        self._given = 0

    def __call__(self, *size: int) -> Floats:
        count = int(np.prod(size))
        if self._given == len(self._flat):
            self._flat.append(np.zeros(count, np.float32))
        self._given += 1
        return self._flat[self._given - 1][:count].reshape(size)


def _workspace(shape: NetShape, count: int, take: _Memory) -> ActorWorkspace:
    take.begin()
    choices = len(shape.choices)
    return ActorWorkspace(
        inputs=take(count, shape.inputs),
        masks=take(shape.masks, count),
        actions=take(shape.branches, count),
        noise=Noise(take(count, choices), take(count, shape.gaussians)),
        layers=tuple(take(count, whole_lanes(units)) for units in shape.layers),
        head=Head(
            outputs=take(count, whole_lanes(shape.outputs)),
            logits=take(shape.outputs, count),
            probs=take(sum(shape.choices), count),
            values=take(0, 1),
            log_sums=take(choices, count),
            entropies=take(choices, count),
            log_probs=take(shape.branches, count),
            dloss_dlogp=take(0, count),
        ),
    )
