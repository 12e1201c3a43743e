"""A message that a side channel received."""

import struct
from typing import Any

from aimbot_lab.mlagents.exception import UnitySideChannelException


class TruncatedMessageError(UnitySideChannelException, struct.error):
    """A message ends within a value, for which ML-Agents raises `struct.error`."""


class NotAsciiError(UnitySideChannelException, UnicodeError):
    """Text of a message that is not ASCII, the only kind ML-Agents' messages hold."""


class IncomingMessage:
    """The bytes of a message, read value by value in the order they were written.

    At the end of the message each `read_` returns its default. Raises TruncatedMessageError where
    the message ends within a value.
    """

    def __init__(self, buffer: bytes, offset: int = 0) -> None:
        self.buffer = buffer
        self.offset = offset

    def read_bool(self, default_value: bool = False) -> bool:
        """One byte."""
        return default_value if self._at_end() else bool(self._next("<?"))

    def read_int32(self, default_value: int = 0) -> int:
        """Four bytes, little-endian."""
        return default_value if self._at_end() else int(self._next("<i"))

    def read_float32(self, default_value: float = 0.0) -> float:
        """Four bytes, little-endian."""
        return default_value if self._at_end() else float(self._next("<f"))

    def read_float32_list(self, default_value: list[float] | None = None) -> list[float]:
        """How many as an int32, then each."""
        if self._at_end():
            return [] if default_value is None else default_value
        count = self._length(of=4)
        values = struct.unpack_from(f"<{count}f", self.buffer, self.offset)
        self.offset += 4 * count
        return list(values)

    def read_string(self, default_value: str = "") -> str:
        """How many bytes as an int32, then ASCII. Raises NotAsciiError for other text."""
        if self._at_end():
            return default_value
        length = self._length(of=1)
        text = bytes(self.buffer[self.offset : self.offset + length])
        if not text.isascii():
            raise NotAsciiError(f"a side channel's text is not ASCII: {text[:40]!r}")
        self.offset += length
        return text.decode("ascii")

    def get_raw_bytes(self) -> bytearray:
        """A copy of all bytes."""
        return bytearray(self.buffer)

    def _at_end(self) -> bool:
        return self.offset >= len(self.buffer)

    def _next(self, form: str) -> Any:
        size = struct.calcsize(form)
        self._require(size)
        (value,) = struct.unpack_from(form, self.buffer, self.offset)
        self.offset += size
        return value

    def _length(self, *, of: int) -> int:
        """The number of things to come, each of `of` bytes."""
        count = int(self._next("<i"))
        self._require(count * of if count >= 0 else len(self.buffer) + 1)
        return count

    def _require(self, size: int) -> None:
        left = len(self.buffer) - self.offset
        if left < size:
            raise TruncatedMessageError(
                f"a side channel's message of {len(self.buffer)} bytes ends within a value: "
                f"{left} bytes are left at byte {self.offset}"
            )
