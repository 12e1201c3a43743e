"""The settings of networks: those of the built-in one, and what all have."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, Protocol

from aimbot_lab.foundation.settings import STRICT, Bool, Ge, Int, Le, dataclass

Units = Annotated[Int, Ge(1), Le(4096)]
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
    """Units of each layer; the last one's are what is pooled over the units that are seen."""
    keys: Units | None = None
    """Numbers of a unit's key for train.target attention, by default 16."""
    kinds: tuple[str, ...] | None = None
    """Kinds of units that are encoded, such as rays and enemies; left out, all that the world
    shows."""

    def __post_init__(self) -> None:
        _check_layers(self.layers)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PictureSettings:
    """Convolutions that encode each picture that the world shows."""

    encoder: Literal["nature", "impala", "small", "simple"] | None = None
    """`nature`: stable-baselines3's NatureCNN, for pictures from 36 x 36 pixels on; `impala`: three
    residual sections; `small`: 8 and 16 filters of 3 x 3 pixels with stride 2; `simple`: that of
    ML-Agents, 16 of 8 x 8 with stride 4 and 32 of 4 x 4 with stride 2, for pictures from 20 x 20
    pixels on. Left out, `nature`, or `small` where the picture is too small for it."""
    size: Units | None = None
    """Units of the layer after them; left out, 512 with `nature` where the picture is all that is
    seen, 256 with `nature` and `impala`, 64 with the others."""
    alone: Bool = False
    """Whether the agent sees the picture and nothing else."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MemorySettings:
    """A layer of long short-term memory after the encoders."""

    size: Units = 64
    """Numbers that it keeps from step to step."""
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
    """Input: the scaled observation, or that and where the target lies as seen by the agent; left
    out, the second where the world says where that is, as the arena does."""
    scaling: Scaling | None = None
    """How observations are scaled: not at all, by their declared ranges, or by the mean and the
    standard deviation of all that was seen, brought up to date between rollouts. Left out, by
    their ranges; in worlds gymnasium and unity, whose bounds may be far wider than what is seen,
    `running` with hybrid_ppo and `none` with every other algorithm."""

    scalars: tuple[Units, ...] | None = None
    """hybrid_ppo: layers that encode the plain columns; left out, they go straight through."""
    units: UnitsSettings | None = None
    """hybrid_ppo: encoders of the units that the world shows; left out, their columns are plain."""
    picture: PictureSettings | None = None
    """Encoder of the pictures that the world shows."""
    memory: MemorySettings | None = None
    """hybrid_ppo: what the agent keeps in mind within an episode; left out, nothing."""

    def __post_init__(self) -> None:
        if self.scalars is not None:
            _check_layers(self.scalars, "scalars")
        has_parts = any(part is not None for part in self._parts())
        if self.layers or not has_parts:
            _check_layers(self.layers)

    def weights(self, inputs: int, outputs: int) -> int:
        """How many the matrices between `inputs` and `outputs` have at least."""
        units, memory, picture = self.units, self.memory, self.picture
        if all(part is None for part in self._parts()):
            return _matrices((inputs, *self.layers, outputs))
        encoders = _matrices(units.layers) if units else 0
        core = (self.scalars or (0,))[-1] + (units.layers[-1] if units else 0)
        core += (picture.size or 0) if picture else 0
        if memory is not None:
            encoders += 4 * memory.size * (memory.size + core)
            core = memory.size
        layers = _matrices((core, *self.layers, outputs))
        return _matrices(self.scalars or ()) + encoders + layers

    def _parts(self) -> tuple[object, ...]:
        return self.scalars, self.units, self.picture, self.memory


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
