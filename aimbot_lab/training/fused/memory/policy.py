"""Which policies with a memory the fused engine knows, and the sizes and weights of these."""

import torch as th
from torch import nn

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.training.engines.engine import UnsuitedError
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.memory.weights import RememberingShape, RememberingWeights
from aimbot_lab.training.fused.policy import (
    check_every_weight,
    check_policy,
    features_of,
    heads_of,
    layers_of,
)
from aimbot_lab.training.networks.hybrid_policy import BesideMasks
from aimbot_lab.training.networks.parts.encoded_features import EncodedFeatures
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy
from aimbot_lab.training.settings import MAX_FUSED_UNITS


def remembering_weights(policy: RememberingPolicy) -> tuple[RememberingShape, RememberingWeights]:
    """Sizes and weights of `policy`. Raises UnsuitedError where it is not of the known kind."""
    memory = policy.memory_shape
    assert memory is not None
    check_policy(policy)
    encoded = _encoded(policy.features_extractor)
    for key, unknown in (
        ("target", policy.target is not None),
        ("network.units", encoded is not None and len(encoded.encoders) > 0),
        ("network.layers: []", not len(policy.mlp_extractor.policy_net)),
        ("network.memory.critic: own", memory.own_critic),
        ("network.memory.burn_in", memory.burn_in > 0),
    ):
        if unknown:
            raise UnsuitedError(f"it does not know train.{key}")
    heads, tensors = heads_of(policy)
    encoder, inputs = _encoder_of(policy, relu=heads.relu)
    units = [layer.out_features for layer in encoder]
    if max(memory.size, *units, 0) > MAX_FUSED_UNITS:
        raise UnsuitedError(f"a memory or layer has more than {MAX_FUSED_UNITS} units")
    cell = policy.memory.cell
    before = [tensor for layer in encoder for tensor in (layer.weight, layer.bias)]
    own = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    tensors = [*before, *own, *tensors]
    check_every_weight(policy, tensors)
    shape = RememberingShape(
        heads=heads._replace(inputs=whole_lanes(memory.size)),
        inputs=inputs,
        encoder=tuple(units),
        size=memory.size,
        length=memory.length,
    )
    return shape, RememberingWeights(shape, tensors)


def shown_to(policy: RememberingPolicy, observations: th.Tensor) -> Floats:
    """What the encoder is shown of observations [N, D], with the masks behind: [N, F + M]."""
    encoded = _encoded(policy.features_extractor)
    if encoded is None:
        return features_of(policy, observations)
    count = sum(policy.masked)
    seen = observations[:, : observations.shape[1] - count]
    with th.no_grad():
        plain = encoded.plain(seen)
    shown: Floats = th.cat([plain, observations[:, seen.shape[1] :]], dim=1).numpy()
    return shown


def _encoded(extractor: nn.Module) -> EncodedFeatures | None:
    found = extractor.seen if isinstance(extractor, BesideMasks) else extractor
    return found if isinstance(found, EncodedFeatures) else None


def _encoder_of(policy: RememberingPolicy, *, relu: bool) -> tuple[list[nn.Linear], int]:
    """(layers before the memory, how many numbers they are shown)."""
    encoded = _encoded(policy.features_extractor)
    if encoded is None:
        return [], policy.memory.cell.input_size
    if not len(encoded.scalars):
        return [], len(encoded.kept)
    layers, other = layers_of(encoded.scalars)
    if other != relu:
        raise UnsuitedError("encoder, actor and critic must have the same activation")
    return layers, layers[0].in_features
