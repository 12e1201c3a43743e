"""TensorBoard event files read back, with nothing of what writes them."""

import struct


def crc32c(data: bytes) -> int:
    """Bit by bit, as the definition says: the reflected polynomial 0x1EDC6F41."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def records(data):
    """The data of all records; whoever reads a broken one ends there, so this fails."""
    found = []
    while data:
        (length,), (first,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        body, (second,) = data[12 : 12 + length], struct.unpack("<I", data[12 + length :][:4])
        assert (unmasked(first), unmasked(second)) == (crc32c(data[:8]), crc32c(body))
        found.append(body)
        data = data[16 + length :]
    return found


def unmasked(crc):
    rotated = (crc - 0xA282EAD8) % 2**32
    return (rotated >> 17 | rotated << 15) % 2**32


def fields(message):
    """The fields of a protocol buffer: (number, value) in their order."""
    found = []
    while message:
        key, message = varint(message)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, message = varint(message)
        elif kind == 2:
            length, message = varint(message)
            value, message = message[:length], message[length:]
        else:
            form, size = {1: ("<d", 8), 5: ("<f", 4)}[kind]
            (value,), message = struct.unpack(form, message[:size]), message[size:]
        found.append((number, value))
    return found


def varint(data):
    number = shift = 0
    for place, byte in enumerate(data):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, data[place + 1 :]
    raise AssertionError("a torn number")


def scalars(data):
    """(wall time, step, tag, value) of each number in an event file, which begins as it must."""
    first, *rest = map(fields, records(data))
    assert dict(first)[3] == b"brain.Event:2"
    found = []
    for event in map(dict, rest):
        for number, value in fields(event[5]):
            assert number == 1
            tag_and_value = dict(fields(value))
            found.append((event[1], event[2], tag_and_value[1].decode(), tag_and_value[2]))
    return found
