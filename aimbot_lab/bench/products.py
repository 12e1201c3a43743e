"""How long the matrix products of an update take by themselves: no update can be faster."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from aimbot_lab.training.core.parts import Floats
from aimbot_lab.training.fused_engine import FusedEngine
from aimbot_lab.training.fused_gradient import PIECE
from aimbot_lab.training.fused_net import Room, new_room
from aimbot_lab.training.fused_weights import Net, NetShape, net_size, net_views

Product = tuple[Floats, Floats, Floats]  # two factors, and where their product goes
PIECES = 16  # of each thread in one timing
REPEATS = 12  # of which the best counts


def seconds_of_products(engine: FusedEngine) -> float:
    """Seconds per sample and epoch, on as many threads as torch is set to."""
    with engine.threads():
        threads = engine.team.threads
        works = [_work(engine.shape) for _ in range(threads)]

        def work(part: int, _: int) -> None:
            for _ in range(PIECES):
                works[part]()

        return min(_time(lambda: engine.team.run(work, threads)) for _ in range(REPEATS)) / (
            threads * PIECES * PIECE
        )


def _time(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _work(shape: NetShape) -> Callable[[], None]:
    """A function that does the products of one piece of samples."""
    rng = np.random.default_rng(0)
    weights, gradient = rng.standard_normal((2, net_size(shape)), np.float32)
    room = new_room(shape, PIECE)
    products = [*_forward(net_views(shape, weights), room)]
    products += _backward(net_views(shape, weights), room, net_views(shape, gradient))
    for left, right, _ in products:
        left[...] = rng.standard_normal(left.shape, np.float32)
        right[...] = rng.standard_normal(right.shape, np.float32)

    def work() -> None:
        for left, right, product in products:
            np.matmul(left, right, out=product)

    return work


def _forward(net: Net, room: Room) -> Iterator[Product]:
    yield room.samples.inputs, net.layers[0].both.T, room.outputs[0].both
    for layer, below, above in zip(net.layers[1:], room.outputs, room.outputs[1:], strict=False):
        yield below.actor, layer.actor.T, above.actor
        yield below.critic, layer.critic.T, above.critic
    yield room.outputs[-1].actor, net.action.T, room.raw
    yield room.outputs[-1].critic, net.value, room.head.values


def _backward(net: Net, room: Room, gradient: Net) -> Iterator[Product]:
    yield room.head.logits, room.outputs[-1].actor, gradient.action
    yield room.head.values, room.outputs[-1].critic, gradient.value
    yield room.head.logits.T, net.action, room.slopes[-1].actor
    for number in range(len(net.layers) - 1, 0, -1):
        slopes, below = room.slopes[number], room.outputs[number - 1]
        yield slopes.actor.T, below.actor, gradient.layers[number].actor
        yield slopes.critic.T, below.critic, gradient.layers[number].critic
        yield slopes.actor, net.layers[number].actor, room.slopes[number - 1].actor
        yield slopes.critic, net.layers[number].critic, room.slopes[number - 1].critic
    yield room.slopes[0].both.T, room.samples.inputs, gradient.layers[0].both
