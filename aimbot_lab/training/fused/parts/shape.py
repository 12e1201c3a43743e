"""Sizes of a network of parts, and where its parts lie beside each other."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.training.fused.parts.core.arrays import KindLayout, Layout
from aimbot_lab.training.fused.weights import NetShape

Block = tuple[slice, slice]
"""Columns of a tensor of the policy, and the same ones where whole lanes are used."""


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


class PartsShape(NamedTuple):
    """Sizes of a policy's parts."""

    heads: NetShape  # of actor and critic; their inputs are what a rollout's rows show
    plain: int  # columns that are no units'
    scalars: tuple[int, ...]  # units of each layer of these
    kinds: tuple[KindShape, ...]
    memories: int  # 0, 1 of actor and critic, or 2: one of each
    size: int  # units of a memory
    length: int  # L steps of a chunk, 1 without a memory
    warm_up: int  # chunks before each that are run first
    choices: int  # of the target, 0 without one
    target: int  # the row of the logits where they begin

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
    """Blocks of so many columns side by side."""
    made: list[Block] = []
    theirs = ours = 0
    for size in sizes:
        made.append((slice(theirs, theirs + size), slice(ours, ours + size)))
        theirs, ours = theirs + size, ours + whole_lanes(size)
    return tuple(made)


def width(blocks: Sequence[Block]) -> int:
    """Columns of blocks where whole lanes are used."""
    return sum(whole_lanes(ours.stop - ours.start) for _, ours in blocks)


def layout_of(shape: PartsShape) -> Layout:
    """Which parts there are."""
    return Layout(
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


def kind_layouts(shape: PartsShape) -> Iterator[KindLayout]:
    """Where each kind of units is in a rollout's row and in the core."""
    column = shape.plain
    for kind, (_, core) in zip(shape.kinds, shape.core[1:], strict=True):
        target = kind.target if kind.keys else 0
        yield KindLayout(column, kind.slots, kind.inputs, core.start, target)
        column += kind.columns
