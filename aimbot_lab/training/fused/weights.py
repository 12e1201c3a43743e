"""The weights of an actor and a critic side by side in one array."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.kernels.portable_math import whole_power
from aimbot_lab.training.fused.core.adam import AdamStep, adam_step, square_of
from aimbot_lab.training.fused.core.net import turn_weights
from aimbot_lab.training.fused.core.parts import Floats, Layer, Net, Networks, Turned, Whole


class NetShape(NamedTuple):
    """Sizes of two networks of equal layers on the same inputs."""

    inputs: int  # F
    layers: tuple[int, ...]  # units H of each hidden layer, of each network
    relu: bool  # or tanh
    choices: tuple[int, ...]  # sizes of the branches that are choices
    gaussians: int  # C columns of the action behind them
    masks: int  # M of the first choices' logits that may be masked
    ratios: int  # R log-probabilities of an action: one, or one per branch
    starts: Whole  # [branches of choices + 1] where each one's logits begin; where the last end

    @property
    def branches(self) -> int:
        """Parts of an action."""
        return len(self.choices) + self.gaussians

    @property
    def outputs(self) -> int:
        """The actor's logits and means."""
        return sum(self.choices) + self.gaussians


def net_size(shape: NetShape) -> int:
    """How many weights there are, with those that are always 0."""
    below, total = shape.inputs, 0
    for units in map(whole_lanes, shape.layers):
        total += 2 * units * (below + 1)
        below = units
    return total + (shape.outputs + 1) * (below + 1) + shape.gaussians


def net_views(shape: NetShape, flat: Floats) -> Net:
    """The parts of `flat` [P]."""
    left = flat

    def take(*size: int) -> Floats:
        nonlocal left
        count = int(np.prod(size))
        taken, left = left[:count].reshape(size), left[count:]
        return taken

    layers: list[Layer] = []
    below = shape.inputs
    for units in map(whole_lanes, shape.layers):
        size = (2, below, units) if layers else (1, below, 2 * units)
        layers.append(Layer(take(*size), take(2 * units)))
        below = units
    action, action_bias = take(shape.outputs, below), take(shape.outputs)
    return Net(tuple(layers), action, action_bias, take(below), take(1), take(shape.gaussians))


def new_networks(shape: NetShape, net: Net) -> Networks:
    """Networks of these weights, not turned yet."""
    sizes = [(2, *layer.weights.shape[:0:-1]) for layer in net.layers]
    turned = [np.zeros(size, np.float32) for size in [(2, 0, 0), *sizes[1:]]]
    action = np.zeros((net.value.size, whole_lanes(shape.outputs)), np.float32)
    return Networks(net, Turned(tuple(turned), action), shape.starts, shape.relu)


def as_torch_has_it(shape: NetShape, net: Net) -> Iterator[Floats]:
    """Views of `net` in the order of `FusedWeights` and with the axes of torch's weights."""
    below = shape.inputs
    for layer, units in zip(net.layers, shape.layers, strict=True):
        half = layer.bias.size // 2
        columns = slice(units), slice(half, half + units)
        if len(layer.weights) == 1:
            yield from (layer.weights[0, :, own].T for own in columns)
        else:
            yield from (weights[:below, :units].T for weights in layer.weights)
        yield from (layer.bias[own] for own in columns)
        below = units
    yield net.action[:, :below]
    yield net.action_bias
    yield net.value[None, :below]
    yield net.value_bias
    yield net.log_std


Index = tuple[slice, ...]


class Place(NamedTuple):
    """Where a part of a tensor of a policy and of its optimiser's means has its copies."""

    tensor: th.Tensor
    weights: Floats  # of the shape of the tensor's part
    means: Floats
    squares: Floats
    part: Index = (slice(None),)

    def own(self, tensor: th.Tensor) -> Floats:
        """The memory of the part in `tensor`, which has this one's shape."""
        array: Floats = tensor.detach().numpy()
        return array[self.part]

    def state(self, optimizer: th.optim.Optimizer) -> dict[str, Any]:
        """What `optimizer` keeps of the tensor, made where there is nothing yet."""
        state: dict[str, Any] = optimizer.state[self.tensor]
        if not state:
            state["step"] = th.tensor(0.0)
            state["exp_avg"] = th.zeros_like(self.tensor.data)
            state["exp_avg_sq"] = th.zeros_like(self.tensor.data)
        return state


class FusedWeights:
    """A policy's weights and its optimiser's means in three arrays [P] of one order.

    `tensors`: actor's and critic's weights, then their biases, of each hidden layer; weights and
    bias of the action's layer and of the value's; logarithms of deviations, if there are any.

    Between two updates the policy and its optimiser hold the truth: `load` fetches it and
    `store` brings it back, in torch's own form.
    """

    def __init__(self, shape: NetShape, tensors: Sequence[th.Tensor]) -> None:
        self.weights, self.means, self.squares = np.zeros((3, net_size(shape)), np.float32)
        nets = [net_views(shape, flat) for flat in (self.weights, self.means, self.squares)]
        views = zip(*(as_torch_has_it(shape, net) for net in nets), strict=True)
        self._places = [Place(t, *own) for t, own in zip(tensors, views, strict=False)]
        self._check_places()
        self.networks = new_networks(shape, nets[0])
        self.steps = 0  # of the optimiser so far

    def _check_places(self) -> None:
        assert all(place.own(place.tensor).shape == place.weights.shape for place in self._places)

    def _turn(self) -> None:
        """Follow the weights with what is made of them."""
        turn_weights(self.networks)

    def load(self) -> None:
        """Fetch the weights."""
        self.weights.fill(0.0)
        for place in self._places:
            place.weights[...] = place.own(place.tensor)
        self._turn()

    def load_optimizer(self, optimizer: th.optim.Optimizer) -> None:
        """Fetch the optimiser's state."""
        self.steps = 0
        self.means.fill(0.0)
        self.squares.fill(0.0)
        for place in self._places:
            if optimizer.state.get(place.tensor):
                state = place.state(optimizer)
                self.steps = int(state["step"].item())
                place.means[...] = place.own(state["exp_avg"])
                place.squares[...] = place.own(state["exp_avg_sq"])

    def store(self, optimizer: th.optim.Optimizer) -> None:
        """Bring weights and optimiser's state back."""
        for place in self._places:
            place.own(place.tensor)[...] = place.weights
            if self.steps:
                state = place.state(optimizer)
                state["step"].fill_(self.steps)
                place.own(state["exp_avg"])[...] = place.means
                place.own(state["exp_avg_sq"])[...] = place.squares

    def descend(self, gradient: Floats, optimizer: th.optim.Optimizer, *, max_norm: float) -> None:
        """Take Adam's step against `gradient` [P], whose norm is cut down to `max_norm`."""
        group = optimizer.param_groups[0]
        one, two = group["betas"]
        self.steps += 1
        norm = math.sqrt(square_of(gradient))
        numbers = (
            min(1.0, max_norm / (norm + 1e-6)),
            1.0 - one,
            two,
            1.0 - two,
            group["lr"] / (1.0 - whole_power(one, self.steps)),
            math.sqrt(1.0 - whole_power(two, self.steps)),
            group["eps"],
        )
        step = AdamStep(*map(np.float32, numbers))
        adam_step(self.weights, gradient, self.means, self.squares, step)
        self._turn()
