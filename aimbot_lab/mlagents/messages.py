"""Messages of ML-Agents' protocol: protobuf's classes, made at run time, and those of a step.

A line of SCHEMA is a message: number, name and type of each field. `*` is a repeated field, `|` one
that is written even where it is empty, and of several at most one. Enumerations are int32. A map is
a list of entries, as it is on the wire, so that it keeps its order. What agents tell and do is
bytes there, which `InfoCodec` and `ActionCodec` read as arrays. The classes live in a pool of their
own, so that they never meet others of the same names.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array
from aimbot_lab.mlagents.exception import UnityCommunicationException

PACKAGE = "aimbot_lab.mlagents"
SCHEMA = """
UnityMessage: 1 header Header, 2 unity_output UnityOutput, 3 unity_input UnityInput
Header: 1 status int32, 2 message string
UnityOutput: 1 rl_output RLOutput, 2 rl_initialization_output bytes
UnityInput: 1 rl_input RLInput, 2 rl_initialization_input bytes
InitOutput: 1 name string, 2 communication_version string, 3 log_path string,
  5 brain_parameters *BrainParameters, 7 package_version string, 8 capabilities Capabilities
InitInput: 1 seed int32, 2 communication_version string, 3 package_version string,
  4 capabilities Capabilities, 5 num_areas int32
Capabilities: 1 baseRLCapabilities bool, 2 concatenatedPngObservations bool,
  3 compressedChannelMapping bool, 4 hybridActions bool, 5 trainingAnalytics bool,
  6 variableLengthObservation bool, 7 multiAgentGroups bool
BrainParameters: 3 vector_action_size_deprecated *int32,
  5 vector_action_descriptions_deprecated *string, 6 vector_action_space_type_deprecated int32,
  7 brain_name string, 8 is_training bool, 9 action_spec ActionSpec
ActionSpec: 1 num_continuous_actions int32, 2 num_discrete_actions int32,
  3 discrete_branch_sizes *int32, 4 action_descriptions *string
RLOutput: 2 agentInfos *Entry, 3 side_channel bytes
Entry: 1 key string, 2 value |bytes
ListOfBytes: 1 value *bytes
ListAgentInfo: 1 value *AgentInfo
AgentInfo: 7 reward float, 8 done bool, 9 max_step_reached bool, 10 id int32,
  11 action_mask *bool, 13 observations *Observation, 14 group_id int32, 15 group_reward float
Observation: 1 shape *int32, 2 compression_type int32, 3 compressed_data |bytes,
  4 float_data |FloatData, 5 compressed_channel_mapping *int32, 6 dimension_properties *int32,
  7 observation_type int32, 8 name string
FloatData: 1 data *float
RLInput: 1 agent_actions *Entry, 4 command int32, 5 side_channel bytes
ListAgentAction: 1 value *AgentAction
AgentAction: 1 vector_actions_deprecated *float, 4 value float, 6 continuous_actions *float,
  7 discrete_actions *int32
AgentInfoActionPair: 1 agent_info AgentInfo, 2 action_info AgentAction
DemonstrationMeta: 1 api_version int32, 2 demonstration_name string, 3 number_steps int32,
  4 number_episodes int32, 5 mean_reward float
