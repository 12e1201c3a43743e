"""Which policies the fused engine knows, and the sizes and weights of these."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from aimbot_lab.training.engines.engine import UnsuitedError
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.weights import FusedWeights, NetShape
from aimbot_lab.training.networks.branches import HybridDistribution, MaskedHead
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.settings import MAX_FUSED_UNITS

RELU = {nn.Tanh: False, nn.ReLU: True}


def fused_weights(policy: ActorCriticPolicy) -> tuple[NetShape, FusedWeights]:
    """Sizes and weights of `policy`. Raises UnsuitedError where it is not of the known kind."""
    known = check_policy(policy)
    shape, tensors = heads_of(known)
    check_every_weight(policy, tensors)
    return shape, FusedWeights(shape, tensors)


def check_policy(policy: ActorCriticPolicy) -> HybridPolicy:
    """`policy`. Raises UnsuitedError where its kind or its optimiser is not known."""
    _check_weights(policy)
    if not policy.share_features_extractor:
        raise UnsuitedError("actor and critic must share what extracts their features")
    if not isinstance(policy, HybridPolicy) or policy.use_sde or policy.squash_output:
        raise UnsuitedError("the policy must be a HybridPolicy without state-dependent exploration")
    return policy


def heads_of(policy: HybridPolicy) -> tuple[NetShape, list[th.Tensor]]:
    """Sizes of actor and critic with their heads, and their weights as `FusedWeights` wants them.

    Raises UnsuitedError where they are not of the known kind.
    """
    actor, relu = layers_of(policy.mlp_extractor.policy_net)
    critic, other = layers_of(policy.mlp_extractor.value_net)
    layers = tuple(layer.out_features for layer in actor)
    if layers != tuple(layer.out_features for layer in critic) or relu != other:
        raise UnsuitedError("actor and critic must have the same layers")
    if max(layers) > MAX_FUSED_UNITS:
        raise UnsuitedError(f"a layer has more than {MAX_FUSED_UNITS} units")
    action = policy.action_net
    if isinstance(action, MaskedHead):
        action = action.layer
    choices, gaussians = branches_of(policy)
    shape = NetShape(
        inputs=actor[0].in_features,
        layers=layers,
        relu=relu,
        choices=choices,
        gaussians=gaussians,
        masks=sum(policy.masked),
        ratios=len(choices) + gaussians if policy.per_branch else 1,
        starts=np.cumsum([0, *choices]),
    )
    tensors: list[th.Tensor] = []
    for one, two in zip(actor, critic, strict=True):
        tensors += [one.weight, two.weight, one.bias, two.bias]
    for layer in (action, policy.value_net):
        assert isinstance(layer, nn.Linear)
        tensors += [layer.weight, layer.bias]
    if gaussians:
        tensors.append(policy.log_std)
    return shape, tensors


def check_every_weight(policy: ActorCriticPolicy, tensors: list[th.Tensor]) -> None:
    """Raise UnsuitedError where `tensors` are not all weights of `policy`."""
    if {id(t) for t in tensors} != {id(t) for t in policy.parameters()}:
        raise UnsuitedError("the policy has weights beside those of its two networks")


def features_of(policy: ActorCriticPolicy, observations: th.Tensor) -> Floats:
    """What the networks are shown of observations [N, D], with the masks behind: [N, F + M]."""
    with th.no_grad():
        features = policy.extract_features(observations)
    assert isinstance(features, th.Tensor)
    policy_input: Floats = features.numpy()
    return policy_input


def _check_weights(policy: ActorCriticPolicy) -> None:
    """Raise UnsuitedError where weights are not what Adam's plain step moves on the CPU."""
    if policy.device.type != "cpu":
        raise UnsuitedError("it runs on the CPU only")
    optimizer: Any = policy.optimizer
    usual = {"weight_decay": 0, "amsgrad": False, "maximize": False}
    groups = optimizer.param_groups
    if type(optimizer) is not th.optim.Adam or len(groups) != 1:
        raise UnsuitedError("the optimiser must be Adam with one group of weights")
    if any(groups[0][key] != value for key, value in usual.items()):
        raise UnsuitedError("the optimiser must be Adam without weight_decay, amsgrad, maximize")
    for weight in policy.parameters():
        if weight.dtype != th.float32 or not weight.requires_grad or not weight.is_contiguous():
            raise UnsuitedError("all weights must be learned and in single precision")


def layers_of(net: nn.Sequential) -> tuple[list[nn.Linear], bool]:
    """The layers of `net`, and whether ReLU comes between them, not tanh."""
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    activations = list(net)[1::2]
    kinds = {type(module) for module in activations}
    known = (
        list(net)[0::2] == layers
        and len(layers) == len(activations) > 0
        and len(kinds) == 1
        and kinds <= set(RELU)
        and all(layer.bias is not None for layer in layers)
    )
    if not known:
        raise UnsuitedError("the networks must be layers with biases and one of tanh and relu")
    return layers, RELU[kinds.pop()]


def branches_of(policy: ActorCriticPolicy) -> tuple[tuple[int, ...], int]:
    """(sizes of the choices, number of Gaussian columns) of an action."""
    distribution, space = policy.action_dist, policy.action_space
    if isinstance(distribution, HybridDistribution):
        return distribution.choices, distribution.continuous
    if isinstance(distribution, MultiCategoricalDistribution):
        assert isinstance(space, spaces.MultiDiscrete)
        return tuple(int(size) for size in space.nvec), 0
    if isinstance(distribution, CategoricalDistribution):
        return (int(distribution.action_dim),), 0
    if type(distribution) is DiagGaussianDistribution:
        return (), int(distribution.action_dim)
    raise UnsuitedError("actions must be choices, Gaussian, or both")
