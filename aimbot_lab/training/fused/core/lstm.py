"""A memory forward and backward through the steps of a piece (Hochreiter & Schmidhuber 1997).

PyTorch's equations: i, f, o = sigmoid and g = tanh of the gates, c = f c' + i g, h = o tanh(c),
where c' and h' of the step before are 0 where an episode begins. The products of all inputs are
one, those of the recurrence one a step, and the weights' derivatives one each over the piece.
"""

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import exp, tanh
from aimbot_lab.foundation.kernels.jit import late_called, late_inlined
from aimbot_lab.foundation.kernels.matmul import multiply
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    LstmWeights,
    Net,
    Networks,
    SequenceArrays,
    TurnedMemory,
    Workspace,
)
from aimbot_lab.training.fused.core.layers import add_rows, sum_of_rows

ZERO, ONE, MOST = np.float32(0.0), np.float32(1.0), np.float32(80.0)


@late_inlined
def sigmoid(x: np.float32) -> np.float32:
    """1 / (1 + e**-x)."""
    value: np.float32 = ONE / (ONE + exp(min(-x, MOST)))
    return value


@late_inlined
def open_gates(gates: Floats, recurrent: Floats, bias: Floats) -> None:
    """Turn a sample's `gates` [4 H] into their values; `recurrent` and `bias` [4 H] are added."""
    size = gates.size // 4
    for k in range(gates.size):
        gates[k] += recurrent[k] + bias[k]
    both, new, out = gates[: 2 * size], gates[2 * size : 3 * size], gates[3 * size :]
    for k in range(2 * size):
        both[k] = sigmoid(both[k])
    for k in range(size):
        new[k] = tanh(new[k])
    for k in range(size):
        out[k] = sigmoid(out[k])


@late_called
def step_forward(lstm: LstmWeights, bias: Floats, sequence: SequenceArrays, first: int) -> None:
    """The step whose samples begin with `first`; its gates hold the products of the inputs."""
    rows, size = sequence.cells.shape
    multiply(sequence.hidden_before[first : first + rows], lstm.hidden, sequence.recurrent)
    for row in range(rows):
        n = first + row
        gates, cells = sequence.gates[n], sequence.cells[row]
        open_gates(gates, sequence.recurrent[row], bias)
        come, stay, new, out = (
            gates[:size],
            gates[size : 2 * size],
            gates[2 * size : 3 * size],
            gates[3 * size :],
        )
        before, squashed, hidden = (
            sequence.cells_before[n],
            sequence.squashed[n],
            sequence.hidden[n],
        )
        for k in range(size):
            cells[k] = stay[k] * before[k] + come[k] * new[k]
        for k in range(size):
            squashed[k] = tanh(cells[k])
        for k in range(size):
            hidden[k] = out[k] * squashed[k]


@late_inlined
def carry_over(sequence: SequenceArrays, first: int) -> None:
    """Give the step whose samples begin with `first` what the step before has left."""
    rows, size = sequence.cells.shape
    for row in range(rows):
        n = first + row
        kept, hidden, cells = sequence.kept[n], sequence.hidden[n - rows], sequence.cells[row]
        hidden_before, cells_before = sequence.hidden_before[n], sequence.cells_before[n]
        for k in range(size):
            hidden_before[k] = hidden[k] * kept
        for k in range(size):
            cells_before[k] = cells[k] * kept


@late_called
def steps_forward(
    lstm: LstmWeights, turned: TurnedMemory, core: Floats, sequence: SequenceArrays
) -> None:
    """From the core [N, C], and what the first step is given, to a memory's outputs."""
    multiply(core, lstm.inputs, sequence.gates)
    rows = sequence.cells.shape[0]
    for first in range(0, sequence.gates.shape[0], rows):
        if first > 0:
            carry_over(sequence, first)
        step_forward(lstm, turned.bias, sequence, first)


@late_called
def remember(networks: Networks, workspace: Workspace) -> None:
    """From the core, and what the first step is given, to the outputs of all memories."""
    for number in range(networks.layout.memories):
        steps_forward(
            networks.net.memories[number],
            networks.turned.memories[number],
            workspace.core,
            workspace.memories[number],
        )


