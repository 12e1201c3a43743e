"""Settings of a Unity world, and the shape that its build has."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import numpy as np
from annotated_types import MinLen
from pydantic import Discriminator, Tag

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.foundation.world import (
    COLUMNS,
    WITHOUT_WINS,
    Float32Array,
    ObservationBlock,
    Observations,
    WorldSpec,
)
from aimbot_lab.mlagents.base_env import BehaviorSpec, ObservationSpec, is_channels_first
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

TARGET = "task"
"""The one target of a build that names no others."""
OtherActions = Literal["zeros", "random"]
Port = Annotated[Int, Ge(1024), Le(65535)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnityWinRule:
    """What counts as a won episode of a build that sends no result lines: one of these."""

    return_above: Annotated[Float, Ge(-1e12), Le(1e12)] | None = None
    """The sum of its rewards is this or more."""
    stat: Annotated[str, MinLen(1)] | None = None
    """The build's stat of this name, sent once for each episode with its end, is above 0.5."""

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"must have exactly one of return_above, stat (got {', '.join(given) or 'none'})"
            )


def _kind_of_win(value: object) -> str | None:
    return "rule" if not isinstance(value, str) else "word" if value == "none" else None


Winning = Annotated[
    Annotated[UnityWinRule, Tag("rule")] | Annotated[Literal["none"], Tag("word")],
    Discriminator(
        _kind_of_win,
        custom_error_type="win_type",
        custom_error_message="must be none, or a mapping with return_above or stat",
    ),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnitySettings:
    """Agents in as many processes of a build as they need."""

    world: Literal["unity"] = "unity"
    """The world."""
    file_name: Annotated[str, MinLen(1)] | None = None
    """The build's program; null: wait for an editor in which you press Play."""
    env_args: tuple[str, ...] = ()
    """Arguments for the build."""
    num_envs: Annotated[Int, Ge(1), Le(65536)] = 8
    """How many agents are stepped together, in as many processes as that takes."""
    threads: Annotated[Int, Ge(1), Le(1024)] = 1
    """No effect: a build has its own threads. The key exists so that curricula of other worlds only
    need another world."""
    behavior: Annotated[str, MinLen(1)] | None = None
    """The behavior that learns, without its team; needed only if a build has several."""
    others: Mapping[str, OtherActions] = field(default_factory=dict)
    """What to send to behaviors that don't learn, by name: zeros (the default) or random
    actions."""
    targets: Mapping[str, Annotated[Int, Ge(0), Le(100)]] | None = None
    """Targets in result lines and lessons, each with its number of difficulties (0: none). By
    default those that the build sends, or one target `task`."""
    win: Winning | None = None
    """What counts as a win; by default result lines decide; `none`: nothing does, and
    mean returns count."""
    log_channel: str = str(STRING_LOG)
    """Id of the side channel for result lines."""
    no_graphics: Bool = True
    """Whether the build runs without pictures."""
    timeout_wait: Annotated[Float, Gt(0), Le(1e6)] = 60.0
    """Seconds that a build may take to start or to step; after that it counts as hanging."""
    base_port: Port | None = None
    """Process i uses this port + i; by default any free port. An editor uses 5004."""
    log_folder: Annotated[str, MinLen(1)] | None = None
    """Folder for the builds' logs, Player-0.log and so on."""
    max_lifetime_restarts: Annotated[Int, Ge(-1), Le(10**9)] = 10
    """How often a process that was killed or hangs is restarted; -1: always."""
    restarts_rate_limit_n: Annotated[Int, Ge(-1), Le(10**9)] = 1
    """How often within `restarts_rate_limit_period_s`; -1: always."""
    restarts_rate_limit_period_s: Annotated[Float, Gt(0), Le(1e9)] = 60.0
    """This period, in seconds."""
    width: Annotated[Int, Ge(1), Le(65536)] = 84
    """Width of the screen in pixels."""
    height: Annotated[Int, Ge(1), Le(65536)] = 84
    """Height of the screen in pixels."""
    quality_level: Annotated[Int, Ge(0), Le(100)] = 5
    """Quality of the pictures."""
    time_scale: Annotated[Float, Gt(0), Le(100)] = 20.0
    """Game seconds per real second."""
    target_frame_rate: Annotated[Int, Ge(-1), Le(10**6)] = -1
    """Frames per second; -1: as many as possible."""
    capture_frame_rate: Annotated[Int, Ge(0), Le(10**6)] = 60
    """Frames per game second; 0: by the real clock."""

    def __post_init__(self) -> None:
        if self.targets is not None and not self.targets:
            raise ValueError("targets must name at least one")
        try:
            UUID(self.log_channel)
        except ValueError:
            raise ValueError(
                f"log_channel must be an id such as {STRING_LOG} (got {self.log_channel!r:.60})"
            ) from None


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
    for name in settings.others:
        if name not in plain:
            raise ConfigurationError(
                f"env.others: the build has no behavior {name} (it has {listed})"
            )
    return settings.behavior or plain[0]


def observed(obs: list[Float32Array], spec: BehaviorSpec, world: WorldSpec) -> Observations:
    """[n] what n agents of a behavior with `spec` see, all of which is finite, as `world` has it.

    Shades of pictures, from 0 to 1, become whole 255ths. Raises ValueError for another shape.
    """
    numbers, pictures = [np.zeros((len(obs[0]), 0), np.float32)], []
    for seen, sensor in zip(obs, spec.observation_specs, strict=True):
        if seen.ndim == 4:
            pictures.append(np.moveaxis(seen, 1, 3) if is_channels_first(sensor) else seen)
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
    if len(shape) == 2:
        return ObservationBlock(name, "rays", shape, name)
    if len(shape) != 3:
        return ObservationBlock(name, "vector", (int(np.prod(shape)),), name)
    last = (*shape[1:], shape[0]) if is_channels_first(sensor) else shape
    return ObservationBlock(name, "image", last, name)


def world_spec(shape: BuildShape, settings: UnitySettings) -> WorldSpec:
    """The spec of a world of builds of `shape`, with what the build says of its own world.

    Sensors stand in the build's order, which is Unity's: by name.
    """
    taken: set[str] = {COLUMNS}
    sensors = shape.spec.observation_specs
    blocks = tuple(_block(sensor, taken) for sensor in sensors)
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
    if settings.win == "none":
        fields |= {"time_column": None, **WITHOUT_WINS}
    return WorldSpec(
        branches=actions.discrete_branches,
        continuous=actions.continuous_size,
        continuous_limit=1.0,
        reward_terms=("reward",),
        abilities=frozenset({"masks"} if actions.discrete_branches else ()),
        **fields,
    )


def _fitting(told: Mapping[str, Any], columns: int | None) -> dict[str, Any]:
    """`told` without its columns, unless agents see as many, in the world's own order."""
    about_columns = ("observation_names", "observation_low", "observation_high", "blocks")
    if told and len(told["observation_names"]) == columns:
        return dict(told)
    return {name: value for name, value in told.items() if name not in about_columns}
