"""What the kernels of a network of parts work on, beside `fused.core.parts`.

A piece has N samples, step by step: R rows of each of N / R steps. C numbers come from the encoders
(the core) and H from a memory; U units of a layer; T numbers leave the last layer of actor or
critic. All of these are in whole lanes: what is there for `kernels.matmul` alone is 0 and stays so,
weights too, because nothing comes in and so their gradient is 0.

Of a kind of units V are the slots of a sample, and at most N V units are seen in a piece; I numbers
are known of each, E are its representation and K its key.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.training.fused.core.parts import Floats, Head, Samples, Whole

Places = npt.NDArray[np.int32]


class DenseLayer(NamedTuple):
    """A layer that actor and critic share, or that all units of a kind do."""

    weights: Floats  # [units below, U]
    bias: Floats  # [U]


class UnitWeights(NamedTuple):
    """The encoder of a kind of units."""

    layers: tuple[DenseLayer, ...]  # hidden ones; the first is empty, in place of the inputs
    last: Floats  # [E + K, units below]
    last_bias: Floats  # [E + K]


class LstmWeights(NamedTuple):
    """Weights of long short-term memory; columns are gates i f g o, each of H."""

    inputs: Floats  # [C, 4 H]
    hidden: Floats  # [H, 4 H]
    input_bias: Floats  # [4 H]
    hidden_bias: Floats  # [4 H]


class HeadLayer(NamedTuple):
    """A layer of actor and critic, side by side."""

    weights: Floats  # [2, units below, U]
    bias: Floats  # [2 U]


class PartsNet(NamedTuple):
    """All weights, or the loss's derivatives by these.

    Tuples are as long as `Layout` says or longer, so that most networks share compiled code.
    """

    scalars: tuple[DenseLayer, ...]  # the first is empty, in place of the inputs
    units: tuple[UnitWeights, ...]
    memories: tuple[LstmWeights, ...]
    layers: tuple[HeadLayer, ...]
    action: Floats  # [L + C + K, T] of logits and means, then of the query where keys are scored
    action_bias: Floats  # [L + C + K]
    value: Floats  # [T]
    value_bias: Floats  # [1]
    log_std: Floats  # [C]
    nobody: Floats  # [K] the key of nobody


class TurnedMemory(NamedTuple):
    """Weights of a memory once more, with rows and columns exchanged."""

    inputs: Floats  # [4 H, C]
    hidden: Floats  # [4 H, H]
    bias: Floats  # [4 H] both biases of the gates, added


class TurnedUnits(NamedTuple):
    """Weights of an encoder of units once more, with rows and columns exchanged."""

    layers: tuple[Floats, ...]  # [U, units below]; the first two, above the inputs, are empty
    last: Floats  # [units below, E + K]


class TurnedParts(NamedTuple):
    """Weights once more, with rows and columns exchanged."""

    scalars: tuple[Floats, ...]  # [U, units below]; the first two, above the inputs, are empty
    units: tuple[TurnedUnits, ...]
    memories: tuple[TurnedMemory, ...]
    layers: tuple[Floats, ...]  # [2, U, units below]
    action: Floats  # [T, L + C + K], and columns of 0 up to whole lanes


class KindLayout(NamedTuple):
    """Where a kind of units is in a rollout's row: I numbers of each slot, then who is seen."""

    column: int  # of the first number
    slots: int  # V
    inputs: int  # I
    core: int  # the column of the core where its representation begins
    target: int  # the choice of the branch `target` that is the first slot; 0: none of them


class Layout(NamedTuple):
    """Which parts there are."""

    plain: int  # plain columns of a row, the first ones
    shown: int  # F columns of a row, the masks follow
    scalar_layers: int
    unit_layers: int  # hidden ones
    kinds: int
    memories: int  # of both, or one each
    layers: int
    relu: bool  # or tanh
    targets: int  # choices of the target where keys are scored, else 0
    target: int  # the row of the logits where they begin


