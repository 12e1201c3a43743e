"""The settings of networks: those of the built-in one, and what all have."""

from typing import Annotated, Literal, Protocol

from aimbot_lab.foundation.settings import STRICT, Ge, Int, Le, dataclass

Units = Annotated[Int, Ge(1), Le(4096)]
Activation = Literal["tanh", "relu"]
MAX_LAYERS = 32


class KindOfNetwork(Protocol):
    """What the settings of every network have: a frozen pydantic dataclass."""

    @property
    def kind(self) -> str:
        """The network's name in the registry."""
        ...


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NetworkSettings:
    """The policy's and the value function's network, each with its own layers."""

    kind: Literal["mlp"] = "mlp"
    """Kind of network: `mlp`, fully connected layers."""
    layers: tuple[Units, ...] = (64, 64)
    """Units of each hidden layer."""
    activation: Activation = "tanh"
    """Non-linearity between the layers."""
    features: Literal["scaled", "egocentric"] | None = None
    """Input: the scaled observation, or that and where the target lies as seen by the agent; left
    out, the second where the world says where that is, as the arena does."""
    scaling: Literal["ranges", "running"] = "ranges"
    """How observations are scaled: by their declared ranges, or by the mean and the standard
    deviation of all that was seen, brought up to date between rollouts."""

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("layers must name at least one layer")
        if len(self.layers) > MAX_LAYERS:
            raise ValueError(f"layers must name at most {MAX_LAYERS} layers")
