"""A message that a side channel sends."""

import struct

from aimbot_lab.mlagents.exception import UnitySideChannelException
from aimbot_lab.mlagents.side_channel.incoming_message import NotAsciiError


class OutgoingMessage:
    """Bytes of a message, written value by value, little-endian.

    Raises UnitySideChannelException for a value that its type can't hold.
    """

    def __init__(self) -> None:
        self.buffer = bytearray()

    def write_bool(self, b: bool) -> None:
        """One byte."""
        self.buffer += struct.pack("<?", b)

    def write_int32(self, i: int) -> None:
        """Four bytes."""
        self.buffer += _packed("<i", i)

    def write_float32(self, f: float) -> None:
        """Four bytes, rounded to single precision."""
        self.buffer += _packed("<f", f)

    def write_float32_list(self, float_list: list[float]) -> None:
        """How many as an int32, then each."""
        self.write_int32(len(float_list))
        for value in float_list:
            self.write_float32(value)

    def write_string(self, s: str) -> None:
        """How many bytes as an int32, then ASCII. Raises NotAsciiError for other text."""
        if not s.isascii():
            raise NotAsciiError(f"a side channel sends ASCII only (got {s[:40]!a})")
        self.write_int32(len(s))
        self.buffer += s.encode("ascii")

    def set_raw_bytes(self, buffer: bytes | bytearray) -> None:
        """Set all bytes, in the place of what was written before."""
        self.buffer = bytearray(buffer)


def _packed(form: str, value: float) -> bytes:
    try:
        return struct.pack(form, value)
    except (struct.error, OverflowError) as error:
        kind = "an int32" if form == "<i" else "a float32"
        raise UnitySideChannelException(f"{value!r:.40} can't be sent as {kind}") from error
