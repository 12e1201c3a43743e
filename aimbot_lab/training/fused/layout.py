"""Where the numbers of a network lie in flat arrays, and what threads work in."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.lanes import whole_lanes
from aimbot_lab.foundation.kernels.threads import SPIN_LIMIT, STRIDE, SyncFlags
from aimbot_lab.training.fused.core.arrays import (
    DenseLayer,
    Floats,
    Head,
    HeadLayer,
    KindArrays,
    KindLayout,
    Layout,
    LearnThread,
    LstmWeights,
    Net,
    Networks,
    PieceQueue,
    Samples,
    SequenceArrays,
    Turned,
    TurnedMemory,
    TurnedUnits,
    UnitWeights,
    Whole,
    Workspace,
)

GATES = 4
USUAL = 2  # parts of a sort up to which compiled code is the same
DEEP = 3  # the same, of actor's and critic's layers

Block = tuple[slice, slice]
"""Columns of a tensor of the policy, and the same ones where whole lanes are used."""
Index = tuple[slice, ...]
WHOLE = slice(None)


class HeadShape(NamedTuple):
    """Sizes of actor and critic, which have equal layers, and of what they are given and give."""

    inputs: int  # F columns of a rollout's row
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


class KindShape(NamedTuple):
    """Sizes of the encoder of a kind of units."""

    slots: int
    inputs: int  # numbers that are known of a unit
    layers: tuple[int, ...]  # units of hidden layers
    size: int  # of the representation
    keys: int  # numbers of a key; 0: none of these units may be a target
    target: int  # the choice of the target that is the first slot

    @property
    def columns(self) -> int:
        """Numbers of a rollout's row: of each unit, and who is seen."""
        return self.slots * (self.inputs + 1)


class NetworkShape(NamedTuple):
    """Sizes of a policy's parts."""

    heads: HeadShape
    plain: int  # columns that belong to no unit
    scalars: tuple[int, ...]  # units of each layer of these
    kinds: tuple[KindShape, ...]
    memories: int  # 0, 1 of actor and critic, or 2: one of each
    size: int  # units of a memory
    length: int  # L steps of a chunk, 1 without a memory
    warm_up: int  # chunks before each that are run first
    choices: int  # of the target, 0 without one
    target: int  # the row of the logits where they begin

    @property
    def encodes(self) -> bool:
        """Whether there are encoders that learn."""
        return bool(self.scalars or self.kinds)

    @property
    def has_parts_below(self) -> bool:
        """Whether parts below actor and critic learn, for which derivatives must reach them."""
        return self.encodes or self.memories > 0

    @property
    def bare(self) -> bool:
        """Whether there are no parts beside the layers of actor and critic."""
        return not (self.has_parts_below or self.choices)

    @property
    def targets(self) -> int:
        """Choices of the target where keys are scored, else 0."""
        return self.choices if self.keys else 0

    @property
    def keys(self) -> int:
        """Numbers of a key, in whole lanes."""
        return whole_lanes(max((kind.keys for kind in self.kinds), default=0))

    @property
    def lanes(self) -> int:
        """H, a memory's units in whole lanes."""
        return whole_lanes(self.size)

    @property
    def states(self) -> int:
        """S, arrays of what a row remembers."""
        return 2 * self.memories

    @property
    def core_columns(self) -> int:
        """D, numbers that the encoders give."""
        return self.plain if self.bare else width(self.core)

    @property
    def core(self) -> tuple[Block, ...]:
        """The blocks of the core: scalars, then each kind's representation."""
        sizes = ((self.plain, *self.scalars)[-1], *(kind.size for kind in self.kinds))
        return blocks_of(sizes)

    @property
    def bottom(self) -> tuple[Block, ...]:
        """The blocks of what actor and critic are given."""
        return blocks_of((self.size,)) if self.memories else self.core

    @property
    def top(self) -> tuple[Block, ...]:
        """The blocks of what leaves their last layers."""
        layers = self.heads.layers
        return blocks_of(layers[-1:]) if layers else self.bottom

    @property
    def outputs(self) -> int:
        """Rows of the action's layer: logits and means, then the query."""
        return self.heads.outputs + self.keys


def blocks_of(sizes: Sequence[int]) -> tuple[Block, ...]:
    """Blocks of `sizes` columns side by side."""
    made: list[Block] = []
    theirs = ours = 0
    for size in sizes:
        made.append((slice(theirs, theirs + size), slice(ours, ours + size)))
        theirs, ours = theirs + size, ours + whole_lanes(size)
    return tuple(made)


def width(blocks: Sequence[Block]) -> int:
    """Columns of blocks where whole lanes are used."""
    return sum(whole_lanes(ours.stop - ours.start) for _, ours in blocks)


