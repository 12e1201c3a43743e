"""Units in an observation: things of one kind, each shown by the same features in its own columns.

A view of columns that the observation has anyway: `observations[:, block.columns]` is [N, U, F].
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class UnitBlock:
    """U slots for units of one kind; a slot without a unit is 0 throughout."""

    kind: str
    features: tuple[str, ...]  # [F]
    columns: npt.NDArray[np.int64]  # [U, F] of the observation
    fixed: npt.NDArray[np.float32]  # [U, S] what is known of each slot beforehand
    seen: str | None = None  # the feature that is 1 where there is a unit; None: there always is
    place: tuple[str, str] | None = None  # the features m ahead and to the right; None: has none
    place_scale: float = 1.0  # m over which the place is scaled
    distance: str | None = None  # the feature that is a distance in m, 0 where nothing is met
    labels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The values of features that are labels and no quantities."""
    target: bool = False  # whether an agent may choose one of them to aim at

    @property
    def slots(self) -> int:
        """U, how many units there may be."""
        return int(self.columns.shape[0])

    def column_of(self, feature: str) -> npt.NDArray[np.int64]:
        """Columns [U] of `feature`."""
        found: npt.NDArray[np.int64] = self.columns[:, self.features.index(feature)]
        return found


def unit_faults(block: object, width: int) -> Iterator[str]:
    """What does not fit together in `block` of an observation of `width` columns, each a line."""
    if not isinstance(block, UnitBlock):
        yield "units: each must be a UnitBlock"
        return
    columns, fixed, where = np.asarray(block.columns), np.asarray(block.fixed), block.kind
    if columns.ndim != 2 or not columns.size or columns.shape[1] != len(block.features):
        yield f"units: {where}: columns must be [slots, {len(block.features)} features]"
    elif not ((columns >= 0) & (columns < width)).all():
        yield f"units: {where}: every column must be one of the observation's, 0 to {width - 1}"
    elif fixed.ndim != 2 or len(fixed) != len(columns):
        yield f"units: {where}: fixed must have a row for each of {len(columns)} slots"
    asked = (block.seen, *(block.place or ()), block.distance, *block.labels)
    for name in asked:
        if name is not None and name not in block.features:
            yield f"units: {where}: there is no feature {name!r}"
    if not block.place_scale > 0:
        yield f"units: {where}: place_scale must be above 0 (got {block.place_scale:g})"
    if block.target and (block.seen is None or block.place is None):
        yield f"units: {where}: a target needs a feature that says it is seen, and a place"
