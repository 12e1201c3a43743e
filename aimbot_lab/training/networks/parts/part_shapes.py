"""What encoders are shown: kinds of units, numbers of each, pictures; loads no torch."""

from collections.abc import Sequence
from typing import NamedTuple

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.settings import NetworkSettings, PictureSettings

PLACE_INPUTS = 5  # ahead and right over the place's scale, unit vector, closeness
IMAGE = "image"


def encoded_blocks(settings: NetworkSettings, spec: WorldSpec) -> tuple[UnitBlock, ...]:
    """The kinds of units that have an encoder, in the world's order."""
    if settings.units is None:
        return ()
    kinds = settings.units.kinds
    return tuple(block for block in spec.units if kinds is None or block.kind in kinds)


def target_blocks(spec: WorldSpec) -> tuple[UnitBlock, ...]:
    """The kinds of units that a target head may choose from, in the world's order."""
    return tuple(block for block in spec.units if block.target)


def target_slots(blocks: Sequence[UnitBlock]) -> int:
    """How many units there are to choose from at most."""
    return sum(block.slots for block in blocks)


def input_size(block: UnitBlock) -> int:
    """Numbers that an encoder is shown of each unit of `block`."""
    labels = sum(map(len, block.labels.values()))
    place = PLACE_INPUTS if block.place else 0
    distance, fixed = block.distance is not None, int(block.fixed.shape[1])
    return len(plain_features(block)) + labels + distance + place + fixed


def plain_features(block: UnitBlock) -> list[str]:
    """Features that are shown over their declared ranges."""
    special = {block.seen, block.distance, *(block.place or ()), *block.labels}
    return [name for name in block.features if name not in special]


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