def layout_of(shape: NetworkShape) -> Layout:
    """Which parts there are."""
    return Layout(
        bare=shape.bare,
        encodes=shape.encodes,
        has_parts_below=shape.has_parts_below,
        plain=shape.plain,
        shown=shape.heads.inputs,
        scalar_layers=len(shape.scalars),
        unit_layers=len(shape.kinds[0].layers) if shape.kinds else 0,
        kinds=len(shape.kinds),
        memories=shape.memories,
        layers=len(shape.heads.layers),
        relu=shape.heads.relu,
        targets=shape.targets,
        target=shape.target,
    )


def kind_layouts(shape: NetworkShape) -> Iterator[KindLayout]:
    """Where each kind of units is in a rollout's row and in the core."""
    column = shape.plain
    for kind, (_, core) in zip(shape.kinds, shape.core[1:], strict=True):
        target = kind.target if kind.keys else 0
        yield KindLayout(column, kind.slots, kind.inputs, core.start, target)
        column += kind.columns


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


def net_size(shape: NetworkShape) -> int:
    """P, how many weights there are, with those that are always 0."""
    take = _Taker(None)
    _views(shape, take)
    return take.taken


def net_views(shape: NetworkShape, flat: Floats) -> Net:
    """The parts of `flat` [P]."""
    return _views(shape, _Taker(flat))


