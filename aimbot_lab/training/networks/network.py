"""What a network is: its settings, and the torch module that they describe.

Loading this module loads no torch, so that files are checked fast.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.settings import Activation

if TYPE_CHECKING:
    from gymnasium import spaces
    from torch import nn


class NetworkType(ABC):
    """A kind of network, by the name that `train.network.kind` gives it.

    A policy is a module of features, which actor and critic share, then layers that each has of
    its own, then the algorithm's heads. An algorithm that values actions has one such stack.
    """

    name: str
    settings: type[Any]
    """A frozen pydantic dataclass with a field `kind` whose default is the name."""

    @abstractmethod
    def features(
        self, settings: Any, observations: "spaces.Box", *, spec: WorldSpec
    ) -> "nn.Module":
        """A torch module from raw observations [N, D] to features [N, F].

        `observations` is the space of D columns that it is shown; `spec` names and bounds them.
        """

    def layers(self, settings: Any) -> tuple[int, ...]:
        """Units of the layers that actor and critic each have of their own; none by default."""
        del settings
        return ()

    def activation(self, settings: Any) -> Activation:
        """What stands between those layers."""
        del settings
        return "tanh"

    def policy_arguments(self, settings: Any, spec: WorldSpec) -> Mapping[str, Any]:
        """Further arguments of the policy's class, for what features and layers can't express."""
        del settings, spec
        return {}

    def resolved(self, settings: Any, spec: WorldSpec) -> Any:
        """`settings` with what they leave to the world of `spec`; a run keeps these."""
        del spec
        return settings

    def weights(self, settings: Any, inputs: int, outputs: int) -> int:
        """Weights that one such stack has at least, between so many inputs and outputs.

        Costs are estimated by it, and files of weights checked before a network is made.
        """
        del settings, inputs, outputs
        return 0

    def fault(self, settings: Any, spec: WorldSpec, *, algo: str) -> str | None:
        """Why this network can't be trained in the world of `spec` by `algo`; None: it can.

        `check` reports it at `train.network`, or at the key with which it begins: `KEY: what`.
        """
        del settings, spec, algo
        return None
