"""Agents' infos with a picture that is compressed, as PNG files of 8 bits a shade."""

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.mlagents.base_env import (
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    ObservationSpec,
    TerminalSteps,
)
from aimbot_lab.mlagents.info_codec import (
    COMPRESSION,
    DIMENSIONS,
    NAME,
    OBSERVATION,
    SHAPE,
    InfoCodec,
)
from aimbot_lab.mlagents.messages import parsed
from aimbot_lab.mlagents.row_layout import (
    VALUE,
    VARINT,
    Bytes,
    tag,
    write_bytes,
    write_packed,
    write_varint,
)

DATA, MAPPING, PNG = 3, 5, 1  # fields of an observation, and its kind of compression
SHADES = 3  # of a pixel of each file
FRAME = 128  # bytes of a file beside its pixels, and of what is around
DECIDING = "reward", "agent_id", "action_mask", "group_id", "group_reward"
ENDED = "reward", "interrupted", "agent_id", "group_id", "group_reward"


class PictureInfoCodec:
    """Writes ListAgentInfo messages whose first observation is a picture of shades 0 to 1.

    Other observations and all else go as `InfoCodec` writes them.
    """

    def __init__(self, spec: BehaviorSpec) -> None:
        self._sensor, *others = spec.observation_specs
        self._others = InfoCodec(BehaviorSpec(others, spec.action_spec))
        self._tail = _tail(self._sensor)

    @property
    def longest_info(self) -> int:
        """Bytes that an agent takes at most: those of pixels that can't be compressed."""
        height, width, channels = pixels_shape(self._sensor)
        files = -(-channels // SHADES)
        picture = files * (height * (1 + SHADES * width) + FRAME)
        return self._others.longest_info + picture + picture // 1000 + len(self._tail) + FRAME

    def encode(self, decisions: DecisionSteps, terminals: TerminalSteps) -> bytes:
        """Both as a ListAgentInfo, those that ended first. Ids are from 0 on."""
        pictures = [*terminals.obs[0], *decisions.obs[0]]
        data = self._others.encode(
            DecisionSteps(decisions.obs[1:], *_beside(decisions, DECIDING)),
            TerminalSteps(terminals.obs[1:], *_beside(terminals, ENDED)),
        )
        infos = parsed("ListOfBytes", data).value
        return b"".join(
            write_bytes(VALUE, self._picture(picture) + info)
            for picture, info in zip(pictures, infos, strict=True)
        )

    def _picture(self, picture: Float32Array) -> bytes:
        """An observation, as a field of an info."""
        pixels = picture.reshape(self._sensor.shape)
        if channels_first(self._sensor):
            pixels = pixels.transpose(1, 2, 0)
        files = b"".join(map(png_file, in_threes(np.rint(pixels * 255.0).astype(np.uint8))))
        return write_bytes(OBSERVATION, write_bytes(DATA, files) + self._tail)


def channels_first(sensor: ObservationSpec) -> bool:
    """Whether the first dimension of a picture is its channels."""
    return sensor.dimension_property[0] == DimensionProperty.NONE


def pixels_shape(sensor: ObservationSpec) -> tuple[int, int, int]:
    """Height, width and channels of a picture."""
    one, two, three = sensor.shape
    return (two, three, one) if channels_first(sensor) else (one, two, three)


def in_threes(pixels: Bytes) -> list[Bytes]:
    """Pixels [H, W, C] as pictures of three shades: a single one thrice, zeros after the last."""
    if pixels.shape[2] == 1:
        return [np.repeat(pixels, SHADES, axis=2)]
    padded = np.pad(pixels, ((0, 0), (0, 0), (0, -pixels.shape[2] % SHADES)))
    return np.split(padded, padded.shape[2] // SHADES, axis=2)


def png_file(pixels: Bytes) -> bytes:
    """`pixels` [H, W, 3] as a PNG file, without filters."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + SHADES * width), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def _tail(sensor: ObservationSpec) -> bytes:
    """The fields of an observation beside the pixels."""
    channels = pixels_shape(sensor)[2]
    tail = write_packed(SHAPE, sensor.shape) + tag(COMPRESSION, VARINT) + write_varint(PNG)
    if channels not in (1, SHADES):  # 1 and 3 need no mapping: the mean, or each as it is
        unused = [-1] * (-channels % SHADES)
        tail += write_packed(MAPPING, [*range(channels), *unused])
    tail += write_packed(DIMENSIONS, map(int, sensor.dimension_property))
    return tail + write_bytes(NAME, sensor.name.encode("utf-8"))


def _beside(steps: DecisionSteps | TerminalSteps, names: Sequence[str]) -> list[Any]:
    return [getattr(steps, name) for name in names]
