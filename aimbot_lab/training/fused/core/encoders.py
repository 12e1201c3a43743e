"""The core forward and backward: plain columns through their layers, then each kind of units.

All units of a kind have the same weights, and only units that are seen take part. The last layer's
output is split into representation and key; a kind's representation is the largest of each number
over its units (Ye et al. 2020), and 0 where none is seen. The activation rises, so it is taken of
the largest alone, and the way back leads to the unit that had it.
"""

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import tanh
from aimbot_lab.foundation.kernels.jit import late_called, late_inlined
from aimbot_lab.foundation.kernels.matmul import add_multiple, multiply
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    KindArrays,
    KindLayout,
    Net,
    Networks,
    Places,
    TurnedUnits,
    UnitWeights,
    Workspace,
)
from aimbot_lab.training.fused.core.layers import activate, sum_of_rows, through_activation

ZERO, ONE, HALF = np.float32(0.0), np.float32(1.0), np.float32(0.5)


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
