"""How long the matrix products of an update take by themselves, as a BLAS does them."""

import time
from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.fused.gradient import PIECE
from aimbot_lab.training.fused.weights import NetShape

Product = tuple[Floats, Floats, Floats]  # two factors, and where their product goes
PIECES = 16  # in one timing
REPEATS = 300  # of which the best counts; together about a second


def seconds_of_products(engine: FusedEngine, threads: int) -> float:
    """Seconds per sample and epoch, if all `threads` were as fast as one alone.

    BLAS is numpy's, at its best: each array lies in one piece.
    """
    products = list(_products(engine.shape))

    def work() -> None:
        for _ in range(PIECES):
            for left, right, product in products:
                np.matmul(left, right, out=product)

    with threadpool_limits(1):
        return min(_time(work) for _ in range(REPEATS)) / (threads * PIECES * PIECE)


def _time(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _products(shape: NetShape) -> Iterator[Product]:
    """The products of one piece of samples, forward and backward, of actor and critic."""
    below = shape.inputs
    for number, units in enumerate(shape.layers):
        halves, width = (2, units) if number else (1, 2 * units)
        for _ in range(halves):
            yield from _layer(below, width, slopes=number > 0)
        below = units
    yield from _layer(below, shape.outputs, slopes=True)
    yield from _layer(below, 1, slopes=True)


def _layer(inputs: int, outputs: int, *, slopes: bool) -> Iterator[Product]:
    """A layer's output, its weights' gradient and, asked for `slopes`, those by its inputs."""
    rng = np.random.default_rng(0)

    def new(*size: int) -> Floats:
        return rng.standard_normal(size, np.float32)

    below, weights, above = new(PIECE, inputs), new(inputs, outputs), new(PIECE, outputs)
    yield below, weights, new(PIECE, outputs)
    yield below.T, above, new(inputs, outputs)
    if slopes:
        yield above, weights.T, new(PIECE, inputs)
