"""Layers forwards and backwards: dense ones, encoders of units, the LSTM.

Shapes: N samples, U units of a layer. Gradients are those of the loss.

Plain columns go through the core's layers, then each kind of units through its own. All units of a
kind have the same weights, and only units that are seen take part. The last layer's output is split
into representation and key; a kind's representation is the largest of each number over its units
(Ye et al. 2020), and 0 where none is seen. The activation rises, so it is taken of the largest
alone, and the way back leads to the unit that had it.

A memory goes through the steps of a piece (Hochreiter & Schmidhuber 1997) by PyTorch's equations:
i, f, o = sigmoid and g = tanh of the gates, c = f c' + i g, h = o tanh(c), where c' and h' of the
step before are 0 where an episode begins. The products of all inputs are one, those of the
recurrence one a step, and the weights' derivatives one each over the piece.
"""

import numpy as np

from aimbot_lab.foundation.kernels.jit import late_called, late_inlined
from aimbot_lab.foundation.kernels.lanes import add_multiple, exp, multiply, tanh
from aimbot_lab.training.fused.core.arrays import (
    HALF,
    ONE,
    ZERO,
    Floats,
    KindArrays,
    KindLayout,
    LstmWeights,
    Net,
    Networks,
    Places,
    SequenceArrays,
    TurnedMemory,
    TurnedUnits,
    UnitWeights,
    Workspace,
)


@late_inlined
def activate(outputs: Floats, bias: Floats, relu: bool) -> None:
    """Add `bias` [U] to the first U columns of `outputs` and take ReLU or tanh; NaN stays NaN."""
    for row in range(outputs.shape[0]):
        if relu:
            for unit in range(bias.size):
                value = outputs[row, unit] + bias[unit]
                outputs[row, unit] = ZERO if value <= ZERO else value
        else:
            for unit in range(bias.size):
                outputs[row, unit] = tanh(outputs[row, unit] + bias[unit])


@late_inlined
def through_activation(gradients: Floats, outputs: Floats, of_bias: Floats, relu: bool) -> None:
    """Turn `gradients` [N, U] by `outputs` into those by what was activated.

    Their sum over samples is written to `of_bias` [U].
    """
    of_bias[:] = ZERO
    for row in range(outputs.shape[0]):
        if relu:
            for unit in range(outputs.shape[1]):
                value = gradients[row, unit] if outputs[row, unit] > ZERO else ZERO
                gradients[row, unit] = value
                of_bias[unit] += value
        else:
            for unit in range(outputs.shape[1]):
                value = gradients[row, unit] * (ONE - outputs[row, unit] * outputs[row, unit])
                gradients[row, unit] = value
                of_bias[unit] += value


@late_inlined
def spread(gradients: Floats, weights: Floats, out: Floats) -> None:
    """Write to `out` [N, U] the gradients by the inputs of one unit with `weights` [U].

    `gradients` [N] are those by its output.
    """
    for row in range(out.shape[0]):
        for unit in range(out.shape[1]):
            out[row, unit] = gradients[row] * weights[unit]


@late_inlined
def sum_of_rows(rows: Floats, total: Floats) -> None:
    """Write to `total` [W] the sum of `rows` [N, W]."""
    total[:] = ZERO
    for n in range(rows.shape[0]):
        row = rows[n]
        for k in range(total.size):
            total[k] += row[k]


@late_inlined
def add_rows(rows: Floats, total: Floats) -> None:
    """Add `rows` [N, W] to `total` [N, W]."""
    for n in range(rows.shape[0]):
        row, out = rows[n], total[n]
        for k in range(out.size):
            out[k] += row[k]


@late_inlined
def turn(weights: Floats, out: Floats) -> None:
    """Write `weights` to `out` with rows and columns exchanged; `out` may have more of both."""
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            out[column, row] = weights[row, column]


