"""Arrays that the fused engine works in: for samples, and for each thread."""

import numpy as np

from aimbot_lab.foundation.kernels.atomic import SyncFlags
from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.kernels.spin_sync import SPIN_LIMIT, STRIDE
from aimbot_lab.training.fused.core.parts import (
    Floats,
    Gradients,
    Head,
    Samples,
    ThreadWorkspace,
    WorkQueue,
    Workspace,
)
from aimbot_lab.training.fused.weights import NetShape, net_size, net_views

MAX_THREADS = 8


def new_thread_workspaces(
    shape: NetShape, count: int, sync_flags: SyncFlags
) -> tuple[ThreadWorkspace, ...]:
    """Of the caller and its workers, for pieces of `count` samples."""

    def new_thread_workspace(number: int) -> ThreadWorkspace:
        flat = np.zeros(net_size(shape), np.float32)
        return ThreadWorkspace(
            number, SPIN_LIMIT, new_workspace(shape, count), Gradients(flat, net_views(shape, flat))
        )

    return tuple(map(new_thread_workspace, range(1 + sync_flags.size // STRIDE)))


def new_queue(sync_flags: SyncFlags) -> WorkQueue:
    """What the caller and the workers with these `sync_flags` tell each other, before any work."""
    taken, numbers = np.zeros((2, 2 * STRIDE), np.int64)  # in cache lines of their own
    return WorkQueue(sync_flags, taken, numbers)


def new_workspace(shape: NetShape, count: int) -> Workspace:
    """Arrays for `count` samples."""
    samples, head = new_samples(shape, count, inputs=shape.inputs), new_head(shape, count)
    widths = [2 * whole_lanes(units) for units in shape.layers]
    outputs, gradients = (tuple(_zeros(count, width) for width in widths) for _ in range(2))
    return Workspace(samples, outputs, gradients, head, np.ones(count, np.float32))


def new_samples(shape: NetShape, count: int, *, inputs: int) -> Samples:
    """Arrays for what is known of `count` samples, of which the networks are given `inputs`."""
    return Samples(
        inputs=_zeros(count, inputs),
        masks=_zeros(shape.masks, count),
        actions=_zeros(shape.branches, count),
        old_log_probs=_zeros(shape.ratios, count),
        advantages=_zeros(count),
        returns=_zeros(count),
        old_values=_zeros(count),
    )


def new_head(shape: NetShape, count: int) -> Head:
    """Arrays for the outputs of `count` samples."""
    return Head(
        outputs=_zeros(count, whole_lanes(shape.outputs)),
        logits=_zeros(shape.outputs, count),
        probs=_zeros(sum(shape.choices), count),
        values=_zeros(count, 1),
        log_sums=_zeros(len(shape.choices), count),
        entropies=_zeros(len(shape.choices), count),
        log_probs=_zeros(shape.branches, count),
        dloss_dlogp=_zeros(shape.branches, count),
    )


def _zeros(*size: int) -> Floats:
    return np.zeros(size, np.float32)
