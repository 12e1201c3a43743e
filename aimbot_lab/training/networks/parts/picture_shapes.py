"""Sizes of a picture's encoder, worked out without making it."""

from typing import NamedTuple

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.settings import PictureSettings

IMAGE = "image"


class Convolution(NamedTuple):
    """A layer of filters, as wide as high."""

    filters: int
    kernel: int  # pixels
    stride: int  # pixels
    padding: int  # pixels


def convolutions(settings: PictureSettings) -> tuple[Convolution, ...]:
    """The layers of the encoder; `simple` is that of ML-Agents (its SimpleVisualEncoder)."""
    if settings.encoder == "simple":
        return Convolution(16, 8, 4, 0), Convolution(32, 4, 2, 0)
    return Convolution(8, 3, 2, 1), Convolution(16, 3, 2, 1)


def map_sizes(settings: PictureSettings, height: int, width: int) -> list[tuple[int, int]]:
    """Height and width of what each layer gives; not above 0 where the picture is too small."""
    sizes = []
    for one in convolutions(settings):
        height, width = (
            (side + 2 * one.padding - one.kernel) // one.stride + 1 for side in (height, width)
        )
        sizes.append((height, width))
    return sizes


def picture_shape(spec: WorldSpec) -> tuple[int, int, int]:
    """Channels, height and width of the pictures of `spec`; (0, 0, 0): it shows none."""
    shapes = [block.shape for block in spec.observation_blocks if block.kind == IMAGE]
    if not shapes:
        return 0, 0, 0
    height, width, _ = shapes[0]
    return sum(shape[2] for shape in shapes), height, width


def picture_weights(settings: PictureSettings, spec: WorldSpec) -> int:
    """Weights of the encoder."""
    channels, height, width = picture_shape(spec)
    total = 0
    for one in convolutions(settings):
        total += one.filters * (channels * one.kernel**2 + 1)
        channels = one.filters
    last_height, last_width = map_sizes(settings, height, width)[-1]
    return total + (channels * last_height * last_width + 1) * settings.size
