"""What a build is to a world: its agents' observations and actions, and what it says of itself."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import (
    COLUMNS,
    Float32Array,
    ObservationBlock,
    Observations,
    WorldSpec,
)
from aimbot_lab.mlagents.base_env import BehaviorSpec, DimensionProperty, ObservationSpec
from aimbot_lab.worlds.unity.settings import TARGET, UnitySettings


class BuildShape(NamedTuple):
    """What one process of a build showed when it was asked."""

    behavior: str  # that learns, without its team
    spec: BehaviorSpec
    agents: int  # of that behavior, in one process
    told: Mapping[str, Any]  # fields of a WorldSpec; empty where the build says nothing


def plain_name(behavior: str) -> str:
    """The name of a behavior without its team: `Name` of `Name?team=0`."""
    return behavior.partition("?")[0]


def learned_behavior(names: tuple[str, ...], settings: UnitySettings) -> str:
    """The one of `names`, behaviors with teams, that learns, without its team.

    Raises ConfigurationError where it is not there, or where none of several is chosen.
    """
    plain = tuple(dict.fromkeys(map(plain_name, names)))
    listed = ", ".join(plain)
    if settings.behavior is None and len(plain) > 1:
        raise ConfigurationError(f"env.behavior: the build has several, choose one: {listed}")
    if settings.behavior is not None and settings.behavior not in plain:
        raise ConfigurationError(
            f"env.behavior: the build has no behavior {settings.behavior} (it has {listed})"
        )
    return settings.behavior or plain[0]


def sensor_order(spec: BehaviorSpec) -> list[int]:
    """Places of the sensors in the order in which they stand in an observation: by name."""
    sensors = spec.observation_specs
    return sorted(range(len(sensors)), key=lambda place: sensors[place].name)


def is_channels_first(sensor: ObservationSpec) -> bool:
    """Whether a picture's channels come before its height and width."""
    translational = DimensionProperty.TRANSLATIONAL_EQUIVARIANCE
    return len(sensor.shape) == 3 and sensor.dimension_property == (
        DimensionProperty.NONE,
        translational,
        translational,
    )


def observed(obs: list[Float32Array], spec: BehaviorSpec, world: WorldSpec) -> Observations:
    """[n] what n agents of a behavior with `spec` see, all of which is finite, as `world` has it.

    Shades of pictures, from 0 to 1, become whole 255ths. Raises ValueError for another shape.
    """
    numbers, pictures = [np.zeros((len(obs[0]), 0), np.float32)], []
    for place in sensor_order(spec):
        seen = obs[place]
        if seen.ndim == 4:
            first = is_channels_first(spec.observation_specs[place])
            pictures.append(np.moveaxis(seen, 1, 3) if first else seen)
        else:
            numbers.append(seen.reshape(len(seen), int(np.prod(seen.shape[1:]))))
    columns = numbers[1] if len(numbers) == 2 else np.concatenate(numbers, axis=1)
    if not world.pictures:
        return columns
    found = np.zeros(len(columns), world.observation_dtype)
    found[COLUMNS] = columns
    for block, shades in zip(world.pictures, pictures, strict=True):
        found[block.name] = np.rint(np.clip(shades, 0.0, 1.0) * 255.0)
    return found


def _block(sensor: ObservationSpec, taken: set[str]) -> ObservationBlock:
    shape, name = sensor.shape, sensor.name or "sensor"
    while name in taken:
        name += "'"
    taken.add(name)
    if len(shape) != 3:
        return ObservationBlock(name, "vector", (int(np.prod(shape)),))
    last = (*shape[1:], shape[0]) if is_channels_first(sensor) else shape
    return ObservationBlock(name, "image", last)


def world_spec(shape: BuildShape, settings: UnitySettings) -> WorldSpec:
    """The spec of a world of builds of `shape`, with what the build says of its own world."""
    taken: set[str] = {COLUMNS}
    sensors = shape.spec.observation_specs
    blocks = tuple(_block(sensors[place], taken) for place in sensor_order(shape.spec))
    names = tuple(f"{one.name}[{column}]" for one in blocks for column in range(one.columns))
    bound = np.full(len(names), np.inf, np.float32)
    actions = shape.spec.action_spec
    fields: dict[str, Any] = {
        "observation_names": names,
        "observation_low": -bound,
        "observation_high": bound,
        "blocks": blocks,
        "targets": {TARGET: 1},
        "difficulties": {TARGET: 0},
        "parameters": (),
        "time_unit": "steps",
    }
    fields |= _fitting(shape.told, len(names) if len(sensors) == 1 else None)
    if settings.targets is not None:
        fields["difficulties"] = dict(settings.targets)
        fields["targets"] = {name: code for code, name in enumerate(settings.targets, start=1)}
    return WorldSpec(
        branches=actions.discrete_branches,
        continuous=actions.continuous_size,
        continuous_limit=1.0,
        reward_terms=("reward",),
        abilities=frozenset({"masks"} if actions.discrete_branches else ()),
        **fields,
    )


def _fitting(told: Mapping[str, Any], columns: int | None) -> dict[str, Any]:
    """`told` without its columns, unless agents see so many in the world's own order."""
    about_columns = ("observation_names", "observation_low", "observation_high", "blocks")
    if told and len(told["observation_names"]) == columns:
        return dict(told)
    return {name: value for name, value in told.items() if name not in about_columns}
