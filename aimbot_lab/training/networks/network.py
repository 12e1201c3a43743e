"""What a network is, the built-in one, and which exist.

A package brings a network by an entry point of the group `aimbot_lab.networks`, whose name is the
network's and whose object is a `NetworkType`. Loading this module loads no torch.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.registry import Registry, SettingsByName
from aimbot_lab.foundation.world import COLUMNS, WorldSpec
from aimbot_lab.training.networks.settings import (
    Activation,
    KindOfNetwork,
    NetworkSettings,
    has_egocentric_columns,
    resolved_picture,
)

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
        self, settings: Any, observations: "spaces.Space[Any]", *, spec: WorldSpec
    ) -> "nn.Module":
        """A torch module from raw observations to features [N, F].

        `observations` is what it is shown: a Box of D columns, which `spec` names and bounds. Where
        the world shows pictures, a Dict of these, in uint8 with channels first, and of what else
        there is: all columns as `columns` with hybrid_ppo, block by block with other algorithms,
        for which a picture that is all there is comes alone.
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
        """Weights that one such stack has at least, between `inputs` and `outputs`.

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


class Mlp(NetworkType):
    """Fully connected layers, of the actor and of the critic."""

    name = "mlp"
    settings = NetworkSettings

    def features(
        self, settings: NetworkSettings, observations: "spaces.Space[Any]", *, spec: WorldSpec
    ) -> "nn.Module":
        """The scaled observation, and what is worked out of it for an agent in an arena."""
        from aimbot_lab.training.networks import encoders

        scaling, names = settings.scaling or "ranges", spec.observation_names
        columns: Any = observations
        parts: Mapping[str, Any] = getattr(observations, "spaces", {})
        if spec.pictures or parts:
            if COLUMNS not in parts:
                from aimbot_lab.training.networks.encoders import BlockFeatures

                return BlockFeatures(observations, settings, spec)
            columns = parts[COLUMNS]
        plain: encoders.ScaledFeatures
        if settings.features != "scaled" and has_egocentric_columns(names):
            plain = encoders.EgocentricFeatures(columns, names, scaling=scaling)
        else:
            plain = encoders.ScaledFeatures(columns, scaling=scaling)
        if not (settings.encodes or spec.pictures):
            return plain
        from aimbot_lab.training.networks.encoders import EncodedFeatures

        return EncodedFeatures(plain, settings, spec, observations)

    def resolved(self, settings: NetworkSettings, spec: WorldSpec) -> NetworkSettings:
        """`settings` with the features that the world of `spec` has, where none are named.

        With the encoder of its pictures, too.
        """
        if spec.pictures:
            settings = replace(settings, picture=resolved_picture(settings, spec))
        if settings.features is not None:
            return settings
        egocentric = has_egocentric_columns(spec.observation_names)
        return replace(settings, features="egocentric" if egocentric else "scaled")

    def fault(self, settings: NetworkSettings, spec: WorldSpec, *, algo: str) -> str | None:
        """Whether the world of `spec` has what the features are worked out of."""
        del algo
        if settings.features == "egocentric" and not has_egocentric_columns(spec.observation_names):
            return "features: egocentric needs world arena"
        return None

    def layers(self, settings: NetworkSettings) -> tuple[int, ...]:
        """As the settings name them."""
        return settings.layers

    def activation(self, settings: NetworkSettings) -> Activation:
        """As the settings name it."""
        return settings.activation

    def weights(self, settings: NetworkSettings, inputs: int, outputs: int) -> int:
        """Those of the layers' matrices."""
        return settings.weights(inputs, outputs)


MLP = Mlp()


NETWORKS: Registry[NetworkType] = Registry(
    group="aimbot_lab.networks",
    noun="network",
    key="kind",
    kind=NetworkType,
    own=MappingProxyType({MLP.name: MLP}),
)
AnyNetwork = Annotated[KindOfNetwork, SettingsByName(NETWORKS, default=MLP.name)]
"""The settings of any network, as pydantic validates them; `kind` says which."""


def network_of(settings: KindOfNetwork) -> NetworkType:
    """The kind of network that `settings` describe."""
    return NETWORKS[settings.kind]


def stack_of(settings: KindOfNetwork) -> tuple[tuple[int, ...], Activation]:
    """Units of the layers of actor and critic, and what stands between them.

    Raises ConfigurationError, in one line, where a stranger's network gives neither.
    """
    network = network_of(settings)
    with NETWORKS.blamed(network.name, "raised"):
        layers, activation = tuple(network.layers(settings)), network.activation(settings)
        if not all(type(units) is int and units > 0 for units in layers):
            raise TypeError(f"layers must be whole numbers above 0 (got {layers!r:.60})")
        if activation not in get_args(Activation):
            wanted = " or ".join(get_args(Activation))
            raise TypeError(f"activation must be {wanted} (got {activation!r:.60})")
    return layers, activation


def network_fault(settings: KindOfNetwork, spec: WorldSpec, *, algo: str) -> str | None:
    """Why the network can't be trained in the world of `spec` by `algo`; None: it can."""
    network = network_of(settings)
    try:
        with NETWORKS.blamed(network.name, "raised"):
            found = network.fault(settings, spec, algo=algo)
            if not isinstance(found, str | None):
                raise TypeError(f"fault must be a text or None (got {found!r:.60})")
    except ConfigurationError as error:
        return str(error)
    return found


def resolved_network(settings: KindOfNetwork, spec: WorldSpec) -> KindOfNetwork:
    """`settings` with what they leave to the world of `spec`.

    Raises ConfigurationError, in one line, where a stranger's network gives no settings.
    """
    network = network_of(settings)
    with NETWORKS.blamed(network.name, "raised"):
        found = network.resolved(settings, spec)
        if not isinstance(found, network.settings):
            raise TypeError(f"resolved must be its settings (got {found!r:.60})")
    whole: KindOfNetwork = found
    return whole
