"""The weights of actor, critic and the memory that they share, side by side in one array."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.training.fused.core.memory_parts import (
    EncoderLayer,
    LstmWeights,
    MemoryNet,
    RememberingNetworks,
    TurnedMemory,
)
from aimbot_lab.training.fused.core.parts import Floats, Net
from aimbot_lab.training.fused.core.turn_memory import turn_memory
from aimbot_lab.training.fused.weights import (
    FusedWeights,
    NetShape,
    Place,
    as_torch_has_it,
    net_size,
    net_views,
    new_networks,
)

GATES = 4
USUAL_DEPTH = 2  # layers of an encoder up to which compiled code is the same


class RememberingShape(NamedTuple):
    """Sizes of actor and critic on the output of a memory."""

    heads: NetShape  # of actor and critic; their inputs are the memory's units, in whole lanes
    inputs: int  # F numbers that the policy is shown, without masks
    encoder: tuple[int, ...]  # units of each layer before the memory
    size: int  # units of the memory
    length: int  # L steps of a chunk

    @property
    def lanes(self) -> int:
        """H, the memory's units in whole lanes."""
        return self.heads.inputs

    @property
    def shown(self) -> NetShape:
        """The shape of a rollout's rows: what is shown are the inputs."""
        return self.heads._replace(inputs=self.inputs)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of the inputs and of each layer of the encoder."""
        return self.inputs, *map(whole_lanes, self.encoder)

    @property
    def unused(self) -> int:
        """Empty arrays behind those of the encoder's layers."""
        return max(USUAL_DEPTH - len(self.encoder), 0)


class Weights(NamedTuple):
    """All weights, or the loss's derivatives by them."""

    net: Net
    memory: MemoryNet


def memory_size(shape: RememberingShape) -> int:
    """How many weights the encoder and the memory have, with those that are always 0."""
    layers = sum((one + 1) * other for one, other in pairwise(shape.widths))
    return layers + GATES * shape.lanes * (shape.widths[-1] + shape.lanes + 2)


def weights_size(shape: RememberingShape) -> int:
    """P, how many weights there are, with those that are always 0."""
    return net_size(shape.heads) + memory_size(shape)


def weights_views(shape: RememberingShape, flat: Floats) -> Weights:
    """The parts of `flat` [P]."""
    net, left = net_views(shape.heads, flat), flat[net_size(shape.heads) :]

    def take(*size: int) -> Floats:
        nonlocal left
        count = int(np.prod(size))
        taken, left = left[:count].reshape(size), left[count:]
        return taken

    encoder, below = [EncoderLayer(take(0, 0), take(0))], shape.inputs
    for units in shape.widths[1:]:
        encoder.append(EncoderLayer(take(below, units), take(units)))
        below = units
    encoder += [encoder[0]] * shape.unused
    width = GATES * shape.lanes
    lstm = LstmWeights(take(below, width), take(shape.lanes, width), take(width), take(width))
    return Weights(net, MemoryNet(tuple(encoder), lstm))


def new_remembering_networks(shape: RememberingShape, weights: Weights) -> RememberingNetworks:
    """Networks of these weights, not turned yet."""
    networks = new_networks(shape.heads, weights.net)
    width, widths = GATES * shape.lanes, shape.widths

    def zeros(*size: int) -> Floats:
        return np.zeros(size, np.float32)

    above = [(other, one) for one, other in pairwise(widths[1:])]
    layers = [(0, 0), (0, 0), *above][: len(widths)] + [(0, 0)] * shape.unused
    turned = TurnedMemory(
        encoder=tuple(zeros(*size) for size in layers),
        inputs=zeros(width, widths[-1]) if shape.encoder else zeros(0, 0),
        hidden=zeros(width, shape.lanes),
        first=zeros(networks.net.layers[0].bias.size, shape.lanes),
        bias=zeros(width),
    )
    return RememberingNetworks(networks, weights.memory, turned, len(shape.encoder))


class _View(NamedTuple):
    """Some rows of a tensor of a policy, as `Weights` has them."""

    rows: slice
    weights: Floats  # of the shape of these rows


def _views(shape: RememberingShape, weights: Weights) -> Iterator[list[_View]]:
    """For each tensor, in the order of `RememberingWeights`, its rows in `weights`."""
    whole, below, size = slice(None), shape.inputs, shape.size
    for layer, units in zip(weights.memory.encoder[1:], shape.encoder, strict=False):
        yield [_View(whole, layer.weights[:below, :units].T)]
        yield [_View(whole, layer.bias[:units])]
        below = units
    lstm = weights.memory.lstm
    gates = [(slice(gate * size, (gate + 1) * size), gate * shape.lanes) for gate in range(GATES)]
    for matrix, rows in ((lstm.inputs, below), (lstm.hidden, size)):
        yield [_View(part, matrix[:rows, at : at + size].T) for part, at in gates]
    for bias in (lstm.input_bias, lstm.hidden_bias):
        yield [_View(part, bias[at : at + size]) for part, at in gates]
    for number, view in enumerate(as_torch_has_it(shape.heads, weights.net)):
        first = number < 2  # of actor and critic, whose inputs fill whole lanes
        yield [_View(whole, view[:, :size] if first else view)]


class RememberingWeights(FusedWeights):
    """`FusedWeights` with those of a memory.

    `tensors`: weights and biases of each layer of the encoder; weights of the memory by its inputs
    and by its output, their biases; those of actor and critic as `FusedWeights` has them.
    """

    def __init__(self, shape: RememberingShape, tensors: Sequence[th.Tensor]) -> None:
        self.weights, self.means, self.squares = np.zeros((3, weights_size(shape)), np.float32)
        parts = [weights_views(shape, flat) for flat in (self.weights, self.means, self.squares)]
        views = zip(*(_views(shape, one) for one in parts), strict=True)
        self._places = [
            Place(tensor, one.weights, mean.weights, square.weights, one.rows)
            for tensor, of_tensor in zip(tensors, views, strict=False)
            for one, mean, square in zip(*of_tensor, strict=True)
        ]
        self._check_places()
        self.whole = new_remembering_networks(shape, parts[0])
        self.networks = self.whole.networks
        self.steps = 0

    def _turn(self) -> None:
        super()._turn()
        turn_memory(self.whole)