@late_inlined
def take_units(row: Floats, n: int, kind: KindLayout, arrays: KindArrays) -> None:
    """Append the units that are seen in `row` of a rollout, which becomes sample `n`.

    What stands in other slots is not read.
    """
    unit = arrays.first[n] if n > 0 else 0
    seen = kind.column + kind.slots * kind.inputs
    for slot in range(kind.slots):
        if row[seen + slot] > HALF:
            inputs, at = arrays.layers[0][unit], kind.column + slot * kind.inputs
            for k in range(kind.inputs):
                inputs[k] = row[at + k]
            arrays.slots[unit] = slot
            unit += 1
    arrays.first[0] = 0
    arrays.first[n + 1] = unit


@late_inlined
def keep_larger(values: Floats, unit: np.int32, largest: Floats, best: Places) -> None:
    """Where `values` [E or more] of `unit` are larger than the `largest` [E], they take over."""
    for k in range(largest.size):
        value = values[k]
        more = value > largest[k]
        best[k] = unit if more else best[k]
        largest[k] = value if more else largest[k]


@late_inlined
def pool(arrays: KindArrays, bias: Floats, relu: bool) -> None:
    """Write `pooled` and `best` from the representations; `bias` [E or more]."""
    for n in range(arrays.pooled.shape[0]):
        largest, best = arrays.pooled[n], arrays.best[n]
        first, last = arrays.first[n], arrays.first[n + 1]
        if first == last:
            largest[:] = ZERO
        else:
            for k in range(largest.size):
                largest[k] = arrays.outputs[first, k]
                best[k] = np.int32(first)
            for unit in range(first + 1, last):
                keep_larger(arrays.outputs[unit], np.int32(unit), largest, best)
            for k in range(largest.size):
                value = largest[k] + bias[k]
                if relu:
                    largest[k] = ZERO if value <= ZERO else value
                else:
                    largest[k] = tanh(value)


@late_called
def encode_units(
    weights: UnitWeights, turned: TurnedUnits, arrays: KindArrays, depth: int, relu: bool
) -> None:
    """From the inputs of a piece's units to their keys, and what is pooled of each sample."""
    samples, size = arrays.pooled.shape
    count = arrays.first[samples]
    for number in range(1, depth + 1):
        layer, out = weights.layers[number], arrays.layers[number][:count]
        given = arrays.layers[number - 1][:count, : layer.weights.shape[0]]
        multiply(given, layer.weights, out)
        activate(out, layer.bias, relu)
    multiply(arrays.layers[depth][:count], turned.last, arrays.outputs[:count])
    for unit in range(count):
        keys = arrays.outputs[unit]
        for k in range(size, keys.size):
            keys[k] += weights.last_bias[k]
    pool(arrays, weights.last_bias, relu)


@late_inlined
def through_pool(
    of_core: Floats, column: int, arrays: KindArrays, of_bias: Floats, relu: bool
) -> None:
    """Write `of_pooled`, by what is activated, from the derivatives by the core from `column` on.

    Their sum over samples is written to `of_bias` [E or more].
    """
    of_bias[:] = ZERO
    for n in range(arrays.pooled.shape[0]):
        pooled, of_pooled, above = arrays.pooled[n], arrays.of_pooled[n], of_core[n]
        none = arrays.first[n] == arrays.first[n + 1]
        for k in range(pooled.size):
            if relu:
                value = above[column + k] if pooled[k] > ZERO else ZERO
            else:
                value = above[column + k] * (ONE - pooled[k] * pooled[k])
            value = ZERO if none else value
            of_pooled[k] = value
            of_bias[k] += value


@late_inlined
def through_best(arrays: KindArrays, weights: UnitWeights, of: UnitWeights, depth: int) -> None:
    """Add to the derivatives of the last layer, and by its inputs, those of what was pooled."""
    below, of_below = arrays.layers[depth], arrays.of_layers[depth]
    for n in range(arrays.pooled.shape[0]):
        for k in range(arrays.pooled.shape[1]):
            slope = arrays.of_pooled[n, k]
            if slope != ZERO:
                unit = arrays.best[n, k]
                add_multiple(below[unit], slope, of.last[k])
                if depth > 0:
                    add_multiple(weights.last[k], slope, of_below[unit])


