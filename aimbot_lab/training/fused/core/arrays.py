"""What the kernels of the fused engine work on.

A piece has N samples, step by step: R rows of each of N / R steps; without a memory each row has
one step. F are the columns of a rollout's row that the networks are shown. An action has K
branches, choices before Gaussians; L logits of all choices, then C means; P log-probabilities: one,
or one per branch.

D numbers come from the encoders (the core) and H from a memory; U units of a layer; T numbers leave
the last layer of actor or critic. All of these are in whole lanes, but the core of a bare network,
which has no parts beside the layers of actor and critic: what is there for `kernels.lanes` alone
is 0 and stays so, weights too, because nothing comes in and so their gradient is 0.

Of a kind of units V are the slots of a sample, and at most N V units are seen in a piece; I numbers
are known of each, E are its representation and Q its key.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.threads import SyncFlags

ZERO, HALF, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

POLICY, VALUE, ENTROPY, CLIPPED, DIVERGENCE, DUAL_CLIPPED = range(6)  # sums over a minibatch
SUMS = 6

# Weights


class DenseLayer(NamedTuple):
    """A layer that actor and critic share, or that all units of a kind do."""

    weights: Floats  # [units below, U]
    bias: Floats  # [U]


class UnitWeights(NamedTuple):
    """The encoder of a kind of units."""

    layers: tuple[DenseLayer, ...]  # hidden ones; the first is empty, in place of the inputs
    last: Floats  # [E + Q, units below]
    last_bias: Floats  # [E + Q]


class LstmWeights(NamedTuple):
    """Weights of long short-term memory; columns are gates i f g o, each of H."""

    inputs: Floats  # [D, 4 H]
    hidden: Floats  # [H, 4 H]
    input_bias: Floats  # [4 H]
    hidden_bias: Floats  # [4 H]


class HeadLayer(NamedTuple):
    """A layer of actor and critic, side by side."""

    weights: Floats  # [2, units below, U]; of a bare network's first layer [1, F, 2 U]
    bias: Floats  # [2 U]


class Net(NamedTuple):
    """All weights, or the loss's derivatives by these.

    Tuples are as long as `Layout` says or longer, so that most networks share compiled code.
    """

    scalars: tuple[DenseLayer, ...]  # the first is empty, in place of the inputs
    units: tuple[UnitWeights, ...]
    memories: tuple[LstmWeights, ...]
    layers: tuple[HeadLayer, ...]
    action: Floats  # [L + C + Q, T] of logits and means, then of the query where keys are scored
    action_bias: Floats  # [L + C + Q]
    value: Floats  # [T]
    value_bias: Floats  # [1]
    log_std: Floats  # [C]
    nobody: Floats  # [Q] the key of "no target"


class TurnedMemory(NamedTuple):
    """Weights of a memory once more, with rows and columns exchanged."""

    inputs: Floats  # [4 H, D]
    hidden: Floats  # [4 H, H]
    bias: Floats  # [4 H] both biases of the gates, added


class TurnedUnits(NamedTuple):
    """Weights of an encoder of units once more, with rows and columns exchanged."""

    layers: tuple[Floats, ...]  # [U, units below]; the first two, above the inputs, are empty
    last: Floats  # [units below, E + Q]


class Turned(NamedTuple):
    """Weights once more, with rows and columns exchanged."""

    scalars: tuple[Floats, ...]  # [U, units below]; the first two, above the inputs, are empty
    units: tuple[TurnedUnits, ...]
    memories: tuple[TurnedMemory, ...]
    layers: tuple[Floats, ...]  # [2, U, units below]; of a bare network's first layer empty
    action: Floats  # [T, L + C + Q], and columns of 0 up to whole lanes


class KindLayout(NamedTuple):
    """Where a kind of units is in a rollout's row: I numbers of each slot, then who is seen."""

    column: int  # of the first number
    slots: int  # V
    inputs: int  # I
    core: int  # the column of the core where its representation begins
    target: int  # the choice of the branch `target` that is the first slot; 0: none of them


class Layout(NamedTuple):
    """Which parts there are."""

    bare: bool  # no parts but layers: those of actor and critic read the plain columns
    encodes: bool  # whether there are encoders that learn
    has_parts_below: bool  # whether these or memories learn from derivatives by what they give
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


class Networks(NamedTuple):
    """An actor and a critic, on what encoders and memories give them, if there are any."""

    net: Net
    turned: Turned
    layout: Layout
    kinds: tuple[KindLayout, ...]
    starts: Whole  # [branches of choices + 1] where the logits of each begin, and the last's end


# A piece on its way through the networks and back


class Samples(NamedTuple):
    """What is known of each of N samples."""

    inputs: Floats  # [N, plain columns]
    masks: Floats  # [M, N] 1 where a choice is allowed; M is 0 without masks
    actions: Floats  # [K, N] choices as whole numbers, then the continuous columns
    old_log_probs: Floats  # [P, N]
    advantages: Floats  # [N]
    returns: Floats  # [N]
    old_values: Floats  # [N]


