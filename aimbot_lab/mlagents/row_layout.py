"""Messages of one length as rows of an array, read and written all at once.

Source: protobuf's documentation, "Encoding": a field is a varint of its number and kind, then its
value.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array

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