@late_called
def units_backward(
    weights: UnitWeights,
    turned: TurnedUnits,
    arrays: KindArrays,
    above: tuple[Floats, int],
    of: UnitWeights,
    depth: int,
    relu: bool,
) -> None:
    """Write to `of` the derivatives, from those by the keys and by the core.

    `above`: derivatives by the core [N, C], and the column where this kind's begin.
    """
    size, count = arrays.pooled.shape[1], arrays.first[arrays.pooled.shape[0]]
    below, of_below = arrays.layers[depth][:count], arrays.of_layers[depth]
    through_pool(above[0], above[1], arrays, of.last_bias, relu)
    of.last[:size] = ZERO
    if arrays.of_keys.shape[1] > 0:
        of_keys = arrays.of_keys[:count]
        multiply(of_keys.T, below, of.last[size:])
        sum_of_rows(of_keys, of.last_bias[size:])
        if depth > 0:
            multiply(of_keys, weights.last[size:], of_below[:count])
    elif depth > 0:
        of_below[:count] = ZERO
    through_best(arrays, weights, of, depth)
    for number in range(depth, 0, -1):
        layer, slopes = of.layers[number], arrays.of_layers[number][:count]
        through_activation(slopes, arrays.layers[number][:count], layer.bias, relu)
        given = arrays.layers[number - 1][:count, : layer.weights.shape[0]]
        multiply(given.T, slopes, layer.weights)
        if number > 1:
            multiply(slopes, turned.layers[number], arrays.of_layers[number - 1][:count])


@late_inlined
def put_beside(columns: Floats, core: Floats, first: int) -> None:
    """Write `columns` [N, W] to those of `core` from `first` on."""
    for n in range(columns.shape[0]):
        row, out = columns[n], core[n]
        for k in range(row.size):
            out[first + k] = row[k]


@late_called
def encode(networks: Networks, workspace: Workspace) -> None:
    """From the inputs to the core."""
    layout, net, scalars = networks.layout, networks.net, workspace.scalars
    for number in range(1, layout.scalar_layers + 1):
        layer = net.scalars[number]
        multiply(scalars[number - 1], layer.weights, scalars[number])
        activate(scalars[number], layer.bias, layout.relu)
    put_beside(scalars[layout.scalar_layers], workspace.core, 0)
    for number in range(layout.kinds):
        arrays, kind = workspace.kinds[number], networks.kinds[number]
        encode_units(
            net.units[number],
            networks.turned.units[number],
            arrays,
            layout.unit_layers,
            layout.relu,
        )
        put_beside(arrays.pooled, workspace.core, kind.core)


@late_inlined
def scalars_backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """Write to `of` the derivatives by the layers of the plain columns."""
    layout, scalars, top = networks.layout, workspace.scalars, networks.layout.scalar_layers
    above = workspace.of_scalars[top]
    for n in range(above.shape[0]):
        row, given = above[n], workspace.of_core[n]
        for k in range(row.size):
            row[k] = given[k]
    for number in range(top, 0, -1):
        layer, slopes = of.scalars[number], workspace.of_scalars[number]
        through_activation(slopes, scalars[number], layer.bias, layout.relu)
        multiply(scalars[number - 1].T, slopes, layer.weights)
        if number > 1:
            multiply(slopes, networks.turned.scalars[number], workspace.of_scalars[number - 1])


@late_called
def encode_backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """From the derivatives by core and keys to those by the encoders' weights."""
    layout = networks.layout
    if layout.scalar_layers > 0:
        scalars_backward(networks, workspace, of)
    for number in range(layout.kinds):
        units_backward(
            networks.net.units[number],
            networks.turned.units[number],
            workspace.kinds[number],
            (workspace.of_core, networks.kinds[number].core),
            of.units[number],
            layout.unit_layers,
            layout.relu,
        )


MOST = np.float32(80.0)


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
