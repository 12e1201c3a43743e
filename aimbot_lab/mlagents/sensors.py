"""What a world's agents observe and do, as ML-Agents' sensors and actions.

A world's pictures, and rays as ML-Agents tells them, are sensors of their own; all else is a
vector.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import Float32Array, Int64Array, ObservationBlock, WorldSpec
from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    BehaviorSpec,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)

MOVABLE = DimensionProperty.TRANSLATIONAL_EQUIVARIANCE
IMAGE = "image"


def behavior_spec(spec: WorldSpec, *, channels_first: bool = True) -> BehaviorSpec:
    """The behavior of agents in a world with `spec`: its sensors, and its actions."""
    sensors = sensors_of(spec, channels_first=channels_first)
    actions = ActionSpec(spec.continuous, tuple(int(size) for size in spec.branches))
    return BehaviorSpec([sensor.spec for sensor in sensors], actions)


class Sensor(NamedTuple):
    """What agents are shown as one observation."""

    spec: ObservationSpec
    columns: Int64Array | None  # of the world's observation, flat; None: all of them

    def of(self, observations: Float32Array) -> Float32Array:
        """[n, ...] of the world's observations [n, D]."""
        if self.columns is None:
            return observations
        shown: Float32Array = observations[:, self.columns]
        return shown.reshape(len(observations), *self.spec.shape)


def sensors_of(spec: WorldSpec, *, channels_first: bool = True) -> tuple[Sensor, ...]:
    """The sensors of a world with `spec`, by name, as Unity sorts them.

    A picture is [C, H, W] with `channels_first`, as trainers from 1.0 on read it, and [H, W, C]
    without, as those of before. Earlier observations stand before later ones: in a picture as
    further channels, elsewhere as further numbers.
    """
    columns = dict(_columns(spec))
    names = dict.fromkeys(block.sensor for block in columns if block.sensor)
    made = [
        _sensor(name, {block: c for block, c in columns.items() if block.sensor == name})
        for name in names
    ]
    if channels_first:
        made = [_with_channels_first(sensor) for sensor in made]
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
        yield block, np.arange(first, first + block.columns)
        first += block.columns


def _sensor(name: str, blocks: dict[ObservationBlock, Int64Array]) -> Sensor:
    """The sensor of these blocks, which differ in age alone; pictures with their channels last."""
    full = name if len(blocks) == 1 else f"StackingSensor_size{len(blocks)}_{name}"
    kinds = {block.kind for block in blocks}
    if kinds != {IMAGE}:
        columns = np.concatenate(list(blocks.values()))
        return Sensor(_flat(full, len(columns)), columns)
    columns = np.concatenate([c.reshape(block.shape) for block, c in blocks.items()], axis=2)
    properties = MOVABLE, MOVABLE, DimensionProperty.NONE
    return Sensor(
        ObservationSpec(columns.shape, properties, ObservationType.DEFAULT, full), columns.flatten()
    )


def _flat(name: str, size: int) -> ObservationSpec:
    return ObservationSpec((size,), (DimensionProperty.NONE,), ObservationType.DEFAULT, name)


def _with_channels_first(sensor: Sensor) -> Sensor:
    spec, columns = sensor.spec, sensor.columns
    if len(spec.shape) != 3 or columns is None:
        return sensor
    moved = columns.reshape(spec.shape).transpose(2, 0, 1)
    turned = spec._replace(
        shape=moved.shape,
        dimension_property=(DimensionProperty.NONE, MOVABLE, MOVABLE),
    )
    return Sensor(turned, moved.flatten())
