"""A memory: one layer of long short-term memory, stepped with resets where episodes begin."""

from typing import NamedTuple

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
