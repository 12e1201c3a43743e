"""TensorBoard's event files: the numbers of a run as `tensorboard --logdir` reads them.

A file is a row of records (TFRecord): the length of the data as uint64, its masked CRC-32C, the
data, their masked CRC-32C, all little-endian. The data are a protocol buffer `Event`
(tensorboard/compat/proto/event.proto): wall_time = 1 (double, s), step = 2 (int64),
file_version = 3 (string), summary = 5, which repeats value = 1: tag = 1 (string),
simple_value = 2 (float). Numbers have 32 bits there.
"""

import math
import struct
from collections.abc import Callable, Iterable

from aimbot_lab.tracking.journal import MetricsEntry

EVENTS_NAME = "events.out.tfevents.aimbot-lab"  # TensorBoard looks for `tfevents` in names
_FILE_VERSION = b"brain.Event:2"
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected (RFC 3720, appendix B.4)
_MASK = 0xA282EAD8
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5  # wire types of protocol buffers
Write = Callable[[bytes, int], bool]  # of data at a byte offset: whether they were kept


class EventFile:
    """The event file of a run, which `write` keeps; it begins with all that is in `past`."""

    def __init__(self, write: Write, past: Iterable[MetricsEntry], *, time_ms: int) -> None:
        self._write = write
        self._first = _version_record(time_ms)
        self._size = 0
        self._append(b"".join(map(metrics_record, past)))

    def add(self, entry: MetricsEntry) -> None:
        """Add the numbers of one step; what the disk refuses is missing."""
        self._append(metrics_record(entry))

    def _append(self, data: bytes) -> None:
        whole = data if self._size else self._first + data
        if self._write(whole, self._size):
            self._size += len(whole)


def metrics_record(entry: MetricsEntry) -> bytes:
    """The record of an event with all numbers of `entry`; one beyond 32 bits is NaN there."""
    values = b"".join(_field(1, _BYTES, _scalar(*one)) for one in entry.values.items())
    return record(_event(entry.time_ms, _field(2, _VARINT, entry.step), _field(5, _BYTES, values)))


def record(data: bytes) -> bytes:
    """`data` in the frame of a TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _masked_crc(length) + data + _masked_crc(data)


def crc32c(data: bytes) -> int:
    """The cyclic redundancy check CRC-32C of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _table() -> tuple[int, ...]:
    """The remainders of all bytes."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _table()


def _masked_crc(data: bytes) -> bytes:
    crc = crc32c(data)
    rotated = (crc >> 15) | (crc << 17)
    return struct.pack("<I", (rotated + _MASK) & 0xFFFFFFFF)


def _version_record(time_ms: int) -> bytes:
    return record(_event(time_ms, _field(3, _BYTES, _FILE_VERSION)))


def _event(time_ms: int, *fields: bytes) -> bytes:
    return _field(1, _DOUBLE, struct.pack("<d", time_ms / 1000)) + b"".join(fields)


def _scalar(tag: str, value: float) -> bytes:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.nan)
    return _field(1, _BYTES, tag.encode()) + _field(2, _FLOAT, packed)


def _field(number: int, wire_type: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer: its key, and its value as the wire type says."""
    key = _varint(number << 3 | wire_type)
    if isinstance(value, int):
        return key + _varint(value)
    return key + (_varint(len(value)) if wire_type == _BYTES else b"") + value


def _varint(number: int) -> bytes:
    """`number`, not negative, in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
