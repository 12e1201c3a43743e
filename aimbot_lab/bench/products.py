"""How long the matrix products of an update take by themselves: no update can be faster."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from aimbot_lab.training.core.parts import Floats, Net, Room
from aimbot_lab.training.fused_engine import FusedEngine
from aimbot_lab.training.fused_gradient import PIECE
from aimbot_lab.training.fused_room import new_room
from aimbot_lab.training.fused_weights import NetShape, net_size, net_views

Product = tuple[Floats, Floats, Floats]  # two factors, and where their product goes
PIECES = 16  # in one timing
REPEATS = 300  # of which the best counts; together about a second


def seconds_of_products(engine: FusedEngine) -> float:
    """Seconds per sample and epoch, if all threads of torch were as fast as one alone."""
    with engine.threads():
        work = _work(engine.shape)
        best = min(_time(lambda: [work() for _ in range(PIECES)]) for _ in range(REPEATS))
        return best / (engine.team.threads * PIECES * PIECE)


def _time(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _work(shape: NetShape) -> Callable[[], None]:
    """A function that does the products of one piece of samples."""
    rng = np.random.default_rng(0)
    weights, gradient = rng.standard_normal((2, net_size(shape)), np.float32)
    room = new_room(shape, PIECE)
    net = net_views(shape, weights)
    products = [*_forward(net, room), *_backward(net, room, net_views(shape, gradient))]
    for left, right, _ in products:
        left[...] = rng.standard_normal(left.shape, np.float32)
        right[...] = rng.standard_normal(right.shape, np.float32)

    def work() -> None:
        for left, right, product in products:
            np.matmul(left, right, out=product)

    return work


def _halves(array: Floats) -> tuple[Floats, Floats]:
    """The actor's columns of `array` and the critic's."""
    half = array.shape[1] // 2
    return array[:, :half], array[:, half:]


def _forward(net: Net, room: Room) -> Iterator[Product]:
    yield room.samples.inputs, net.layers[0].weights.T, room.outputs[0]
    for number in range(1, len(net.layers)):
        weights = _halves(net.layers[number].weights.T)
        below, above = _halves(room.outputs[number - 1]), _halves(room.outputs[number])
        yield from zip(below, weights, above, strict=True)
    actor, critic = _halves(room.outputs[-1])
    yield net.action, actor.T, room.head.logits
    yield critic, net.value.T, room.head.values


def _backward(net: Net, room: Room, gradient: Net) -> Iterator[Product]:
    actor, critic = _halves(room.outputs[-1])
    yield room.head.logits, actor, gradient.action
    yield room.head.values.T, critic, gradient.value
    yield room.head.logits.T, net.action, _halves(room.slopes[-1])[0]
    for number in range(len(net.layers) - 1, 0, -1):
        slopes, below = _halves(room.slopes[number]), _halves(room.outputs[number - 1])
        weights = _halves(net.layers[number].weights.T)
        of_weights = _halves(gradient.layers[number].weights.T)
        to_below = _halves(room.slopes[number - 1])
        for k in range(2):
            yield slopes[k].T, below[k], of_weights[k].T
            yield slopes[k], weights[k].T, to_below[k]
    yield room.slopes[0].T, room.samples.inputs, gradient.layers[0].weights
