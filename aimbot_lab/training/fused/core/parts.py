"""What the kernels of learning work on.

N samples; F inputs; K branches of an action, choices before Gaussians; L logits of all choices,
then C means; R log-probabilities of an action: one, or one per branch. H units of a hidden layer
of one network, of which the last ones may be there for `kernels.matmul` alone: their weights
are 0 and stay so, because nothing comes in and so their gradient is 0.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.atomic import SyncFlags

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

POLICY, VALUE, ENTROPY, CLIPPED, DIVERGENCE, DUAL_CLIPPED = range(6)  # sums over a minibatch
SUMS = 6


class Layer(NamedTuple):
    """A hidden layer of actor and critic: the actor's H units, then the critic's."""

    weights: Floats  # [2, H of the layer below, H]; of the first layer [1, F, 2 H]
    bias: Floats  # [2 H]


class Net(NamedTuple):
    """The weights of actor and critic, or the loss's derivatives by these."""

    layers: tuple[Layer, ...]
    action: Floats  # [L + C, H]
    action_bias: Floats  # [L + C]
    value: Floats  # [H]
    value_bias: Floats  # [1]
    log_std: Floats  # [C]


class Turned(NamedTuple):
    """Weights once more, with rows and columns exchanged."""

    layers: tuple[Floats, ...]  # [2, H, H of the layer below]; of the first layer empty
    action: Floats  # [H, L + C], and columns of 0 up to whole lanes


class Networks(NamedTuple):
    """An actor and a critic."""

    net: Net
    turned: Turned
    starts: Whole  # [branches of choices + 1] where the logits of each begin, and the last's end
    relu: bool  # or tanh


class Samples(NamedTuple):
    """What is known of each of N samples."""

    inputs: Floats  # [N, F]
    masks: Floats  # [M, N] 1 where a choice is allowed; M is 0 without masks
    actions: Floats  # [K, N] choices as whole numbers, then the continuous columns
    old_log_probs: Floats  # [R, N]
    advantages: Floats  # [N]
    returns: Floats  # [N]
    old_values: Floats  # [N]


class Head(NamedTuple):
    """Outputs of actor and critic for N samples, and arrays for what is derived from them."""

    outputs: Floats  # [N, L + C or more] of the actor, before its bias
    logits: Floats  # [L + C, N] shifted so that each branch's largest is 0; means as they are
    probs: Floats  # [L, N] of the choices
    values: Floats  # [N, 1]
    log_sums: Floats  # [branches of choices, N] log of the sum of a branch's exp(logits)
    entropies: Floats  # [branches of choices, N]
    log_probs: Floats  # [K, N] of the action taken
    dloss_dlogp: Floats  # [K, N] derivative of the loss by log_probs


class Workspace(NamedTuple):
    """Arrays for N samples on their way through the networks and back."""

    samples: Samples
    outputs: tuple[Floats, ...]  # of each hidden layer [N, 2 H]
    gradients: tuple[Floats, ...]  # derivatives of the loss by these
    head: Head
    ones: Floats  # [N]


class WorkQueue(NamedTuple):
    """What the threads tell each other of the work at hand, see `foundation.kernels.spin_sync`."""

    sync_flags: SyncFlags  # [workers * STRIDE]
    taken: SyncFlags  # [1 or more] first: how many parts of the work were taken
    numbers: Whole  # [2 or more] first: two of the work, as its kernel says


class PolicyInput(NamedTuple):
    """What a policy is shown."""

    observations: Floats  # [B, D + M] raw, with the masks behind
    own: Floats  # [B, D or more] as `core.features.see` takes it
    rows: Floats  # [T, B, W] what the networks see, in the first F + M columns


class Sampled(NamedTuple):
    """What a rollout needs to know of N samples."""

    actions: Floats  # [N, K]
    values: Floats  # [N, 1]
    log_probs: Floats  # [N, R]


class Noise(NamedTuple):
    """What decides about the actions of N samples."""

    uniform: Floats  # [N, branches of choices] in [0, 1)
    normal: Floats  # [N, C]


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


class Gradients(NamedTuple):
    """The derivatives by all weights of one piece's loss."""

    flat: Floats  # [P]
    net: Net  # views of it


class ThreadWorkspace(NamedTuple):
    """What a thread works with, for pieces of one size."""

    thread_id: int  # the thread's: 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    workspace: Workspace
    gradients: Gradients


class Batch(NamedTuple):
    """A minibatch."""

    rows: Floats  # [S, W] all samples
    indices: Whole  # [most of a minibatch] of its samples, the first ones that are needed
    loss: Floats  # the fields of Loss


class Lanes(NamedTuple):
    """Sums over pieces; what is summed in which lane does not depend on who does it."""

    gradients: Floats  # [lanes, P]
    sums: Doubles  # [lanes, SUMS] of the losses
