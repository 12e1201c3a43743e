"""What encoders are shown: kinds of units, numbers of each, pictures; loads no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.settings import NetworkSettings, PictureSettings

PLACE_INPUTS = 5  # ahead and right over the place's scale, unit vector, closeness


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


ENCODERS: Mapping[str, tuple[Convolution, ...]] = MappingProxyType(
    {
        "nature": (
            Convolution(32, 8, 4, 0),
            Convolution(64, 4, 2, 0),
            Convolution(64, 3, 1, 0),
        ),
        "impala": tuple(Convolution(filters, 3, 2, 1) for filters in (16, 32, 32)),  # sections
        "small": (Convolution(8, 3, 2, 1), Convolution(16, 3, 2, 1)),
        "simple": (Convolution(16, 8, 4, 0), Convolution(32, 4, 2, 0)),
    }
)
"""The layers of each encoder: stable-baselines3's NatureCNN (Mnih et al. 2015), the residual one of
IMPALA (Espeholt et al. 2018), ours, and ML-Agents' SimpleVisualEncoder."""
SIZES: Mapping[str, int] = MappingProxyType(
    {"nature": 256, "impala": 256, "small": 64, "simple": 64}
)
NATURE_ALONE = 512  # features of a picture that is all there is, as stable-baselines3 has it


def map_sizes(encoder: str, height: int, width: int) -> list[tuple[int, int]]:
    """Height and width of what each layer gives; not above 0 where the picture is too small."""
    sizes = []
    for one in ENCODERS[encoder]:
        height, width = (
            (side + 2 * one.padding - one.kernel) // one.stride + 1 for side in (height, width)
        )
        sizes.append((height, width))
    return sizes


def fits(encoder: str, spec: WorldSpec) -> bool:
    """Whether the pictures of `spec` are large enough for `encoder`."""
    sizes = [map_sizes(encoder, *block.shape[:2]) for block in spec.pictures]
    return min(side for maps in sizes for pair in maps for side in pair) >= 1


def resolved_picture(settings: NetworkSettings, spec: WorldSpec) -> PictureSettings:
    """How the pictures of `spec` are encoded, with what `settings` leave open."""
    picture = settings.picture or PictureSettings()
    encoder = picture.encoder or ("nature" if fits("nature", spec) else "small")
    alone = len(spec.pictures) == 1 and (picture.alone or not spec.observation_names)
    size = NATURE_ALONE if encoder == "nature" and alone else SIZES[encoder]
    return replace(picture, encoder=encoder, size=picture.size or size)


def picture_weights(settings: PictureSettings, shape: Sequence[int]) -> int:
    """Weights of the encoder of pictures [H, W, C]."""
    assert settings.encoder is not None
    assert settings.size is not None
    height, width, channels = shape
    total = 0
    for one in ENCODERS[settings.encoder]:
        total += one.filters * (channels * one.kernel**2 + 1)
        if settings.encoder == "impala":
            total += 4 * one.filters * (one.filters * one.kernel**2 + 1)
        channels = one.filters
    last_height, last_width = map_sizes(settings.encoder, height, width)[-1]
    return total + (channels * last_height * last_width + 1) * settings.size
