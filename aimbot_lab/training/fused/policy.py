"""Which policies the fused engine knows, what they are shown, and their sizes and weights."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import preprocess_obs
from torch import nn

from aimbot_lab.foundation.kernels.jit import Packed
from aimbot_lab.foundation.kernels.rng import whole_power
from aimbot_lab.foundation.world import UnitBlock
from aimbot_lab.training.algorithms.ppo_update import UnsuitedError
from aimbot_lab.training.fused.core.act import (
    Columns,
    KindSight,
    MaskSight,
    NetworkSight,
    Ranges,
    Sight,
)
from aimbot_lab.training.fused.core.arrays import Floats, Whole
from aimbot_lab.training.fused.core.learn import AdamStep, adam_step, square_of
from aimbot_lab.training.fused.core.network import turn_weights
from aimbot_lab.training.fused.layout import (
    USUAL,
    HeadShape,
    Index,
    KindShape,
    NetworkShape,
    net_size,
    net_views,
    new_networks,
    tensor_views,
)
from aimbot_lab.training.networks.encoders import (
    NEAR,
    EgocentricFeatures,
    EncodedFeatures,
    PictureEncoder,
    UnitEncoder,
    UnitFeatures,
)
from aimbot_lab.training.networks.hybrid_policy import (
    BesideMasks,
    BesideSeen,
    HybridDistribution,
    HybridPolicy,
    MaskedHead,
    TargetHead,
)
from aimbot_lab.training.networks.remembering_policy import Lstm, MemoryShape
from aimbot_lab.training.processes.cores import denormals_as_zero
from aimbot_lab.training.settings import MAX_FUSED_UNITS


def encoded_of(policy: HybridPolicy) -> EncodedFeatures | None:
    """The encoders of `policy`, which may have none."""
    extractor = seen_by(policy)
    return extractor if isinstance(extractor, EncodedFeatures) else None


def seen_by(policy: HybridPolicy) -> nn.Module:
    """What extracts the features, without what passes it by."""
    extractor: nn.Module = policy.features_extractor
    extractor = extractor.seen if isinstance(extractor, BesideMasks) else extractor
    return extractor.features if isinstance(extractor, BesideSeen) else extractor


def eyes_of(policy: HybridPolicy) -> EgocentricFeatures | None:
    """What the kernels can see with in place of the extractor of `policy`."""
    encoded = encoded_of(policy)
    seen = seen_by(policy) if encoded is None else encoded.plain
    return seen if type(seen) is EgocentricFeatures else None


def masks_shown(policy: HybridPolicy) -> tuple[int, int]:
    """(logits of the world's branches that have masks, of the target that have)."""
    target, world = policy.target, sum(policy.masked)
    if target is None or not target.masked:
        return world, 0
    return sum(target.branches), 1 + target.slots


def shown_to(policy: Any, observations: th.Tensor) -> Floats:
    """What a rollout keeps of observations [N, D]: [N, F + M], as `core.act.show` does it."""
    space, scales = policy.observation_space, policy.normalize_images
    with th.no_grad():
        given: Any = preprocess_obs(observations, space, normalize_images=scales)
        columns = [*_seen(policy, given), *_masks(policy, given)]
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


_NOTHING = np.zeros(0, np.float32)
_NONE = np.zeros(0, np.int64)
_NO_KIND = KindSight(
    np.zeros((0, 0), np.int64),
    np.zeros((0, 0), np.float32),
    -1,
    _NONE,
    _NOTHING,
    _NOTHING,
    _NONE,
    _NOTHING,
    -1,
    -1,
    -1,
    _NOTHING,
)

_BLIND = Sight(
    Columns(*[0] * len(Columns._fields)),
    Ranges(_NOTHING, _NOTHING, np.float32(1.0), np.float32(1.0)),
)


def network_sight(policy: HybridPolicy) -> NetworkSight:
    """How the kernels see for `policy`; not where it has no `eyes_of`."""
    encoded, eyes = encoded_of(policy), eyes_of(policy)
    sight = _BLIND if eyes is None else eyes.sight()
    size = sight.columns.size
    kinds: list[KindSight] = []
    kept = np.zeros(0)
    if encoded is not None:
        kept = encoded.kept.numpy()
        for block in encoded.blocks:
            features = encoded.units[block.kind]
            assert isinstance(features, UnitFeatures)
            kinds.append(_kind_sight(block, features))
    kinds += [_NO_KIND] * (USUAL - len(kinds))
    return NetworkSight(sight, kept.astype(np.int64), tuple(kinds), _mask_sight(policy, size))


def _kind_sight(block: UnitBlock, features: UnitFeatures) -> KindSight:
    labels = [
        (block.features.index(name), value)
        for name, values in block.labels.items()
        for value in values
    ]

    def index(name: str | None) -> int:
        return -1 if name is None else block.features.index(name)

    ahead, right = block.place or (None, None)
    return KindSight(
        columns=_whole(features.columns.numpy()),
        fixed=_floats(features.fixed.numpy()),
        seen=index(block.seen),
        plain=np.array(features.plain, np.int64),
        scale=_floats(features.scale.numpy()),
        shift=_floats(features.shift.numpy()),
        labels=np.array([feature for feature, _ in labels], np.int64),
        values=np.array([value for _, value in labels], np.float32),
        distance=index(block.distance),
        ahead=index(ahead),
        right=index(right),
        lengths=np.array([block.place_scale, NEAR], np.float32),
    )


def _mask_sight(policy: HybridPolicy, size: int) -> MaskSight:
    given, (world, targets) = sum(policy.masked), masks_shown(policy)
    columns = policy.target.seen_columns if policy.target is not None and targets else ()
    free = world + (1 if targets else 0)
    return MaskSight(given, size, free, np.array(columns, np.int64))


def _whole(array: np.ndarray) -> Whole:
    return np.array(array, np.int64, order="C")


def _floats(array: np.ndarray) -> Floats:
    return np.array(array, np.float32, order="C")


class TensorCopy(NamedTuple):
    """Where a part of a tensor of a policy and of its optimiser's means has its copies."""

    tensor: th.Tensor
    weights: Floats  # of the shape of the tensor's part
    means: Floats
    squares: Floats
    part: Index

    def own(self, tensor: th.Tensor) -> Floats:
        """The memory of the part in `tensor`, which has this one's shape."""
        array: Floats = tensor.detach().numpy()
        return array[self.part]

    def state(self, optimizer: th.optim.Optimizer) -> dict[str, Any]:
        """What `optimizer` keeps of the tensor, made where there is nothing yet."""
        state: dict[str, Any] = optimizer.state[self.tensor]
        if not state:
            state["step"] = th.tensor(0.0)
            state["exp_avg"] = th.zeros_like(self.tensor.data)
            state["exp_avg_sq"] = th.zeros_like(self.tensor.data)
        return state


class FusedWeights:
    """A policy's weights and its optimiser's means in three arrays of one order.

    `tensors` are in the order of `layout.tensor_views`.

    Between two updates the policy and its optimiser hold the truth: `load` fetches it and
    `store` brings it back, in torch's own form.
    """

    def __init__(self, shape: NetworkShape, tensors: Sequence[th.Tensor]) -> None:
        self.weights, self.means, self.squares = np.zeros((3, net_size(shape)), np.float32)
        nets = [net_views(shape, flat) for flat in (self.weights, self.means, self.squares)]
        views = zip(*(tensor_views(shape, net) for net in nets), strict=True)
        self.copies = [
            TensorCopy(tensor, one.weights, mean.weights, square.weights, one.part)
            for tensor, of_tensor in zip(tensors, views, strict=True)
            for one, mean, square in zip(*of_tensor, strict=True)
        ]
        assert all(one.own(one.tensor).shape == one.weights.shape for one in self.copies)
        self.networks = new_networks(shape, nets[0])
        self._turn = Packed(turn_weights).call_with(self.networks)
        self.steps = 0  # of the optimiser so far

    def load(self) -> None:
        """Fetch the weights."""
        self.weights.fill(0.0)
        for copied in self.copies:
            copied.weights[...] = copied.own(copied.tensor)
        self._turn()

    def load_optimizer(self, optimizer: th.optim.Optimizer) -> None:
        """Fetch the optimiser's state."""
        self.steps = 0
        self.means.fill(0.0)
        self.squares.fill(0.0)
        for copied in self.copies:
            if optimizer.state.get(copied.tensor):
                state = copied.state(optimizer)
                self.steps = int(state["step"].item())
                copied.means[...] = copied.own(state["exp_avg"])
                copied.squares[...] = copied.own(state["exp_avg_sq"])

    def store(self, optimizer: th.optim.Optimizer) -> None:
        """Bring weights and optimiser's state back."""
        for copied in self.copies:
            copied.own(copied.tensor)[...] = copied.weights
            if self.steps:
                state = copied.state(optimizer)
                state["step"].fill_(self.steps)
                copied.own(state["exp_avg"])[...] = copied.means
                copied.own(state["exp_avg_sq"])[...] = copied.squares

    def descend(self, gradient: Floats, optimizer: th.optim.Optimizer, *, max_norm: float) -> None:
        """Take Adam's step against `gradient` [P], whose norm is cut down to `max_norm`."""
        group = optimizer.param_groups[0]
        one, two = group["betas"]
        self.steps += 1
        norm = math.sqrt(square_of(gradient))
        numbers = (
            min(1.0, max_norm / (norm + 1e-6)),
            1.0 - one,
            two,
            1.0 - two,
            group["lr"] / (1.0 - whole_power(one, self.steps)),
            math.sqrt(1.0 - whole_power(two, self.steps)),
            group["eps"],
        )
        step = AdamStep(*map(np.float32, numbers))
        with denormals_as_zero(optimizer):
            adam_step(self.weights, gradient, self.means, self.squares, step)
        self._turn()


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
