"""What the kernels of a memory work on, beside `core.parts`.

H units of the memory and U of an encoder's layer, in whole lanes as layers have them; C numbers
that the memory is given. A piece has N samples, step by step: R rows of each of N / R steps.
"""

from typing import NamedTuple

from aimbot_lab.training.fused.core.parts import (
    Floats,
    Gradients,
    Networks,
    Samples,
    Whole,
    Workspace,
)


class EncoderLayer(NamedTuple):
    """A layer before the memory, which actor and critic share."""

    weights: Floats  # [units below, U]
    bias: Floats  # [U]


class LstmWeights(NamedTuple):
    """Weights of long short-term memory; columns are gates i f g o, each of H."""

    inputs: Floats  # [C, 4 H]
    hidden: Floats  # [H, 4 H]
    input_bias: Floats  # [4 H]
    hidden_bias: Floats  # [4 H]


class MemoryNet(NamedTuple):
    """Weights from the inputs to the memory's output, or the loss's derivatives by these."""

    encoder: tuple[EncoderLayer, ...]  # the first is empty, in place of the inputs, as may be last
    lstm: LstmWeights


class TurnedMemory(NamedTuple):
    """Weights once more, with rows and columns exchanged."""

    encoder: tuple[Floats, ...]  # [U, units below]; empty where inputs lie below
    inputs: Floats  # [4 H, C]; empty without an encoder
    hidden: Floats  # [4 H, H]
    first: Floats  # [2 U, H] of actor's and critic's first layer
    bias: Floats  # [4 H] both biases of the gates, added


class RememberingNetworks(NamedTuple):
    """An actor and a critic on the output of a memory that they share."""

    networks: Networks
    memory: MemoryNet
    turned: TurnedMemory
    depth: int  # layers of the encoder; as tuples are longer, most networks share compiled code


class SequenceArrays(NamedTuple):
    """A piece's way through the memory."""

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


class MemoryWorkspace(NamedTuple):
    """Arrays for N samples on their way to the memory's output and back."""

    samples: Samples  # those of the workspace of actor and critic, but for the inputs [N, F]
    layers: tuple[Floats, ...]  # the inputs, the outputs of each layer of the encoder, empty ones
    of_layers: tuple[Floats, ...]  # derivatives by these; the first empty too
    sequence: SequenceArrays
    indices: Whole  # [N] of the samples
    shown: Floats  # [N, H + M] output and masks, as actor and critic are shown them


class MemoryThread(NamedTuple):
    """What a thread works with, for pieces of one size."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    workspace: Workspace  # of actor and critic, whose inputs are the memory's output
    gradients: Gradients  # `flat` has all weights, `net` those of actor and critic
    memory: MemoryWorkspace
    of_memory: MemoryNet  # views of `flat` too


class States(NamedTuple):
    """What every row remembers: hidden, then cells."""

    kept: Floats  # [B] 0 where an episode begins, else 1
    before: Floats  # [B, 2, H]
    after: Floats  # [B, 2, H]


class ChunkBatch(NamedTuple):
    """A minibatch of chunks of L steps of one row."""

    rows: Floats  # [T B, W] all samples, step by step
    starts: Floats  # [T, B] 1 where an episode begins
    states: Floats  # [T / L, B, 2, H] where each chunk begins
    chunks: Whole  # [most of a minibatch] row * T / L + its place in the row
    loss: Floats  # the fields of Loss
