"""Settings of networks, and the shapes of the parts that they ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Protocol

from aimbot_lab.foundation.settings import STRICT, Bool, Ge, Int, Le, dataclass
from aimbot_lab.foundation.world import UnitBlock, WorldSpec

MAX_UNITS = 4096
Units = Annotated[Int, Ge(1), Le(MAX_UNITS)]
Encoder = Literal["nature", "impala", "small", "simple"]
Activation = Literal["tanh", "relu"]
Scaling = Literal["none", "ranges", "running"]
MAX_LAYERS = 32
EGOCENTRIC = 5  # columns that are worked out of these
EGOCENTRIC_COLUMNS = {
    "base_x": "fire_base_x",
    "base_z": "fire_base_z",
    "x": "agent_x",
    "z": "agent_z",
    "cosine": "cos_yaw",
    "sine": "sin_yaw",
    "diameter": "fire_base_diameter",
}


class KindOfNetwork(Protocol):
    """What the settings of every network have: a frozen pydantic dataclass."""

    @property
    def kind(self) -> str:
        """The network's name in the registry."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnitsSettings:
    """Encoders of units, one for each kind: the same weights for all its units."""

    layers: tuple[Units, ...] = (32, 32)
    """Units of each layer; the last one's output is pooled over the units in sight."""
    keys: Units | None = None
    """Numbers of a unit's key for train.target attention, by default 16."""
    kinds: tuple[str, ...] | None = None
    """Kinds of units to encode, such as rays and enemies; by default all that the world shows."""

    def __post_init__(self) -> None:
        _check_layers(self.layers)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PictureSettings:
    """Convolutions that encode each picture that the world shows."""

    encoder: Encoder | None = None
    """`nature`: stable-baselines3's NatureCNN, for pictures from 36 x 36 pixels on; `impala`: three
    residual sections; `small`: 8 and 16 filters of 3 x 3 pixels with stride 2; `simple`: that of
    ML-Agents, 16 of 8 x 8 with stride 4 and 32 of 4 x 4 with stride 2, for pictures from 20 x 20
    pixels on. Left out, `nature`, or `small` where the picture is too small for it."""
    size: Units | None = None
    """Units of the layer after them; by default 512 with `nature` if the agent sees nothing else,
    256 with `nature` and `impala` otherwise, 64 with the others."""
    alone: Bool = False
    """Whether the agent sees the picture and nothing else."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MemorySettings:
    """A layer of long short-term memory after the encoders."""

    size: Units = 64
    """Size of the state."""
    sequence_length: Annotated[Int, Ge(1)] = 16
    """Steps of a chunk, through which gradients flow; must divide train.n_steps."""
    burn_in: Annotated[Int, Ge(0)] = 0
    """Steps before a chunk that are run first without being learned from."""
    critic: Literal["shared", "own"] = "shared"
    """Whether actor and critic share it, or the critic has one of its own."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NetworkSettings:
    """The policy's and the value function's network, each with its own layers."""

    kind: Literal["mlp"] = "mlp"
    """Kind of network: `mlp`, fully connected layers."""
    layers: tuple[Units, ...] = (64, 64)
    """Units of each hidden layer; may be empty with scalars, units or memory."""
    activation: Activation = "tanh"
    """Non-linearity between the layers."""
    features: Literal["scaled", "egocentric"] | None = None
    """Input: the scaled observation, or also the target's direction as seen by the agent; by
    default the latter if the world knows it, as the arena does."""
    scaling: Scaling | None = None
    """How observations are scaled: not at all, by their declared ranges, or by the running mean and
    standard deviation, updated between rollouts. By default by their ranges; in the worlds
    gymnasium and unity, whose bounds may be far wider than what occurs, `running` with hybrid_ppo
    and `none` with all other algorithms."""

    scalars: tuple[Units, ...] | None = None
    """hybrid_ppo: layers that encode the plain columns; by default they go straight through."""
    units: UnitsSettings | None = None
    """hybrid_ppo: encoders of the units that the world shows; left out, their columns are plain."""
    picture: PictureSettings | None = None
    """Encoder of the pictures that the world shows."""
    memory: MemorySettings | None = None
    """hybrid_ppo: the agent's memory within an episode; none by default."""

    def __post_init__(self) -> None:
        if self.scalars is not None:
            _check_layers(self.scalars, "scalars")
        if self.layers or not self.parts:
            _check_layers(self.layers)

    def weights(self, inputs: int, outputs: int) -> int:
        """How many the matrices between `inputs` and `outputs` have at least."""
        units, memory, picture = self.units, self.memory, self.picture
        if not self.parts:
            return _matrices((inputs, *self.layers, outputs))
        encoders = _matrices(units.layers) if units else 0
        core = (self.scalars or (0,))[-1] + (units.layers[-1] if units else 0)
        core = core + ((picture.size or 0) if picture else 0) if self.encodes else inputs
        if memory is not None:
            encoders += 4 * memory.size * (memory.size + core)
            core = memory.size
        layers = _matrices((core, *self.layers, outputs))
        return _matrices(self.scalars or ()) + encoders + layers

    @property
    def parts(self) -> tuple[str, ...]:
        """The keys of the parts that it has beside its layers."""
        return tuple(key for key in PARTS if getattr(self, key) not in (None, False))

    @property
    def encodes(self) -> bool:
        """Whether a part of it encodes what is seen."""
        return any(key in ENCODING for key in self.parts)


ENCODING = ("scalars", "units", "picture")
"""Keys of parts that encode what is seen, before the layers and before a memory."""
PARTS = (*ENCODING, "memory")
"""Keys of all parts that a network may have beside its layers; tests have one of each."""


def _check_layers(layers: tuple[int, ...], name: str = "layers") -> None:
    if not layers:
        raise ValueError(f"{name} must name at least one layer")
    if len(layers) > MAX_LAYERS:
        raise ValueError(f"{name} must name at most {MAX_LAYERS} layers")


def has_egocentric_columns(names: Sequence[str]) -> bool:
    """Whether an observation says where the agent and its target are, and ends with rays."""
    rays = [name for name in names if name.startswith("ray_") and name.endswith("_distance")]
    return set(EGOCENTRIC_COLUMNS.values()) <= set(names) and bool(rays) and names[-1] == rays[-1]


def _matrices(sizes: tuple[int, ...]) -> int:
    return sum(one * other for one, other in pairwise(sizes))


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
