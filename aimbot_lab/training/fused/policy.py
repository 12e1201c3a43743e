"""Which policies the fused engine knows, and the sizes and weights of these."""

from collections.abc import Iterator
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
from aimbot_lab.training.fused.layout import HeadShape, KindShape, NetworkShape
from aimbot_lab.training.fused.sight import encoded_of, masks_shown, seen_by
from aimbot_lab.training.fused.weights import FusedWeights
from aimbot_lab.training.networks.branches import HybridDistribution, MaskedHead
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.networks.parts.encoded_features import EncodedFeatures
from aimbot_lab.training.networks.parts.memory import Lstm, MemoryShape
from aimbot_lab.training.networks.parts.picture_encoder import PictureEncoder
from aimbot_lab.training.networks.parts.target_head import TargetHead
from aimbot_lab.training.networks.parts.units import UnitEncoder
from aimbot_lab.training.settings import MAX_FUSED_UNITS

RELU = {nn.Tanh: False, nn.ReLU: True}
LAYERS_WANTED = "the networks must be layers with biases and one of tanh and relu"
Layers = list[nn.Linear]


def fused_weights(policy: ActorCriticPolicy) -> tuple[NetworkShape, FusedWeights]:
    """Sizes and weights of `policy`. Raises UnsuitedError where it is not of a known kind."""
    policy = _known(policy)
    if any(isinstance(module, PictureEncoder) for module in policy.modules()):
        raise UnsuitedError("it does not know train.network.picture")
    encoded, activations = encoded_of(policy), set[bool]()
    scalars = _layers(encoded.scalars, activations) if encoded else []
    encoders = list(_encoders(encoded, activations)) if encoded else []
    memories = _memories(policy)
    actor = _layers(policy.mlp_extractor.policy_net, activations)
    critic = _layers(policy.mlp_extractor.value_net, activations)
    if _units(actor) != _units(critic):
        raise UnsuitedError("actor and critic must have the same layers")
    if len(activations) > 1:
        raise UnsuitedError("encoders, actor and critic must have the same activation")
    shape = _shape(policy, scalars, encoders, actor, relu=activations == {True})
    tensors = [
        *_dense(scalars),
        *(t for encoder in encoders for t in _dense([*_hidden(encoder), encoder.last])),
        *(t for lstm in memories for t in lstm.cell.parameters()),
        *(t for pair in zip(actor, critic, strict=True) for t in _side_by_side(*pair)),
        *_heads(policy),
    ]
    if {id(t) for t in tensors} != {id(t) for t in policy.parameters()}:
        raise UnsuitedError("the policy has weights beside those of its two networks")
    return shape, FusedWeights(shape, tensors)


def _known(policy: ActorCriticPolicy) -> HybridPolicy:
    """`policy`. Raises UnsuitedError where its kind or its optimiser is not known."""
    _check_weights(policy)
    if not policy.share_features_extractor:
        raise UnsuitedError("actor and critic must share what extracts their features")
    if not isinstance(policy, HybridPolicy) or policy.use_sde or policy.squash_output:
        raise UnsuitedError("the policy must be a HybridPolicy without state-dependent exploration")
    return policy


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


def _shape(
    policy: HybridPolicy,
    scalars: Layers,
    encoders: list[UnitEncoder],
    actor: Layers,
    *,
    relu: bool,
) -> NetworkShape:
    encoded, target = encoded_of(policy), policy.target
    kinds = tuple(_kinds(encoded, encoders)) if encoded else ()
    plain = len(encoded.kept) if encoded else _plain_columns(policy)
    memory = getattr(policy, "memory_shape", None) or MemoryShape(0, 1)
    shape = NetworkShape(
        heads=_head_shape(policy, actor, relu=relu),
        plain=plain,
        scalars=_units(scalars),
        kinds=kinds,
        memories=len(_memories(policy)),
        size=memory.size,
        length=memory.length,
        warm_up=memory.burn_in // memory.length,
        choices=1 + target.slots if target else 0,
        target=sum(target.branches) if target else 0,
    )
    if shape.bare and not actor:
        raise UnsuitedError(LAYERS_WANTED)
    widest = (*shape.heads.layers, *shape.scalars, memory.size, *map(max, map(_sizes, kinds)))
    if max(widest) > MAX_FUSED_UNITS:
        what = "a layer" if shape.bare else "a memory or layer"
        raise UnsuitedError(f"{what} has more than {MAX_FUSED_UNITS} units")
    inputs = plain + sum(kind.columns for kind in kinds)
    return shape._replace(heads=shape.heads._replace(inputs=inputs))


