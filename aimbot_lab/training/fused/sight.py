"""What a policy's networks are shown of observations, and how the kernels see it by themselves."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.preprocessing import preprocess_obs
from torch import nn

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.training.fused.core.arrays import Floats, Whole
from aimbot_lab.training.fused.core.features import (
    Columns,
    KindSight,
    MaskSight,
    NetworkSight,
    Ranges,
    Sight,
)
from aimbot_lab.training.fused.layout import USUAL
from aimbot_lab.training.networks.features import EgocentricFeatures
from aimbot_lab.training.networks.hybrid_policy import BesideMasks, HybridPolicy
from aimbot_lab.training.networks.parts.encoded_features import EncodedFeatures
from aimbot_lab.training.networks.parts.target_head import BesideSeen
from aimbot_lab.training.networks.parts.units import NEAR, UnitFeatures


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
    """What a rollout keeps of observations [N, D]: [N, F + M], as `core.features.show` does it."""
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
