"""Protobuf's bytes: fields one after the other, read without classes and written from parts.

Source: protobuf's documentation, "Encoding". A field is a varint of its number and kind, then its
value. What a reader does not know it passes over; where a number has another kind than declared,
that field is unknown, too.
"""

from collections.abc import Iterator
from typing import NamedTuple

from aimbot_lab.mlagents.exception import UnityCommunicationException

VARINT, FIXED64, LENGTH, BEGIN_GROUP, END_GROUP, FIXED32 = range(6)
MAX_NESTING = 100  # groups in each other, as in protobuf


class WireError(UnityCommunicationException):
    """Bytes that are not a message of ML-Agents."""


class Field(NamedTuple):
    """One field of a message: `value` is the number itself, or where its bytes begin and end."""

    number: int
    kind: int
    value: int  # of a varint
    start: int
    end: int


def varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    """The number that begins at `place`, below 2**64, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= end:
            raise WireError(f"a message ends within a number, at byte {place}")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, place
    raise WireError(f"a number of a message is longer than 64 bits, at byte {place}")


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of the message in `data` from `start` to `end`. Raises WireError for others."""
    place, end = start, len(data) if end is None else end
    groups: list[int] = []
    while place < end:
        field = _field(data, place, end)
        place = field.end
        if field.kind == BEGIN_GROUP:
            groups.append(field.number)
            if len(groups) > MAX_NESTING:
                raise WireError("a message has too many groups in each other")
        elif field.kind == END_GROUP:
            if not groups or groups.pop() != field.number:
                raise WireError(f"a message ends a group that did not begin, at byte {place}")
        elif not groups:
            yield field
    if groups:
        raise WireError("a message ends within a group")


def _field(data: bytes, place: int, end: int) -> Field:
    tag, place = varint(data, place, end)
    number, kind, value = tag >> 3, tag & 7, 0
    if not 0 < number < 1 << 29 or kind > FIXED32:
        raise WireError(f"a message has no field at byte {place}: {tag} is not a number and kind")
    start = place
    if kind == VARINT:
        value, place = varint(data, place, end)
    elif kind == LENGTH:
        length, start = varint(data, place, end)
        place = start + length
    elif kind in (FIXED32, FIXED64):
        place += 4 if kind == FIXED32 else 8
    if place > end:
        raise WireError(f"a message is cut off: it goes to byte {place}, and ends at {end}")
    return Field(number, kind, value, start, place)


def packed_numbers(data: bytes, field: Field) -> Iterator[int]:
    """The numbers, each below 2**64, of a packed field."""
    place = field.start
    while place < field.end:
        value, place = varint(data, place, field.end)
        yield value


def joined(data: bytes, number: int) -> bytes:
    """The message in field `number` of the message `data`; empty where there is none.

    One that comes in several parts is their sum: so protobuf merges them.
    """
    parts = [data[f.start : f.end] for f in fields(data) if (f.number, f.kind) == (number, LENGTH)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def bytes_of(data: bytes, number: int) -> bytes:
    """The bytes in field `number` of the message `data`; empty where there are none."""
    value = b""
    for field in fields(data):
        if (field.number, field.kind) == (number, LENGTH):
            value = data[field.start : field.end]
    return value


def number_of(data: bytes, number: int) -> int:
    """The int32 in field `number` of the message `data`; 0 where there is none."""
    value = 0
    for field in fields(data):
        if (field.number, field.kind) == (number, VARINT):
            value = signed32(field.value)
    return value


def text_of(data: bytes, start: int, end: int) -> str:
    """The text between the places. Raises WireError where it is none."""
    try:
        return data[start:end].decode("utf-8")
    except UnicodeDecodeError:
        raise WireError(f"a text of a message is not UTF-8: {data[start:end][:40]!r}") from None


def entries_of(data: bytes, number: int) -> dict[str, bytes]:
    """The map in field `number` of the message `data`, whose values are messages."""
    found = {}
    for field in fields(data):
        if (field.number, field.kind) != (number, LENGTH):
            continue
        entry, key = data[field.start : field.end], ""
        for part in fields(entry):
            if (part.number, part.kind) == (1, LENGTH):
                key = text_of(entry, part.start, part.end)
        found[key] = joined(entry, 2)
    return found


def signed32(value: int) -> int:
    """The int32 that a varint means: its lower 32 bits, with a sign."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def write_varint(value: int, width: int = 0) -> bytes:
    """`value`, from 0 on, in as few bytes as it takes, or padded to `width`."""
    out = bytearray()
    while value > 0x7F or len(out) + 1 < width:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def write_bytes(number: int, value: bytes) -> bytes:
    """Field `number` with a text, bytes or a message."""
    return write_varint(number << 3 | LENGTH) + write_varint(len(value)) + value


def write_number(number: int, value: int) -> bytes:
    """Field `number` with a number from 0 on."""
    return write_varint(number << 3 | VARINT) + write_varint(value)