def _sizes(kind: KindShape) -> tuple[int, ...]:
    return *kind.layers, kind.size, kind.keys


def _plain_columns(policy: HybridPolicy) -> int:
    made: Any = seen_by(policy)
    return int(made.features_dim)


def _head_shape(policy: HybridPolicy, actor: Layers, *, relu: bool) -> HeadShape:
    choices, gaussians = _branches(policy)
    return HeadShape(
        inputs=0,  # until they are counted
        layers=_units(actor),
        relu=relu,
        choices=choices,
        gaussians=gaussians,
        masks=sum(masks_shown(policy)),
        ratios=len(choices) + gaussians if policy.per_branch else 1,
        starts=np.cumsum([0, *choices]),
    )


def _kinds(encoded: EncodedFeatures, encoders: list[UnitEncoder]) -> Iterator[KindShape]:
    """The kinds of units; those that may be a target have choices one after the other."""
    choice = 1
    for block, encoder in zip(encoded.blocks, encoders, strict=True):
        hidden, size = _units(_hidden(encoder)), encoder.size
        keys = encoder.last.out_features - size
        inputs = (*_hidden(encoder), encoder.last)[0].in_features
        yield KindShape(block.slots, inputs, hidden, size, keys, choice if keys else 0)
        choice += block.slots if block.target else 0


def _encoders(encoded: EncodedFeatures, activations: set[bool]) -> Iterator[UnitEncoder]:
    for block in encoded.blocks:
        encoder: Any = encoded.encoders[block.kind]
        if type(encoder) is not UnitEncoder or type(encoder.activation) not in RELU:
            raise UnsuitedError("units must have the encoders of this project")
        activations.add(RELU[type(encoder.activation)])
        yield encoder


def _hidden(encoder: UnitEncoder) -> Layers:
    return [layer for layer in encoder.hidden if isinstance(layer, nn.Linear)]


def _memories(policy: Any) -> list[Lstm]:
    if getattr(policy, "memory_shape", None) is None:
        return []
    own = policy.critic_memory
    return [policy.memory] if own is None else [policy.memory, own]


def _layers(net: nn.Sequential, activations: set[bool]) -> Layers:
    """The layers of `net`, of which there may be none; whether they are ReLU's is noted."""
    if not len(net):
        return []
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    between = list(net)[1::2]
    kinds = {type(module) for module in between}
    known = (
        list(net)[0::2] == layers
        and len(layers) == len(between)
        and len(kinds) == 1
        and kinds <= set(RELU)
        and all(layer.bias is not None for layer in layers)
    )
    if not known:
        raise UnsuitedError(LAYERS_WANTED)
    activations.add(RELU[kinds.pop()])
    return layers


def _units(layers: Layers) -> tuple[int, ...]:
    return tuple(layer.out_features for layer in layers)


def _dense(layers: Layers) -> Iterator[th.Tensor]:
    for layer in layers:
        yield from (layer.weight, layer.bias)


def _side_by_side(one: nn.Linear, two: nn.Linear) -> tuple[th.Tensor, ...]:
    return one.weight, two.weight, one.bias, two.bias


def _heads(policy: HybridPolicy) -> Iterator[th.Tensor]:
    """Weights of action, target, value and deviations."""
    head: Any = policy.action_net
    if isinstance(head, TargetHead):
        yield from _dense([head.layer])
        if policy.target is not None and policy.target.keys:
            yield from (*_dense([head.query]), head.nobody)
        else:
            yield from _dense([head.linear])
    else:
        layer: Any = head.layer if isinstance(head, MaskedHead) else head
        yield from _dense([layer])
    value: Any = policy.value_net
    yield from _dense([value])
    if _branches(policy)[1]:
        yield policy.log_std


def _branches(policy: ActorCriticPolicy) -> tuple[tuple[int, ...], int]:
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
