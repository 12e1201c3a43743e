"""Behaviors of a build as its messages introduce them, and the codecs of their agents."""

from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError

from aimbot_lab.mlagents.actions import ActionSpec
from aimbot_lab.mlagents.behaviors import (
    BehaviorSpec,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)
from aimbot_lab.mlagents.handshake import action_specs
from aimbot_lab.mlagents.wire.action_codec import ActionCodec
from aimbot_lab.mlagents.wire.exchange import BuildMessage
from aimbot_lab.mlagents.wire.info_codec import InfoCodec
from aimbot_lab.mlagents.wire.info_layout import VALUE
from aimbot_lab.mlagents.wire.schema import new_message
from aimbot_lab.mlagents.wire.wire_format import LENGTH, WireError, fields


class Behavior(NamedTuple):
    """A behavior that has shown an agent."""

    spec: BehaviorSpec
    infos: InfoCodec
    actions: ActionCodec


class Behaviors:
    """All behaviors of one build, as they come."""

    def __init__(self) -> None:
        self._actions: dict[str, ActionSpec] = {}
        self.known: dict[str, Behavior] = {}

    def of(self, message: BuildMessage) -> Mapping[str, Behavior]:
        """The behaviors of the agents in `message`. Raises WireError for one never introduced."""
        if message.initialization:
            self._actions |= action_specs(message.initialization)
        for name in message.infos.keys() - self.known.keys():
            self._learn(name, message.infos[name])
        return self.known

    def _learn(self, name: str, infos: bytes) -> None:
        sensors = observation_specs(infos)
        if sensors is None:  # no agent yet
            return
        if name not in self._actions:
            raise WireError(f"behavior {name!a:.60} has agents, but was never introduced")
        spec = BehaviorSpec(sensors, self._actions[name])
        self.known[name] = Behavior(spec, InfoCodec(spec), ActionCodec(spec.action_spec))


def observation_specs(infos: bytes) -> list[ObservationSpec] | None:
    """The sensors of the first agent in `infos`, a ListAgentInfo; None: there is no agent."""
    first = next((one for one in fields(infos) if (one.number, one.kind) == (VALUE, LENGTH)), None)
    if first is None:
        return None
    info = new_message("AgentInfo")
    try:
        info.ParseFromString(infos[first.start : first.end])
    except DecodeError as error:
        raise WireError("an agent of a build can't be read") from error
    return [_sensor(seen) for seen in info.observations]


def _sensor(seen: object) -> ObservationSpec:
    shape = tuple(int(size) for size in seen.shape)  # type: ignore[attr-defined]
    given = [DimensionProperty(one) for one in seen.dimension_properties]  # type: ignore[attr-defined]
    unspecified = (DimensionProperty.UNSPECIFIED,) * len(shape)
    kind = int(seen.observation_type)  # type: ignore[attr-defined]
    known = {one.value for one in ObservationType}
    return ObservationSpec(
        shape=shape,
        dimension_property=tuple(given) if len(given) == len(shape) else unspecified,
        observation_type=ObservationType(kind if kind in known else 0),
        name=str(seen.name),  # type: ignore[attr-defined]
    )