def _views(shape: NetworkShape, take: _Taker) -> Net:
    heads, core = shape.heads, shape.core_columns
    outputs, top = shape.outputs, width(shape.top)
    return Net(
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


def usual_kinds(shape: NetworkShape) -> tuple[KindShape, ...]:
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


def _lstm(shape: NetworkShape, core: int, take: _Taker, *, there: bool) -> LstmWeights:
    units = shape.lanes if there else 0
    gates = GATES * units
    inputs = take(core if there else 0, gates)
    return LstmWeights(inputs, take(units, gates), take(gates), take(gates))


def head_widths(shape: NetworkShape) -> list[tuple[int, int]]:
    """(units below, units) of each layer of actor and critic, and empty ones."""
    below = shape.plain if shape.bare else width(shape.bottom)
    sizes = pairwise((below, *map(whole_lanes, shape.heads.layers)))
    return [*sizes, *[(0, 0)] * (DEEP - len(shape.heads.layers))]


def _head_layers(shape: NetworkShape, take: _Taker) -> tuple[HeadLayer, ...]:
    sizes = [((2, below, units), 2 * units) for below, units in head_widths(shape)]
    if shape.bare:
        sizes[0] = (1, shape.plain, sizes[0][1]), sizes[0][1]
    return tuple(HeadLayer(take(*weights), take(bias)) for weights, bias in sizes)


def new_networks(shape: NetworkShape, net: Net) -> Networks:
    """Networks of these weights, not turned yet."""
    layouts = tuple(kind_layouts(shape))
    kinds = layouts + (KindLayout(0, 0, 0, 0, 0),) * (USUAL - len(layouts))
    return Networks(net, _turned(net), layout_of(shape), kinds, shape.heads.starts)


def _turned(net: Net) -> Turned:
    units = [
        TurnedUnits(tuple(_exchanged(layer.weights) for layer in one.layers), _exchanged(one.last))
        for one in net.units
    ]
    memories = [
        TurnedMemory(_exchanged(one.inputs), _exchanged(one.hidden), np.zeros_like(one.input_bias))
        for one in net.memories
    ]
    action = np.zeros((net.action.shape[1], whole_lanes(len(net.action))), np.float32)
    layers = [layer.weights.swapaxes(1, 2).shape for layer in net.layers]
    layers = [size if size[0] == 2 else (0, 0, 0) for size in layers]
    return Turned(
        scalars=tuple(_exchanged(layer.weights) for layer in net.scalars),
        units=tuple(units),
        memories=tuple(memories),
        layers=tuple(np.zeros(size, np.float32) for size in layers),
        action=action,
    )


def _exchanged(weights: Floats) -> Floats:
    return np.zeros(weights.shape[::-1], np.float32)


class View(NamedTuple):
    """A part of a tensor of a policy, as a `Net` has it."""

    part: Index
    weights: Floats  # of the shape of this part


def tensor_views(shape: NetworkShape, net: Net) -> Iterator[list[View]]:
    """For each tensor of a policy its parts in `net`.

    In this order: weights and biases of each layer of the scalars, of each kind of units, of
    memories; actor's and critic's weights, then their biases, of each of their layers; weights and
    bias of the action's layer, what belongs to the target, weights and bias of the value's layer;
    logarithms of deviations, if there are any.
    """
    yield from _dense_views(shape.plain, shape.scalars, net.scalars)
    for kind, units in zip(shape.kinds, net.units, strict=False):
        yield from _dense_views(kind.inputs, kind.layers, units.layers)
        below = (kind.inputs, *kind.layers)[-1]
        rows = blocks_of((kind.size, kind.keys))
        yield [View((theirs,), units.last[ours, :below]) for theirs, ours in rows]
        yield [View((theirs,), units.last_bias[ours]) for theirs, ours in rows]
    for lstm in net.memories[: shape.memories]:
        yield from _lstm_views(shape, lstm)
    yield from _layer_views(shape, net)
    yield from _head_views(shape, net)


def _dense_views(
    inputs: int, layers: tuple[int, ...], weights: Sequence[DenseLayer]
) -> Iterator[list[View]]:
    below = inputs
    for units, layer in zip(layers, weights[1:], strict=False):
        yield [View((WHOLE,), layer.weights[:below, :units].T)]
        yield [View((WHOLE,), layer.bias[:units])]
        below = units


def _lstm_views(shape: NetworkShape, lstm: LstmWeights) -> Iterator[list[View]]:
    size = shape.size
    gates = [(slice(gate * size, gate * size + size), gate * shape.lanes) for gate in range(GATES)]
    for matrix, blocks in ((lstm.inputs, shape.core), (lstm.hidden, blocks_of((size,)))):
        yield [
            View((rows, theirs), matrix[ours, at : at + size].T)
            for rows, at in gates
            for theirs, ours in blocks
        ]
    for bias in (lstm.input_bias, lstm.hidden_bias):
        yield [View((rows,), bias[at : at + size]) for rows, at in gates]


def _layer_views(shape: NetworkShape, net: Net) -> Iterator[list[View]]:
    """Actor's and critic's weights, then their biases, of each layer."""
    blocks: Sequence[Block] = shape.bottom
    for units, layer in zip(shape.heads.layers, net.layers, strict=False):
        half, halves = layer.bias.size // 2, list(layer.weights)
        if len(halves) == 1:  # of a bare network's first layer
            halves = [halves[0][:, :half], halves[0][:, half:]]
        for weights in halves:
            yield [View((WHOLE, theirs), weights[ours, :units].T) for theirs, ours in blocks]
        yield [View((WHOLE,), layer.bias[:units])]
        yield [View((WHOLE,), layer.bias[half : half + units])]
        blocks = blocks_of((units,))


def _head_views(shape: NetworkShape, net: Net) -> Iterator[list[View]]:
    """Action, target, value and deviations."""
    top, actions = shape.top, shape.heads.outputs
    for rows in action_rows(shape):
        yield [
            View((theirs, columns), net.action[ours, own])
            for theirs, ours in rows
            for columns, own in top
        ]
        yield [View((theirs,), net.action_bias[ours]) for theirs, ours in rows]
    if shape.targets:
        keys = max(kind.keys for kind in shape.kinds)
        query = slice(actions, actions + keys)
        yield [View((WHOLE, columns), net.action[query, own]) for columns, own in top]
        yield [View((WHOLE,), net.action_bias[query])]
        yield [View((WHOLE,), net.nobody[:keys])]
    yield [View((WHOLE, columns), net.value[None, own]) for columns, own in top]
    yield [View((WHOLE,), net.value_bias)]
    if shape.heads.gaussians:
        yield [View((WHOLE,), net.log_std)]


def action_rows(shape: NetworkShape) -> Iterator[list[Block]]:
    """Rows of a tensor and of the logits, of the action's layer and of a linear target's."""
    whole, first, count = shape.heads.outputs, shape.target, shape.choices
    after = slice(first, whole - count), slice(first + count, whole)
    yield [(slice(0, first), slice(0, first)), after]
    if count and not shape.targets:
        yield [(slice(0, count), slice(first, first + count))]


MAX_THREADS = 8


def new_learn_threads(
    shape: NetworkShape, rows: int, sync_flags: SyncFlags, *, length: int
) -> tuple[LearnThread, ...]:
    """Of the caller and its workers, for pieces of `rows` sequences of `length` steps."""

    def new_learn_thread(number: int) -> LearnThread:
        gradient = np.zeros(net_size(shape), np.float32)
        return LearnThread(
            thread_id=number,
            spin_limit=SPIN_LIMIT,
            workspace=new_workspace(shape, rows, length=length),
            gradient=gradient,
            of=net_views(shape, gradient),
        )

    return tuple(map(new_learn_thread, range(1 + sync_flags.size // STRIDE)))


def new_queue(sync_flags: SyncFlags) -> PieceQueue:
    """What the caller and the workers with these `sync_flags` tell each other, before any work."""
    taken, numbers = np.zeros((2, 2 * STRIDE), np.int64)  # in cache lines of their own
    return PieceQueue(sync_flags, taken, numbers)


def new_workspace(
    shape: NetworkShape, rows: int, *, length: int = 1, judges: bool = True
) -> Workspace:
    """Arrays for pieces of `rows` sequences of `length` steps; for values where it `judges`."""
    count, core, ones = rows * length, shape.core_columns, np.ones(rows * length, np.float32)
    samples = _new_samples(shape, count)
    scalars, of_scalars = _dense_arrays(samples.inputs, shape.scalars)
    kept = np.ones(count, np.float32)
    memories = tuple(
        _new_sequence(shape.lanes if k < shape.memories else 0, rows, kept) for k in range(USUAL)
    )
    forward = samples.inputs if shape.bare else _zeros(count, core)
    of_core = _zeros(0 if shape.bare else count, core)
    layers = [2 * units for _, units in head_widths(shape)]
    outputs, gradients = (tuple(_zeros(count, size) for size in layers) for _ in range(2))
    given, of_given = _given(shape, (forward, of_core), memories)
    return Workspace(
        samples=samples,
        scalars=scalars,
        of_scalars=of_scalars,
        kinds=tuple(_new_kind(kind, count) for kind in usual_kinds(shape)),
        core=forward,
        of_core=of_core,
        more_of_core=_zeros(count if shape.memories == USUAL else 0, core),
        memories=memories,
        carried=_zeros(rows, shape.states, shape.lanes),
        outputs=outputs,
        gradients=gradients,
        actor_given=(given[0], *outputs),
        critic_given=(given[1], *outputs),
        of_actor_given=of_given[0],
        of_critic_given=of_given[1],
        query=_zeros(count, shape.keys),
        of_query=_zeros(count, shape.keys),
        head=_new_head(shape, count, judges=judges),
        ones=ones,
    )


def _dense_arrays(
    inputs: Floats, layers: tuple[int, ...]
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """(the inputs, then the outputs of layers; derivatives by these outputs)."""
    widths = [units for _, units in dense_widths(0, layers)[1:]]
    outputs, of = (tuple(_zeros(len(inputs), units) for units in widths) for _ in range(2))
    return (inputs, *outputs), (_zeros(0, 0), *of)


def _given(
    shape: NetworkShape, core: tuple[Floats, Floats], memories: tuple[SequenceArrays, ...]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """What actor and critic are given, and derivatives by it, of which the second may be spare."""
    if shape.memories == USUAL:
        actor, critic = memories
        return (actor.hidden, critic.hidden), (actor.of_hidden, critic.of_hidden)
    given, of_given = (memories[0].hidden, memories[0].of_hidden) if shape.memories else core
    return (given, given), (of_given, np.zeros_like(of_given))


def _new_samples(shape: NetworkShape, count: int) -> Samples:
    heads = shape.heads
    return Samples(
        inputs=_zeros(count, shape.plain),
        masks=_zeros(heads.masks, count),
        actions=_zeros(heads.branches, count),
        old_log_probs=_zeros(heads.ratios, count),
        advantages=_zeros(count),
        returns=_zeros(count),
        old_values=_zeros(count),
    )


def _new_head(shape: NetworkShape, count: int, *, judges: bool) -> Head:
    heads = shape.heads
    return Head(
        outputs=_zeros(count, whole_lanes(shape.outputs)),
        logits=_zeros(shape.outputs, count),
        probs=_zeros(sum(heads.choices), count),
        values=_zeros(count if judges else 0, 1),
        log_sums=_zeros(len(heads.choices), count),
        entropies=_zeros(len(heads.choices), count),
        log_probs=_zeros(heads.branches, count),
        dloss_dlogp=_zeros(heads.branches, count),
    )


def _new_kind(kind: KindShape, count: int) -> KindArrays:
    units, size, keys = count * kind.slots, whole_lanes(kind.size), whole_lanes(kind.keys)
    layers, of_layers = _dense_arrays(_zeros(units, whole_lanes(kind.inputs)), kind.layers)
    return KindArrays(
        first=np.zeros(count + 1, np.int64),
        slots=np.zeros(units, np.int64),
        layers=layers,
        of_layers=of_layers,
        outputs=_zeros(units, size + keys),
        of_keys=_zeros(units, keys),
        pooled=_zeros(count, size),
        best=np.zeros((count, size), np.int32),
        of_pooled=_zeros(count, size),
    )


def _new_sequence(units: int, rows: int, kept: Floats) -> SequenceArrays:
    count, gates = len(kept), GATES * units
    return SequenceArrays(
        kept=kept,
        gates=_zeros(count, gates),
        recurrent=_zeros(rows, gates),
        hidden_before=_zeros(count, units),
        cells_before=_zeros(count, units),
        cells=_zeros(rows, units),
        squashed=_zeros(count, units),
        hidden=_zeros(count, units),
        of_hidden=_zeros(count, units),
        of_next=_zeros(rows, units),
        of_cells=_zeros(rows, units),
    )


def _zeros(*size: int) -> Floats:
    return np.zeros(size, np.float32)
