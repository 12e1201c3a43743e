"""How the kernels see observations in place of the policy's extractors."""

import numpy as np

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.parts import Floats, Whole
from aimbot_lab.training.fused.parts.core.show import KindSight, MaskSight, PartsSight
from aimbot_lab.training.fused.parts.net import USUAL
from aimbot_lab.training.fused.parts.policy import encoded_of, masks_shown
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.networks.parts.units import NEAR, UnitFeatures

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


def parts_sight(policy: HybridPolicy, sight: Sight) -> PartsSight:
    """How `policy` sees, whose plain columns are seen by `sight`."""
    encoded = encoded_of(policy)
    size = sight.columns.size
    kinds: list[KindSight] = []
    kept = np.arange(size + 5)
    if encoded is not None:
        kept = encoded.kept.numpy()
        for block in encoded.blocks:
            features = encoded.units[block.kind]
            assert isinstance(features, UnitFeatures)
            kinds.append(_kind_sight(block, features))
    kinds += [_NO_KIND] * (USUAL - len(kinds))
    return PartsSight(sight, kept.astype(np.int64), tuple(kinds), _mask_sight(policy, size))


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
