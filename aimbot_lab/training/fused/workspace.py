"""Room for samples on their way through the networks, and the desks of threads."""

import numpy as np

from aimbot_lab.foundation.kernels.atomic import Words
from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.threads.spin_sync import LOOKS, STRIDE
from aimbot_lab.training.fused.core.parts import Desk, Floats, Head, Room, Samples, Slopes, Turn
from aimbot_lab.training.fused.weights import NetShape, net_size, net_views

MOST_THREADS = 8


def new_desks(shape: NetShape, count: int, words: Words) -> tuple[Desk, ...]:
    """Desks of the caller and of the workers with these `words`, for pieces of `count` samples."""

    def new_desk(number: int) -> Desk:
        flat = np.zeros(net_size(shape), np.float32)
        return Desk(number, LOOKS, new_room(shape, count), Slopes(flat, net_views(shape, flat)))

    return tuple(map(new_desk, range(1 + words.size // STRIDE)))


def new_turn(words: Words) -> Turn:
    """What the caller and the workers with these `words` tell each other, before any work."""
    taken, numbers = np.zeros((2, 2 * STRIDE), np.int64)  # in cache lines of their own
    return Turn(words, taken, numbers)


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
    widths = [2 * whole_lanes(units) for units in shape.layers]
    outputs, slopes = (tuple(zeros(count, width) for width in widths) for _ in range(2))
    return Room(samples, outputs, slopes, head, np.ones(count, np.float32))
