"""Which networks of parts the fused engine knows, and their sizes and weights."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from torch import nn

from aimbot_lab.training.engines.engine import UnsuitedError
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.shape import KindShape, PartsShape
from aimbot_lab.training.fused.parts.weights import PartsWeights
from aimbot_lab.training.fused.policy import (
    RELU,
    branches_of,
    check_every_weight,
    check_policy,
    layers_of,
)
from aimbot_lab.training.fused.weights import NetShape
from aimbot_lab.training.networks.branches import MaskedHead
from aimbot_lab.training.networks.hybrid_policy import BesideMasks, HybridPolicy
from aimbot_lab.training.networks.parts.encoded_features import EncodedFeatures
from aimbot_lab.training.networks.parts.memory import Lstm, MemoryShape
from aimbot_lab.training.networks.parts.target_head import BesideSeen, TargetHead
from aimbot_lab.training.networks.parts.units import UnitEncoder
from aimbot_lab.training.settings import MAX_FUSED_UNITS

Layers = list[nn.Linear]


def has_parts(policy: Any) -> bool:
    """Whether `policy` has encoders, a target or a memory."""
    return (
        getattr(policy, "target", None) is not None
        or getattr(policy, "memory_shape", None) is not None
        or any(isinstance(part, EncodedFeatures) for part in policy.modules())
    )


def parts_weights(policy: HybridPolicy) -> tuple[PartsShape, PartsWeights]:
    """Sizes and weights of `policy`. Raises UnsuitedError where it is not of a known kind."""
    check_policy(policy)
    encoded, activations = encoded_of(policy), set[bool]()
    if encoded is not None and encoded.picture is not None:
        raise UnsuitedError("it does not know train.network.picture")
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
    check_every_weight(policy, tensors)
    return shape, PartsWeights(shape, tensors)


def encoded_of(policy: HybridPolicy) -> EncodedFeatures | None:
    """The encoders of `policy`, which may have none."""
    extractor = seen_by(policy)
    return extractor if isinstance(extractor, EncodedFeatures) else None


def seen_by(policy: HybridPolicy) -> nn.Module:
    """What extracts the features, without what passes it by."""
    extractor: nn.Module = policy.features_extractor
    extractor = extractor.seen if isinstance(extractor, BesideMasks) else extractor
    return extractor.features if isinstance(extractor, BesideSeen) else extractor


def masks_shown(policy: HybridPolicy) -> tuple[int, int]:
    """(logits of the world's branches that have masks, of the target that have)."""
    target, world = policy.target, sum(policy.masked)
    if target is None or not target.masked:
        return world, 0
    return sum(target.branches), 1 + target.slots


def _shape(
    policy: HybridPolicy,
    scalars: Layers,
    encoders: list[UnitEncoder],
    actor: Layers,
    *,
    relu: bool,
) -> PartsShape:
    encoded, target = encoded_of(policy), policy.target
    kinds = tuple(_kinds(encoded, encoders)) if encoded else ()
    plain = len(encoded.kept) if encoded else _plain_columns(policy)
    memory = getattr(policy, "memory_shape", None) or MemoryShape(0, 1)
    shape = PartsShape(
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
    widest = (*shape.heads.layers, *shape.scalars, memory.size, *map(max, map(_sizes, kinds)))
    if max(widest) > MAX_FUSED_UNITS:
        raise UnsuitedError(f"a memory or layer has more than {MAX_FUSED_UNITS} units")
    inputs = plain + sum(kind.columns for kind in kinds)
    return shape._replace(heads=shape.heads._replace(inputs=inputs))


def _sizes(kind: KindShape) -> tuple[int, ...]:
    return *kind.layers, kind.size, kind.keys


def _plain_columns(policy: HybridPolicy) -> int:
    made: Any = seen_by(policy)
    return int(made.features_dim)


def _head_shape(policy: HybridPolicy, actor: Layers, *, relu: bool) -> NetShape:
    choices, gaussians = branches_of(policy)
    return NetShape(
        inputs=0,
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
    layers, relu = layers_of(net)
    activations.add(relu)
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
    if branches_of(policy)[1]:
        yield policy.log_std


def shown_to(policy: Any, observations: th.Tensor) -> Floats:
    """What a rollout keeps of observations [N, D]: [N, F + M], as `core.show` writes it."""
    with th.no_grad():
        columns = [*_seen(policy, observations), *_masks(policy, observations)]
    shown: Floats = th.cat(columns, dim=1).numpy()
    return shown


def _seen(policy: HybridPolicy, observations: th.Tensor) -> Iterator[th.Tensor]:
    encoded, count = encoded_of(policy), sum(policy.masked)
    observations = observations[:, : observations.shape[1] - count]
    if encoded is None:
        yield seen_by(policy)(observations)
        return
    yield encoded.plain(observations)[:, encoded.kept]
    for block in encoded.blocks:
        units, seen = encoded.units[block.kind](observations)
        yield from (units.flatten(1), seen.to(units.dtype))


def _masks(policy: HybridPolicy, observations: th.Tensor) -> Iterator[th.Tensor]:
    given, (world, targets) = sum(policy.masked), masks_shown(policy)
    ones = th.ones(len(observations), world + 1)
    yield observations[:, observations.shape[1] - given :] if given else ones[:, :world]
    if targets and policy.target is not None:
        yield ones[:, :1]
        yield (observations[:, list(policy.target.seen_columns)] > 0.5).to(th.float32)