class Head(NamedTuple):
    """Outputs of actor and critic for N samples, and arrays for what is derived from them."""

    outputs: Floats  # [N, L + C + Q or more] of the actor, before its bias
    logits: Floats  # [L + C + Q, N] shifted so that each branch's largest is 0; means as they are
    probs: Floats  # [L, N] of the choices
    values: Floats  # [N, 1]
    log_sums: Floats  # [branches of choices, N] log of the sum of a branch's exp(logits)
    entropies: Floats  # [branches of choices, N]
    log_probs: Floats  # [K, N] of the action taken
    dloss_dlogp: Floats  # [K, N] derivative of the loss by log_probs


class KindArrays(NamedTuple):
    """A piece's units of one kind, those that are seen, sample by sample."""

    first: Whole  # [N + 1] the first unit of each sample, and the last one's end
    slots: Whole  # [N V] of each unit
    layers: tuple[Floats, ...]  # inputs [N V, I in whole lanes], outputs [N V, U] of hidden layers
    of_layers: tuple[Floats, ...]  # derivatives by these; the first is empty
    outputs: Floats  # [N V, E + Q] of the last layer; of the representation before its bias
    of_keys: Floats  # [N V, Q]
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


class Workspace(NamedTuple):
    """Arrays for N samples on their way through the networks and back."""

    samples: Samples
    scalars: tuple[Floats, ...]  # the plain columns, then the outputs of the layers [N, U]
    of_scalars: tuple[Floats, ...]  # derivatives by these; the first is empty
    kinds: tuple[KindArrays, ...]
    core: Floats  # [N, D] scalars, then each kind's representation; the inputs of a bare network
    of_core: Floats  # [N, D]
    more_of_core: Floats  # [N, D] of a second memory
    memories: tuple[SequenceArrays, ...]  # which share `kept`
    carried: Floats  # [R, S, H] what the first step follows: hidden, then cells, of each memory
    outputs: tuple[Floats, ...]  # of each layer of actor and critic [N, 2 U]
    gradients: tuple[Floats, ...]  # derivatives by these
    actor_given: tuple[Floats, ...]  # `core` or a memory's outputs, then `outputs`
    critic_given: tuple[Floats, ...]  # the same, perhaps of a memory of its own
    of_actor_given: Floats  # derivatives by the first of these; of both where they are the same
    of_critic_given: Floats
    query: Floats  # [N, Q]
    of_query: Floats  # [N, Q]
    head: Head
    ones: Floats  # [N]


class LearnThread(NamedTuple):
    """What a thread learns with, for pieces of one size."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    workspace: Workspace
    gradient: Floats  # [weights] of one piece's loss
    of: Net  # views of it


class PieceQueue(NamedTuple):
    """What the threads tell each other of the work at hand, see `foundation.kernels.threads`."""

    sync_flags: SyncFlags  # [workers * STRIDE]
    taken: SyncFlags  # [1 or more] first: how many parts of the work were taken
    numbers: Whole  # [3 or more] first: those of the work, as its kernel says


# Acting


class PolicyInput(NamedTuple):
    """What B rows are shown."""

    observations: Floats  # [B, columns] raw, with the masks behind
    own: Floats  # [B, columns or fewer] as `core.act.see` takes it
    rows: Floats  # [T, B, W] what the networks see, in the first F + M columns


class States(NamedTuple):
    """What every row remembers: hidden, then cells, of each of S / 2 memories."""

    kept: Floats  # [B] 0 where an episode begins, else 1
    before: Floats  # [B, S, H]
    after: Floats  # [B, S, H]


class Noise(NamedTuple):
    """What decides about the actions of N samples."""

    uniform: Floats  # [N, branches of choices] in [0, 1)
    normal: Floats  # [N, C]


class Sampled(NamedTuple):
    """What a rollout needs to know of N samples."""

    actions: Floats  # [N, K]
    values: Floats  # [N, 1]
    log_probs: Floats  # [N, P]


# Learning


class Loss(NamedTuple):
    """What the loss is made of, in single precision."""

    share: np.float32  # 1 / samples of the minibatch
    mean: np.float32  # of the advantages, to be taken off
    deviation: np.float32  # of the advantages, to divide by
    clip: np.float32
    dual_clip: np.float32  # 0 for none
    clip_value: np.float32  # 0 for none
    ent_coef: np.float32
    vf_coef: np.float32


class Batch(NamedTuple):
    """A minibatch of chunks of L steps of one row; without a memory L is 1."""

    rows: Floats  # [T B, W] all samples, step by step
    starts: Floats  # [T B] 1 where an episode begins
    states: Floats  # [T / L, B, S, H] where each chunk begins
    chunks: Whole  # [most of a minibatch] the number of each one's first sample
    loss: Floats  # the fields of Loss
    length: int  # L
    warm_up: int  # chunks before each that are run first, without gradient


class LaneSums(NamedTuple):
    """Sums over pieces; what is summed in which lane does not depend on who does it."""

    gradients: Floats  # [lanes, weights]
    sums: Doubles  # [lanes, SUMS] of the losses
