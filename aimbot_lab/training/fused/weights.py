"""The weights of a network in one array, and those of the policy that they are."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.packed import Packed
from aimbot_lab.foundation.kernels.portable_math import whole_power
from aimbot_lab.training.fused.core.adam import AdamStep, adam_step, square_of
from aimbot_lab.training.fused.core.arrays import Floats
from aimbot_lab.training.fused.core.network import turn_weights
from aimbot_lab.training.fused.layout import (
    Index,
    NetworkShape,
    net_size,
    net_views,
    new_networks,
    tensor_views,
)


class Place(NamedTuple):
    """Where a part of a tensor of a policy and of its optimiser's means has its copies."""

    tensor: th.Tensor
    weights: Floats  # of the shape of the tensor's part
    means: Floats
    squares: Floats
    part: Index

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
    """A policy's weights and its optimiser's means in three arrays of one order.

    `tensors`: weights and biases of each layer of the scalars, of each kind of units, of memories;
    actor's and critic's weights, then their biases, of each of their layers; weights and bias of
    the action's layer, what belongs to the target, weights and bias of the value's layer;
    logarithms of deviations, if there are any.

    Between two updates the policy and its optimiser hold the truth: `load` fetches it and
    `store` brings it back, in torch's own form.
    """

    def __init__(self, shape: NetworkShape, tensors: Sequence[th.Tensor]) -> None:
        self.weights, self.means, self.squares = np.zeros((3, net_size(shape)), np.float32)
        nets = [net_views(shape, flat) for flat in (self.weights, self.means, self.squares)]
        views = zip(*(tensor_views(shape, net) for net in nets), strict=True)
        self.places = [
            Place(tensor, one.weights, mean.weights, square.weights, one.part)
            for tensor, of_tensor in zip(tensors, views, strict=True)
            for one, mean, square in zip(*of_tensor, strict=True)
        ]
        assert all(place.own(place.tensor).shape == place.weights.shape for place in self.places)
        self.networks = new_networks(shape, nets[0])
        self._turn = Packed(turn_weights).call_with(self.networks)
        self.steps = 0  # of the optimiser so far

    def load(self) -> None:
        """Fetch the weights."""
        self.weights.fill(0.0)
        for place in self.places:
            place.weights[...] = place.own(place.tensor)
        self._turn()

    def load_optimizer(self, optimizer: th.optim.Optimizer) -> None:
        """Fetch the optimiser's state."""
        self.steps = 0
        self.means.fill(0.0)
        self.squares.fill(0.0)
        for place in self.places:
            if optimizer.state.get(place.tensor):
                state = place.state(optimizer)
                self.steps = int(state["step"].item())
                place.means[...] = place.own(state["exp_avg"])
                place.squares[...] = place.own(state["exp_avg_sq"])

    def store(self, optimizer: th.optim.Optimizer) -> None:
        """Bring weights and optimiser's state back."""
        for place in self.places:
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
