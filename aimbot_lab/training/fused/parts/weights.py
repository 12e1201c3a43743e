"""The weights of a network of parts in one array, and those of the policy that they are."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch as th

from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.core.arrays import DenseLayer, LstmWeights, PartsNet
from aimbot_lab.training.fused.parts.core.turn import turn_parts
from aimbot_lab.training.fused.parts.net import (
    GATES,
    new_parts_networks,
    parts_size,
    parts_views,
)
from aimbot_lab.training.fused.parts.shape import Block, PartsShape, blocks_of
from aimbot_lab.training.fused.weights import FusedWeights, Index, Place


class View(NamedTuple):
    """A part of a tensor of a policy, as a `PartsNet` has it."""

    part: Index
    weights: Floats  # of the shape of this part


WHOLE = slice(None)


def tensor_views(shape: PartsShape, net: PartsNet) -> Iterator[list[View]]:
    """For each tensor, in the order of `PartsWeights`, its parts in `net`."""
    yield from _dense_views(shape.plain, shape.scalars, net.scalars)
    for kind, units in zip(shape.kinds, net.units, strict=False):
        yield from _dense_views(kind.inputs, kind.layers, units.layers)
        below = (kind.inputs, *kind.layers)[-1]
        rows = blocks_of((kind.size, kind.keys))
        yield [View((theirs,), units.last[ours, :below]) for theirs, ours in rows]
        yield [View((theirs,), units.last_bias[ours]) for theirs, ours in rows]
    for lstm in net.memories[: shape.memories]:
        yield from _lstm_views(shape, lstm)
    yield from _layer_views(shape, net)
    yield from _head_views(shape, net)


def _dense_views(
    inputs: int, layers: tuple[int, ...], weights: Sequence[DenseLayer]
) -> Iterator[list[View]]:
    below = inputs
    for units, layer in zip(layers, weights[1:], strict=False):
        yield [View((WHOLE,), layer.weights[:below, :units].T)]
        yield [View((WHOLE,), layer.bias[:units])]
        below = units


def _lstm_views(shape: PartsShape, lstm: LstmWeights) -> Iterator[list[View]]:
    size = shape.size
    gates = [(slice(gate * size, gate * size + size), gate * shape.lanes) for gate in range(GATES)]
    for matrix, blocks in ((lstm.inputs, shape.core), (lstm.hidden, blocks_of((size,)))):
        yield [
            View((rows, theirs), matrix[ours, at : at + size].T)
            for rows, at in gates
            for theirs, ours in blocks
        ]
    for bias in (lstm.input_bias, lstm.hidden_bias):
        yield [View((rows,), bias[at : at + size]) for rows, at in gates]


def _layer_views(shape: PartsShape, net: PartsNet) -> Iterator[list[View]]:
    """Actor's and critic's weights, then their biases, of each layer."""
    blocks: Sequence[Block] = shape.bottom
    for units, layer in zip(shape.heads.layers, net.layers, strict=False):
        half = layer.bias.size // 2
        for weights in layer.weights:
            yield [View((WHOLE, theirs), weights[ours, :units].T) for theirs, ours in blocks]
        yield [View((WHOLE,), layer.bias[:units])]
        yield [View((WHOLE,), layer.bias[half : half + units])]
        blocks = blocks_of((units,))


def _head_views(shape: PartsShape, net: PartsNet) -> Iterator[list[View]]:
    """Action, target, value and deviations, as `heads_of` has them."""
    top, actions = shape.top, shape.heads.outputs
    for rows in action_rows(shape):
        yield [
            View((theirs, columns), net.action[ours, own])
            for theirs, ours in rows
            for columns, own in top
        ]
        yield [View((theirs,), net.action_bias[ours]) for theirs, ours in rows]
    if shape.targets:
        keys = max(kind.keys for kind in shape.kinds)
        query = slice(actions, actions + keys)
        yield [View((WHOLE, columns), net.action[query, own]) for columns, own in top]
        yield [View((WHOLE,), net.action_bias[query])]
        yield [View((WHOLE,), net.nobody[:keys])]
    yield [View((WHOLE, columns), net.value[None, own]) for columns, own in top]
    yield [View((WHOLE,), net.value_bias)]
    if shape.heads.gaussians:
        yield [View((WHOLE,), net.log_std)]


def action_rows(shape: PartsShape) -> Iterator[list[Block]]:
    """Rows of a tensor and of the logits, of the action's layer and of a linear target's."""
    whole, first, count = shape.heads.outputs, shape.target, shape.choices
    after = slice(first, whole - count), slice(first + count, whole)
    yield [(slice(0, first), slice(0, first)), after]
    if count and not shape.targets:
        yield [(slice(0, count), slice(first, first + count))]


class PartsWeights(FusedWeights):
    """`FusedWeights` of a network of parts.

    `tensors`: weights and biases of each layer of the scalars, of each kind of units, of memories;
    those of actor and critic as `FusedWeights` has them, with those of the target behind the
    action's.
    """

    def __init__(self, shape: PartsShape, tensors: Sequence[th.Tensor]) -> None:
        self.weights, self.means, self.squares = np.zeros((3, parts_size(shape)), np.float32)
        nets = [parts_views(shape, flat) for flat in (self.weights, self.means, self.squares)]
        views = zip(*(tensor_views(shape, net) for net in nets), strict=True)
        self._places = [
            Place(tensor, one.weights, mean.weights, square.weights, one.part)
            for tensor, of_tensor in zip(tensors, views, strict=True)
            for one, mean, square in zip(*of_tensor, strict=True)
        ]
        self._check_places()
        self.whole = new_parts_networks(shape, nets[0])
        self.steps = 0

    def _turn(self) -> None:
        turn_parts(self.whole)
