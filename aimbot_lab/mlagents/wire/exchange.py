"""Whole messages of a step: what a trainer sends, and what a build answers."""

from collections.abc import Mapping
from typing import NamedTuple

from aimbot_lab.mlagents.wire.wire_format import (
    bytes_of,
    entries_of,
    joined,
    number_of,
    write_bytes,
    write_number,
)

OK, SHUT_DOWN = 200, 400  # values of the header's status
STEP, RESET, QUIT = 0, 1, 2  # commands
# Numbers of fields: of the message, of its output and input, of what is told in a step.
HEADER, OUTPUT, INPUT = 1, 2, 3
RL, INITIALIZATION = 1, 2
ACTIONS, COMMAND, INPUT_CHANNELS = 1, 4, 5
INFOS, OUTPUT_CHANNELS = 2, 3


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
    """What `data`, a UnityMessage, holds. Raises WireError where it is none."""
    unity_input = joined(data, INPUT)
    step = joined(unity_input, RL)
    return TrainerMessage(
        number_of(joined(data, HEADER), 1),
        number_of(step, COMMAND),
        entries_of(step, ACTIONS),
        bytes_of(step, INPUT_CHANNELS),
        joined(unity_input, INITIALIZATION),
    )


def read_build_message(data: bytes) -> BuildMessage:
    """What `data`, a UnityMessage, holds. Raises WireError where it is none."""
    output = joined(data, OUTPUT)
    step = joined(output, RL)
    return BuildMessage(
        number_of(joined(data, HEADER), 1),
        entries_of(step, INFOS),
        bytes_of(step, OUTPUT_CHANNELS),
        joined(output, INITIALIZATION),
    )


def write_trainer_message(message: TrainerMessage) -> bytes:
    """`message` as a UnityMessage."""
    step = _entries(ACTIONS, message.actions)
    step += write_number(COMMAND, message.command) if message.command else b""
    step += _optional(INPUT_CHANNELS, message.side_channels)
    content = _optional(RL, step) + _optional(INITIALIZATION, message.initialization)
    return _header(message.status) + _optional(INPUT, content)


def write_build_message(message: BuildMessage) -> bytes:
    """`message` as a UnityMessage."""
    step = _entries(INFOS, message.infos) + _optional(OUTPUT_CHANNELS, message.side_channels)
    content = _optional(RL, step) + _optional(INITIALIZATION, message.initialization)
    return _header(message.status) + _optional(OUTPUT, content)


def _header(status: int) -> bytes:
    return write_bytes(HEADER, write_number(1, status))


def _entries(field: int, entries: Mapping[str, bytes]) -> bytes:
    """A map of messages."""
    return b"".join(
        write_bytes(field, write_bytes(1, key.encode("utf-8")) + write_bytes(2, value))
        for key, value in entries.items()
    )


def _optional(field: int, value: bytes) -> bytes:
    return write_bytes(field, value) if value else b""
