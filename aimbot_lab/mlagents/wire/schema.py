"""The messages' shapes, and protobuf classes made of them at run time.

A line is a message: number, name and type of each field. `*` is a repeated field, `map` one whose
entries have text keys, `|` one of several of which at most one is set. Enumerations are int32.
The classes live in a pool of their own, so that they never meet others of the same names.
"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "aimbot_lab.mlagents"
SCHEMA = """
UnityMessage: 1 header Header, 2 unity_output UnityOutput, 3 unity_input UnityInput
Header: 1 status int32, 2 message string
UnityOutput: 1 rl_output RLOutput, 2 rl_initialization_output InitOutput
UnityInput: 1 rl_input RLInput, 2 rl_initialization_input InitInput
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
RLOutput: 2 agentInfos map ListAgentInfo, 3 side_channel bytes
ListAgentInfo: 1 value *AgentInfo
AgentInfo: 7 reward float, 8 done bool, 9 max_step_reached bool, 10 id int32,
  11 action_mask *bool, 13 observations *Observation, 14 group_id int32, 15 group_reward float
Observation: 1 shape *int32, 2 compression_type int32, 3 compressed_data |bytes,
  4 float_data |FloatData, 5 compressed_channel_mapping *int32, 6 dimension_properties *int32,
  7 observation_type int32, 8 name string
FloatData: 1 data *float
RLInput: 1 agent_actions map ListAgentAction, 4 command int32, 5 side_channel bytes
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


def new_message(name: str) -> Any:
    """An empty message of the type `name`."""
    found = _pool().FindMessageTypeByName(f"{PACKAGE}.{name}")
    return message_factory.GetMessageClass(found)()


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
    repeated = kind.startswith(("*", "map "))
    field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
    if kind.startswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="data")
        field.oneof_index = 0
    if kind.startswith("map "):
        _set_type(field, _entry(message, name, kind.removeprefix("map ")))
    else:
        _set_type(field, kind.lstrip("*|"))


def _entry(message: Any, field_name: str, value: str) -> str:
    """The nested type of the entries of a map, as protobuf names it."""
    parts = field_name.split("_")
    entry = message.nested_type.add(
        name="".join(part[0].upper() + part[1:] for part in parts) + "Entry"
    )
    entry.options.map_entry = True
    _add_field(entry, "key", number=1, kind="string")
    _add_field(entry, "value", number=2, kind=value)
    return f"{message.name}.{entry.name}"


def _set_type(field: Any, kind: str) -> None:
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