"""
_FIELD: Any = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "int32": _FIELD.TYPE_INT32,
    "float": _FIELD.TYPE_FLOAT,
    "bool": _FIELD.TYPE_BOOL,
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
}


OK, SHUT_DOWN = 200, 400  # values of the header's status
STEP, RESET, QUIT = 0, 1, 2  # commands
UNREADABLE = "a message can't be read: it is not one of ML-Agents"


class WireError(UnityCommunicationException):
    """Bytes that are not a message of ML-Agents."""


class TrainerMessage(NamedTuple):
    """What a trainer sends."""

    status: int
    command: int
    actions: dict[str, bytes]  # ListAgentAction of each behavior
    side_channels: bytes
    initialization: bytes  # InitInput, once at the beginning


class BuildMessage(NamedTuple):
    """What a build sends."""

    status: int
    infos: dict[str, bytes]  # ListAgentInfo of each behavior
    side_channels: bytes
    initialization: bytes  # InitOutput, with what is new of behaviors


def read_trainer_message(data: bytes) -> TrainerMessage:
    """What `data`, a UnityMessage, holds. Raises WireError for other bytes."""
    message = parsed("UnityMessage", data)
    content = message.unity_input
    step = content.rl_input
    return TrainerMessage(
        message.header.status,
        step.command,
        {entry.key: entry.value for entry in step.agent_actions},
        step.side_channel,
        content.rl_initialization_input,
    )


def read_build_message(data: bytes) -> BuildMessage:
    """What `data`, a UnityMessage, holds. Raises WireError for other bytes."""
    message = parsed("UnityMessage", data)
    content = message.unity_output
    step = content.rl_output
    infos = {entry.key: entry.value for entry in step.agentInfos}
    return BuildMessage(
        message.header.status, infos, step.side_channel, content.rl_initialization_output
    )


def write_trainer_message(message: TrainerMessage) -> bytes:
    """`message` as a UnityMessage."""
    written = new_message("UnityMessage")
    written.header.status = message.status
    content = written.unity_input
    step = content.rl_input
    if message.command:
        step.command = message.command
    for name, actions in message.actions.items():
        step.agent_actions.add(key=name, value=actions)
    if message.side_channels:
        step.side_channel = message.side_channels
    if message.initialization:
        content.rl_initialization_input = message.initialization
    return bytes(written.SerializeToString())


def write_build_message(message: BuildMessage) -> bytes:
    """`message` as a UnityMessage."""
    written = new_message("UnityMessage")
    written.header.status = message.status
    content = written.unity_output
    step = content.rl_output
    for name, infos in message.infos.items():
        step.agentInfos.add(key=name, value=infos)
    if message.side_channels:
        step.side_channel = message.side_channels
    if message.initialization:
        content.rl_initialization_output = message.initialization
    return bytes(written.SerializeToString())


def new_message(name: str) -> Any:
    """An empty message of the type `name`."""
    return _class(name)()


def parsed(name: str, data: bytes, fault: str = UNREADABLE) -> Any:
    """The message of the type `name` in `data`. Raises WireError, with `fault`, for other bytes."""
    try:
        return _class(name).FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:  # the second one by protobuf in Python
        raise WireError(fault) from error


@cache
def _class(name: str) -> Any:
    found = _pool().FindMessageTypeByName(f"{PACKAGE}.{name}")
    return message_factory.GetMessageClass(found)


@cache
def _pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="aimbot_lab/mlagents.proto", package=PACKAGE, syntax="proto3"
    )
    for line in SCHEMA.replace(",\n  ", ", ").strip().splitlines():
        name, _, fields = line.partition(": ")
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            number, field_name, kind = field.split(" ", 2)
            _add_field(message, field_name, number=int(number), kind=kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_field(message: Any, name: str, *, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if kind.startswith("*") else _FIELD.LABEL_OPTIONAL
    if kind.startswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="data")
        field.oneof_index = 0
    kind = kind.lstrip("*|")
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{PACKAGE}.{kind}"


VARINT, LENGTH, FIXED32 = 0, 2, 5  # kinds of fields
VALUE = 1  # field of a list of messages
Bytes = npt.NDArray[np.uint8]


class RowLayout:
    """Where the numbers of a message, an entry of a list, are in its bytes.

    `add` the parts in their order, then `close`.
    """

    def __init__(self) -> None:
        self._message = b""
        self.places: dict[str, slice] = {}  # of the numbers in a row
        self.row: Bytes  # [L] the entry whose numbers are 0
        self._fixed: Int64Array  # places of the bytes that all rows share

    def add(self, name: str, head: bytes, *, size: int, tail: bytes = b"") -> None:
        """Add `size` bytes of numbers, called `name`, between bytes that all rows share."""
        start = len(self._message) + len(head)
        self._message += head + bytes(size) + tail
        self.places[name] = slice(start, start + size)

    def close(self) -> None:
        """Make the message an entry of a list."""
        self.row = np.frombuffer(write_bytes(VALUE, self._message), np.uint8)
        head = len(self.row) - len(self._message)
        fixed = np.ones(len(self.row), np.bool_)
        for name, at in self.places.items():
            self.places[name] = slice(at.start + head, at.stop + head)
            fixed[self.places[name]] = False
        self._fixed = np.flatnonzero(fixed)

    def alike(self, rows: Bytes) -> BoolArray:
        """[n] Whether each of `rows` [n, L] has the bytes that all share."""
        same: BoolArray = (rows[:, self._fixed] == self.row[self._fixed]).all(axis=1)
        return same


def floats_of(rows: Bytes) -> Float32Array:
    """[n, F] of bytes [n, 4 F]."""
    width = rows.shape[1] // 4
    floats = np.ascontiguousarray(rows).view("<f4").reshape(len(rows), width)
    return floats.astype(np.float32, copy=False)


def bytes_of(values: Float32Array) -> Bytes:
    """[n, 4 F] of values [n] or [n, ...]."""
    floats = np.ascontiguousarray(values, "<f4").reshape(len(values), -1)
    return floats.view(np.uint8)


def tag(number: int, kind: int) -> bytes:
    """What stands before the value of field `number`."""
    return write_varint(number << 3 | kind)


def write_varint(value: int) -> bytes:
    """`value`, from 0 on, in as few bytes as it takes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def write_bytes(number: int, value: bytes) -> bytes:
    """Field `number` with a text, bytes or a message."""
    return tag(number, LENGTH) + write_varint(len(value)) + value


def write_packed(number: int, values: Iterable[int]) -> bytes:
    """Field `number` with packed numbers; a negative one has ten bytes."""
    return write_bytes(number, b"".join(write_varint(value % 2**64) for value in values))
