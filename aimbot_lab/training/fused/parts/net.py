"""The arrays of a network of parts, as views of one array."""

from itertools import pairwise

import numpy as np

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.core.arrays import (
    DenseLayer,
    HeadLayer,
    KindLayout,
    LstmWeights,
    PartsNet,
    PartsNetworks,
    TurnedMemory,
    TurnedParts,
    TurnedUnits,
    UnitWeights,
)
from aimbot_lab.training.fused.parts.shape import (
    KindShape,
    PartsShape,
    kind_layouts,
    layout_of,
    width,
)

GATES = 4
USUAL = 2  # parts of a sort up to which compiled code is the same


class _Taker:
    """Gives the parts of an array one after the other; of no array only their sizes."""

    def __init__(self, flat: Floats | None) -> None:
        self._flat, self.taken = flat, 0

    def __call__(self, *size: int) -> Floats:
        count = int(np.prod(size))
        first, self.taken = self.taken, self.taken + count
        if self._flat is None:
            return np.broadcast_to(np.float32(0.0), size)
        return self._flat[first : first + count].reshape(size)

    def layer(self, below: int, units: int) -> DenseLayer:
        return DenseLayer(self(below, units), self(units))


def parts_size(shape: PartsShape) -> int:
    """P, how many weights there are, with those that are always 0."""
    take = _Taker(None)
    _views(shape, take)
    return take.taken


def parts_views(shape: PartsShape, flat: Floats) -> PartsNet:
    """The parts of `flat` [P]."""
    return _views(shape, _Taker(flat))


def _views(shape: PartsShape, take: _Taker) -> PartsNet:
    heads, core = shape.heads, width(shape.core)
    outputs, top = shape.outputs, width(shape.top)
    return PartsNet(
        scalars=_dense(shape.plain, shape.scalars, take),
        units=tuple(_unit_weights(kind, take) for kind in usual_kinds(shape)),
        memories=tuple(_lstm(shape, core, take, there=k < shape.memories) for k in range(USUAL)),
        layers=_head_layers(shape, take),
        action=take(outputs, top),
        action_bias=take(outputs),
        value=take(top),
        value_bias=take(1),
        log_std=take(heads.gaussians),
        nobody=take(shape.keys),
    )


def usual_kinds(shape: PartsShape) -> tuple[KindShape, ...]:
    """The kinds of units, and empty ones up to the usual number."""
    layers = tuple(0 for _ in shape.kinds[0].layers) if shape.kinds else ()
    nothing = KindShape(0, 0, layers, 0, 0, 0)
    return shape.kinds + (nothing,) * (USUAL - len(shape.kinds))


def dense_widths(inputs: int, layers: tuple[int, ...]) -> list[tuple[int, int]]:
    """(units below, units) of an empty layer, the layers, and empty ones up to the usual number."""
    sizes = pairwise((inputs, *map(whole_lanes, layers)))
    return [(0, 0), *sizes, *[(0, 0)] * (USUAL - len(layers))]


def _dense(inputs: int, layers: tuple[int, ...], take: _Taker) -> tuple[DenseLayer, ...]:
    return tuple(take.layer(*size) for size in dense_widths(inputs, layers))


def below_last(kind: KindShape) -> int:
    """Numbers that the last layer is given, in whole lanes."""
    return whole_lanes((kind.inputs, *kind.layers)[-1])


def above_last(kind: KindShape) -> int:
    """Numbers that the last layer gives: representation and key."""
    return whole_lanes(kind.size) + whole_lanes(kind.keys)


def _unit_weights(kind: KindShape, take: _Taker) -> UnitWeights:
    layers = _dense(kind.inputs, kind.layers, take)
    above = above_last(kind)
    return UnitWeights(layers, take(above, below_last(kind)), take(above))


def _lstm(shape: PartsShape, core: int, take: _Taker, *, there: bool) -> LstmWeights:
    units = shape.lanes if there else 0
    gates = GATES * units
    inputs = take(core if there else 0, gates)
    return LstmWeights(inputs, take(units, gates), take(gates), take(gates))


def head_widths(shape: PartsShape) -> list[tuple[int, int]]:
    """(units below, units) of each layer of actor and critic, and empty ones."""
    layers = shape.heads.layers
    sizes = pairwise((width(shape.bottom), *map(whole_lanes, layers)))
    return [*sizes, *[(0, 0)] * (USUAL - len(layers))]


def _head_layers(shape: PartsShape, take: _Taker) -> tuple[HeadLayer, ...]:
    return tuple(
        HeadLayer(take(2, below, units), take(2 * units)) for below, units in head_widths(shape)
    )


def new_parts_networks(shape: PartsShape, net: PartsNet) -> PartsNetworks:
    """Networks of these weights, not turned yet."""
    layouts = tuple(kind_layouts(shape))
    kinds = layouts + (KindLayout(0, 0, 0, 0, 0),) * (USUAL - len(layouts))
    return PartsNetworks(net, _turned(net), layout_of(shape), kinds, shape.heads.starts)


def _turned(net: PartsNet) -> TurnedParts:
    units = [
        TurnedUnits(tuple(_exchanged(layer.weights) for layer in one.layers), _exchanged(one.last))
        for one in net.units
    ]
    memories = [
        TurnedMemory(_exchanged(one.inputs), _exchanged(one.hidden), np.zeros_like(one.input_bias))
        for one in net.memories
    ]
    action = np.zeros((net.action.shape[1], whole_lanes(len(net.action))), np.float32)
    return TurnedParts(
        scalars=tuple(_exchanged(layer.weights) for layer in net.scalars),
        units=tuple(units),
        memories=tuple(memories),
        layers=tuple(
            np.zeros_like(layer.weights.swapaxes(1, 2), order="C") for layer in net.layers
        ),
        action=action,
    )


def _exchanged(weights: Floats) -> Floats:
    return np.zeros(weights.shape[::-1], np.float32)
