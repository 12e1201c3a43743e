"""The core forward and backward: plain columns through their layers, then each kind of units."""

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.matmul import multiply
from aimbot_lab.training.fused.core.layers import activate, through_activation
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.core.arrays import PartsNet, PartsNetworks, PartsWorkspace
from aimbot_lab.training.fused.parts.core.units import encode_units, take_units, units_backward


@inlined
def take_inputs(whole: PartsNetworks, workspace: PartsWorkspace, row: Floats, n: int) -> None:
    """Write what the networks are shown of `row` of a rollout to sample `n`.

    Samples must be taken in order, because only units that are seen have a place.
    """
    inputs = workspace.samples.inputs[n]
    for column in range(inputs.size):
        inputs[column] = row[column]
    for number in range(whole.layout.kinds):
        take_units(row, n, whole.kinds[number], workspace.kinds[number])


@inlined
def put_beside(columns: Floats, core: Floats, first: int) -> None:
    """Write `columns` [N, W] to those of `core` from `first` on."""
    for n in range(columns.shape[0]):
        row, out = columns[n], core[n]
        for k in range(row.size):
            out[first + k] = row[k]


@called
def encode(whole: PartsNetworks, workspace: PartsWorkspace) -> None:
    """From the inputs to the core."""
    layout, net, scalars = whole.layout, whole.net, workspace.scalars
    for number in range(1, layout.scalar_layers + 1):
        layer = net.scalars[number]
        multiply(scalars[number - 1], layer.weights, scalars[number])
        activate(scalars[number], layer.bias, layout.relu)
    put_beside(scalars[layout.scalar_layers], workspace.core, 0)
    for number in range(layout.kinds):
        arrays, kind = workspace.kinds[number], whole.kinds[number]
        encode_units(
            net.units[number],
            whole.turned.units[number],
            arrays,
            layout.unit_layers,
            layout.relu,
        )
        put_beside(arrays.pooled, workspace.core, kind.core)


@inlined
def scalars_backward(whole: PartsNetworks, workspace: PartsWorkspace, of: PartsNet) -> None:
    """Write to `of` the derivatives by the layers of the plain columns."""
    layout, scalars, top = whole.layout, workspace.scalars, whole.layout.scalar_layers
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
            multiply(slopes, whole.turned.scalars[number], workspace.of_scalars[number - 1])


@called
def encode_backward(whole: PartsNetworks, workspace: PartsWorkspace, of: PartsNet) -> None:
    """From the derivatives by core and keys to those by the encoders' weights."""
    layout = whole.layout
    if layout.scalar_layers > 0:
        scalars_backward(whole, workspace, of)
    for number in range(layout.kinds):
        units_backward(
            whole.net.units[number],
            whole.turned.units[number],
            workspace.kinds[number],
            (workspace.of_core, whole.kinds[number].core),
            of.units[number],
            layout.unit_layers,
            layout.relu,
        )
