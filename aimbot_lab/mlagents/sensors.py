"""What a world's agents observe and do, as ML-Agents' sensors and actions.

A world's pictures, and rays as ML-Agents tells them, are sensors of their own; all else is a
vector.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import (
    Float32Array,
    Int64Array,
    ObservationBlock,
    Observations,
    WorldSpec,
    columns_of,
)
from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    BehaviorSpec,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)

MOVABLE = DimensionProperty.TRANSLATIONAL_EQUIVARIANCE


def behavior_spec(spec: WorldSpec, *, channels_first: bool = True) -> BehaviorSpec:
    """The behavior of agents in a world with `spec`: its sensors, and its actions."""
    sensors = sensors_of(spec, channels_first=channels_first)
    actions = ActionSpec(spec.continuous, tuple(int(size) for size in spec.branches))
    return BehaviorSpec([sensor.spec for sensor in sensors], actions)


class Sensor(NamedTuple):
    """What agents are shown as one observation."""

    spec: ObservationSpec
    columns: Int64Array | None  # of the world's observation; None: all of them
    picture: str | None = None  # the block whose shades, from 0 to 1, are shown instead

    def of(self, observations: Observations) -> Float32Array:
        """[n, ...] of the world's observations [n]."""
        if self.picture is not None:
            shades = observations[self.picture].astype(np.float32) / np.float32(255)
            first = self.spec.dimension_property[0] != MOVABLE
            return np.ascontiguousarray(np.moveaxis(shades, 3, 1)) if first else shades
        columns = columns_of(observations)
        return columns if self.columns is None else columns[:, self.columns]


def sensors_of(spec: WorldSpec, *, channels_first: bool = True) -> tuple[Sensor, ...]:
    """The sensors of a world with `spec`, by name, as Unity sorts them.

    A picture is [C, H, W] with `channels_first`, as trainers from 1.0 on read it, and [H, W, C]
    without, as those of before. Earlier observations stand before later ones: in a picture as
    further channels, elsewhere as further numbers.
    """
    columns = dict(_columns(spec))
    made = [_picture(block, channels_first=channels_first) for block in spec.pictures]
    names = dict.fromkeys(block.sensor for block in columns if block.sensor)
    for name in names:
        ages = [c for block, c in columns.items() if block.sensor == name]
        full = name if len(ages) == 1 else f"StackingSensor_size{len(ages)}_{name}"
        together = np.concatenate(ages)
        made.append(Sensor(_flat(full, len(together)), together))
    rest = [c for block, c in columns.items() if block.sensor is None]
    if rest:
        size = sum(map(len, rest))
        made.append(
            Sensor(_flat(f"VectorSensor_size{size}", size), np.concatenate(rest) if made else None)
        )
    return tuple(sorted(made, key=lambda sensor: sensor.spec.name))


def _columns(spec: WorldSpec) -> Iterator[tuple[ObservationBlock, Int64Array]]:
    first = 0
    for block in spec.observation_blocks:
        if block.kind != "image":
            yield block, np.arange(first, first + block.columns)
        first += block.columns


def _flat(name: str, size: int) -> ObservationSpec:
    return ObservationSpec((size,), (DimensionProperty.NONE,), ObservationType.DEFAULT, name)


def _picture(block: ObservationBlock, *, channels_first: bool) -> Sensor:
    height, width, channels = block.shape
    shape, properties = block.shape, (MOVABLE, MOVABLE, DimensionProperty.NONE)
    if channels_first:
        shape, properties = (channels, height, width), (DimensionProperty.NONE, MOVABLE, MOVABLE)
    name = block.sensor or block.name
    spec = ObservationSpec(shape, properties, ObservationType.DEFAULT, name)
    return Sensor(spec, None, block.name)