class PartsNetworks(NamedTuple):
    """An actor and a critic on what encoders and memories give them."""

    net: PartsNet
    turned: TurnedParts
    layout: Layout
    kinds: tuple[KindLayout, ...]
    starts: Whole  # [branches of choices + 1] where the logits of each begin, and the last's end


class KindArrays(NamedTuple):
    """A piece's units of one kind, those that are seen, sample by sample."""

    first: Whole  # [N + 1] the first unit of each sample, and the last one's end
    slots: Whole  # [N V] of each unit
    layers: tuple[Floats, ...]  # inputs [N V, I in whole lanes], outputs [N V, U] of hidden layers
    of_layers: tuple[Floats, ...]  # derivatives by these; the first is empty
    outputs: Floats  # [N V, E + K] of the last layer; of the representation before its bias
    of_keys: Floats  # [N V, K]
    pooled: Floats  # [N, E] the largest of each number, activated; 0 where no unit is seen
    best: Places  # [N, E] the unit that has it
    of_pooled: Floats  # [N, E]


class SequenceArrays(NamedTuple):
    """A piece's way through a memory."""

    kept: Floats  # [N] 0 where an episode begins, else 1
    gates: Floats  # [N, 4 H] and on the way back the derivatives by what is activated in them
    recurrent: Floats  # [R, 4 H] a step's part of them
    hidden_before: Floats  # [N, H] what a step was given, 0 where an episode begins
    cells_before: Floats  # [N, H] the same
    cells: Floats  # [R, H] after the last step
    squashed: Floats  # [N, H] tanh of the cells after each step
    hidden: Floats  # [N, H] outputs
    of_hidden: Floats  # [N, H] derivatives by these
    of_next: Floats  # [R, H] derivatives by what the later step was given
    of_cells: Floats  # [R, H] derivatives by the cells after a step


class PartsWorkspace(NamedTuple):
    """Arrays for N samples on their way through the networks and back."""

    samples: Samples  # `inputs` are the plain columns
    scalars: tuple[Floats, ...]  # the plain columns, then the outputs of the layers [N, U]
    of_scalars: tuple[Floats, ...]  # derivatives by these; the first is empty
    kinds: tuple[KindArrays, ...]
    core: Floats  # [N, C] scalars, then each kind's representation
    of_core: Floats  # [N, C]
    more_of_core: Floats  # [N, C] of a second memory
    memories: tuple[SequenceArrays, ...]  # which share `kept`
    carried: Floats  # [R, S, H] what the first step follows: hidden, then cells, of each memory
    outputs: tuple[Floats, ...]  # of each layer of actor and critic [N, 2 U]
    gradients: tuple[Floats, ...]  # derivatives by these
    actor_given: tuple[Floats, ...]  # `core` or a memory's outputs, then `outputs`
    critic_given: tuple[Floats, ...]  # the same, perhaps of a memory of its own
    of_actor_given: Floats  # derivatives by the first of these; of both where they are the same
    of_critic_given: Floats
    query: Floats  # [N, K]
    of_query: Floats  # [N, K]
    head: Head  # with K more rows of `outputs` and `logits` than a plain network's
    ones: Floats  # [N]
    scratch: Floats  # [D + 5] features of an observation


class PartsThread(NamedTuple):
    """What a thread works with, for pieces of one size."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    workspace: PartsWorkspace
    gradient: Floats  # [P]
    of: PartsNet  # views of it


class States(NamedTuple):
    """What every row remembers: hidden, then cells, of each of S / 2 memories."""

    kept: Floats  # [B] 0 where an episode begins, else 1
    before: Floats  # [B, S, H]
    after: Floats  # [B, S, H]


class ChunkBatch(NamedTuple):
    """A minibatch of chunks of L steps of one row; without a memory L is 1."""

    rows: Floats  # [T B, W] all samples, step by step
    starts: Floats  # [T, B] 1 where an episode begins
    states: Floats  # [T / L, B, S, H] where each chunk begins
    chunks: Whole  # [most of a minibatch] row * T / L + its place in the row
    loss: Floats  # the fields of Loss
    warm_up: int  # chunks before each that are run first, without gradient
