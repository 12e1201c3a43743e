"""Room for samples on their way through the networks."""

import numpy as np

from aimbot_lab.foundation.matmul import whole_lanes
from aimbot_lab.training.core.parts import Floats, Head, Room, Samples
from aimbot_lab.training.fused_weights import NetShape


def new_room(shape: NetShape, count: int) -> Room:
    """Room for `count` samples."""

    def zeros(*size: int) -> Floats:
        return np.zeros(size, np.float32)

    samples = Samples(
        inputs=zeros(count, shape.inputs),
        masks=zeros(shape.masks, count),
        actions=zeros(shape.branches, count),
        old_log_probs=zeros(shape.ratios, count),
        advantages=zeros(count),
        returns=zeros(count),
        old_values=zeros(count),
    )
    head = Head(
        outputs=zeros(count, whole_lanes(shape.outputs)),
        logits=zeros(shape.outputs, count),
        probs=zeros(sum(shape.choices), count),
        values=zeros(count, 1),
        log_sums=zeros(len(shape.choices), count),
        entropies=zeros(len(shape.choices), count),
        log_probs=zeros(shape.branches, count),
        pushes=zeros(shape.branches, count),
    )
    outputs, slopes = (tuple(zeros(count, 2 * whole_lanes(h)) for h in shape.layers) for _ in range(2))
    return Room(samples, outputs, slopes, head, np.ones(count, np.float32))