@late_called
def step_backward(sequence: SequenceArrays, first: int) -> None:
    """Turn the gates of the step that begins with `first` into the loss's derivatives.

    Adds to the derivatives by its outputs what the later step has left, and leaves those by the
    cells that the step was given; none pass where an episode begins.
    """
    rows, size = sequence.cells.shape
    for row in range(rows):
        n = first + row
        gates, squashed, kept = sequence.gates[n], sequence.squashed[n], sequence.kept[n]
        come, stay, new, out = (
            gates[:size],
            gates[size : 2 * size],
            gates[2 * size : 3 * size],
            gates[3 * size :],
        )
        of_hidden, of_next, of_cells = (
            sequence.of_hidden[n],
            sequence.of_next[row],
            sequence.of_cells[row],
        )
        before = sequence.cells_before[n]
        for k in range(size):
            of_hidden[k] += of_next[k]
        for k in range(size):
            of_cells[k] += of_hidden[k] * out[k] * (ONE - squashed[k] * squashed[k])
        for k in range(size):
            out[k] = of_hidden[k] * squashed[k] * out[k] * (ONE - out[k])
        for k in range(size):
            given, value = come[k], new[k]
            come[k] = of_cells[k] * value * given * (ONE - given)
            new[k] = of_cells[k] * given * (ONE - value * value)
        for k in range(size):
            share, of_cell = stay[k], of_cells[k]
            stay[k] = of_cell * before[k] * share * (ONE - share)
            of_cells[k] = of_cell * share * kept


@late_called
def steps_backward(
    turned: TurnedMemory,
    core: Floats,
    sequence: SequenceArrays,
    of: LstmWeights,
    of_core: Floats,
) -> None:
    """From the derivatives by a memory's outputs to those by its weights and by the core."""
    gates, rows = sequence.gates, sequence.cells.shape[0]
    sequence.of_next[:] = ZERO
    sequence.of_cells[:] = ZERO
    for first in range(gates.shape[0] - rows, -1, -rows):
        step_backward(sequence, first)
        if first > 0:
            multiply(gates[first : first + rows], turned.hidden, sequence.of_next)
            for row in range(rows):
                of_next, kept = sequence.of_next[row], sequence.kept[first + row]
                for k in range(of_next.size):
                    of_next[k] *= kept
    multiply(sequence.hidden_before.T, gates, of.hidden)
    multiply(core.T, gates, of.inputs)
    sum_of_rows(gates, of.input_bias)
    for k in range(gates.shape[1]):
        of.hidden_bias[k] = of.input_bias[k]
    multiply(gates, turned.inputs, of_core)


@late_called
def remember_backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """From the derivatives by the outputs of memories to those by their weights and by the core."""
    memories = networks.layout.memories
    for number in range(memories):
        steps_backward(
            networks.turned.memories[number],
            workspace.core,
            workspace.memories[number],
            of.memories[number],
            workspace.of_core if number == 0 else workspace.more_of_core,
        )
    if memories == 2:
        add_rows(workspace.more_of_core, workspace.of_core)


@late_inlined
def copy_state(state: Floats, out: Floats) -> None:
    """Write `state` [S, H] to `out`."""
    for k in range(state.shape[0]):
        for unit in range(state.shape[1]):
            out[k, unit] = state[k, unit]


@late_inlined
def give_states(networks: Networks, workspace: Workspace) -> None:
    """Give the first step of each row what is carried to it, 0 where an episode begins."""
    for number in range(networks.layout.memories):
        sequence = workspace.memories[number]
        for row in range(sequence.cells.shape[0]):
            kept, state = sequence.kept[row], workspace.carried[row]
            hidden, cells = state[2 * number], state[2 * number + 1]
            hidden_before, cells_before = sequence.hidden_before[row], sequence.cells_before[row]
            for k in range(hidden.size):
                hidden_before[k] = hidden[k] * kept
            for k in range(hidden.size):
                cells_before[k] = cells[k] * kept


@late_inlined
def take_states(networks: Networks, workspace: Workspace, row: int) -> None:
    """Carry on what `row` has after the last step."""
    for number in range(networks.layout.memories):
        sequence = workspace.memories[number]
        last = sequence.hidden.shape[0] - sequence.cells.shape[0]
        state, hidden, cells = (
            workspace.carried[row],
            sequence.hidden[last + row],
            sequence.cells[row],
        )
        for k in range(hidden.size):
            state[2 * number, k] = hidden[k]
            state[2 * number + 1, k] = cells[k]
