"""A memory: one layer of long short-term memory, and what a policy remembers in a rollout."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch as th
from torch import nn
from torch.nn import functional


class MemoryShape(NamedTuple):
    """How large a policy's memory is, and how it is learned."""

    size: int  # H
    length: int  # L, steps of a chunk through which gradients flow
    burn_in: int = 0  # steps before a chunk that are run first, without gradient
    own_critic: bool = False  # whether the critic has a memory of its own

    @property
    def parts(self) -> int:
        """S, arrays [H] of a state: hidden and cell, of the actor and, where it has one, critic."""
        return 4 if self.own_critic else 2


class Lstm(nn.Module):
    """PyTorch's LSTM cell, gates i f g o; the forget gates' bias is 1 at first.

    Hochreiter & Schmidhuber 1997; the bias is that of Jozefowicz et al. 2015, as in ML-Agents.
    """

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs, size)
        with th.no_grad():
            self.cell.bias_ih[size : 2 * size] = 1.0
            self.cell.bias_hh[size : 2 * size] = 0.0

    def forward(
        self, inputs: th.Tensor, state: th.Tensor, starts: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor]:
        """(outputs [L, N, H], state after them [N, 2, H]) of `inputs` [L, N, I].

        `state` [N, 2, H] are hidden and cell before; where `starts` [L, N] is 1 an episode begins
        and both are 0 before that step.
        """
        cell = self.cell
        gates = functional.linear(inputs, cell.weight_ih, cell.bias_ih + cell.bias_hh)
        hidden, memory = state.unbind(dim=1)
        kept, outputs = (1.0 - starts).unsqueeze(2), []
        for step, given in enumerate(gates):
            recurrent = functional.linear(hidden * kept[step], cell.weight_hh)
            i, f, g, o = (given + recurrent).chunk(4, dim=1)
            new = th.sigmoid(i) * th.tanh(g)
            memory = th.sigmoid(f) * (memory * kept[step]) + new
            hidden = th.sigmoid(o) * th.tanh(memory)
            outputs.append(hidden)
        return th.stack(outputs), th.stack([hidden, memory], dim=1)


class WarmUp(NamedTuple):
    """Steps before chunks, which are run without gradient: L of `rows` [R] of a minibatch."""

    rows: th.Tensor
    observations: th.Tensor  # [R * L, D]
    starts: th.Tensor  # [L, R]


class Chunks(NamedTuple):
    """What the memory needs of a minibatch of N chunks of L steps, beside its samples."""

    state: th.Tensor  # [N, S, H] where the warm-up begins, or the chunk
    starts: th.Tensor  # [L, N] 1 where an episode begins
    warm_up: tuple[WarmUp, ...] = ()


class RolloutMemory:
    """The state [B, S, H] of every row, and copies of it from where each chunk began."""

    def __init__(self, parts: int, size: int, *, length: int) -> None:
        self._form, self._length = (parts, size), length
        self.state: th.Tensor | None = None
        self.kept: list[th.Tensor] = []  # [B, S, H] as it was at each chunk's first step
        self.cut_off: deque[int] = deque()  # rows whose last observation is valued next
        self._steps = 0
        self._starts: Callable[[], np.ndarray] | None = None

    def begin(self, starts: Callable[[], np.ndarray]) -> None:
        """Begin a rollout; `starts` gives where an episode begins now [B]."""
        self.kept, self._steps, self._starts = [], 0, starts
        self.cut_off.clear()

    def starts(self, rows: int, device: th.device) -> th.Tensor:
        """[1, B] 1 where an episode begins with the present observations; everywhere at first."""
        if self._starts is None:
            return th.ones(1, rows, device=device)
        return th.as_tensor(self._starts(), dtype=th.float32, device=device).reshape(1, rows)

    def before(self, rows: int, device: th.device) -> th.Tensor:
        """The state [B, S, H] before a step, kept where a chunk begins with it."""
        if self.state is None or len(self.state) != rows:
            self.state = self.empty(rows, device)
        if self._steps % self._length == 0:
            self.kept.append(self.state)
        self._steps += 1
        return self.state

    def empty(self, rows: int, device: th.device) -> th.Tensor:
        """The state of so many rows that remember nothing."""
        return th.zeros(rows, *self._form, device=device)
