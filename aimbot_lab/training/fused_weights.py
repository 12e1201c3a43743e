"""The weights of an actor and a critic side by side in one array."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.blas import sgemm_address
from aimbot_lab.training.core.adam import AdamStep, adam_step
from aimbot_lab.training.core.parts import Floats, Layer, Net, Networks, Whole


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
    """How many weights there are."""
    below, total = shape.inputs, 0
    for units in shape.layers:
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

    layers, below = [], shape.inputs
    for units in shape.layers:
        layers.append(Layer(take(2 * units, below), take(2 * units)))
        below = units
    action, action_bias = take(shape.outputs, below), take(1, shape.outputs)
    return Net(tuple(layers), action, action_bias, take(1, below), take(1), take(shape.gaussians))


class FusedWeights:
    """A policy's weights and its optimiser's means in three arrays [P] of one order.

    Between two updates the policy and its optimiser hold the truth: `load` fetches it and
    `store` brings it back, in torch's own form.
    """

    def __init__(self, shape: NetShape, tensors: Sequence[th.Tensor]) -> None:
        size = net_size(shape)
        assert size == sum(tensor.numel() for tensor in tensors)
        self.weights, self.means, self.squares = np.zeros((3, size), np.float32)
        net = net_views(shape, self.weights)
        self.networks = Networks(net, shape.starts, shape.relu, sgemm_address())
        self.steps = 0  # of the optimiser so far
        self._tensors = tensors

    def load(self) -> None:
        """Fetch the weights."""
        for tensor, span in self._spans():
            self.weights[span] = _flat(tensor)

    def load_optimizer(self, optimizer: th.optim.Optimizer) -> None:
        """Fetch the optimiser's state."""
        self.steps = 0
        self.means.fill(0.0)
        self.squares.fill(0.0)
        for tensor, span in self._spans():
            state = optimizer.state.get(tensor)
            if state:
                self.steps = int(state["step"].item())
                self.means[span] = _flat(state["exp_avg"])
                self.squares[span] = _flat(state["exp_avg_sq"])

    def store(self, optimizer: th.optim.Optimizer) -> None:
        """Bring weights and optimiser's state back."""
        for tensor, span in self._spans():
            _flat(tensor)[:] = self.weights[span]
            if self.steps:
                state: dict[str, Any] = optimizer.state[tensor]
                if not state:
                    state["step"] = th.tensor(0.0)
                    state["exp_avg"] = th.zeros_like(tensor.data)
                    state["exp_avg_sq"] = th.zeros_like(tensor.data)
                state["step"].fill_(self.steps)
                _flat(state["exp_avg"])[:] = self.means[span]
                _flat(state["exp_avg_sq"])[:] = self.squares[span]

    def descend(self, gradient: Floats, optimizer: th.optim.Optimizer, *, max_norm: float) -> None:
        """Take Adam's step against `gradient` [P], whose norm is cut down to `max_norm`."""
        group = optimizer.param_groups[0]
        one, two = group["betas"]
        self.steps += 1
        with np.errstate(over="ignore", invalid="ignore"):
            norm = math.sqrt(float(np.dot(gradient, gradient)))
        numbers = (
            min(1.0, max_norm / (norm + 1e-6)),
            1.0 - one,
            two,
            1.0 - two,
            group["lr"] / (1.0 - one**self.steps),
            math.sqrt(1.0 - two**self.steps),
            group["eps"],
        )
        step = AdamStep(*map(np.float32, numbers))
        adam_step(self.weights, gradient, self.means, self.squares, step)

    def _spans(self) -> Iterator[tuple[th.Tensor, slice]]:
        start = 0
        for tensor in self._tensors:
            yield tensor, slice(start, start + tensor.numel())
            start += tensor.numel()


def _flat(tensor: th.Tensor) -> Floats:
    """The tensor's own memory [P]."""
    array: Floats = tensor.detach().view(-1).numpy()
    return array
