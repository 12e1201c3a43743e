"""Which networks exist: those of this package, and those that other packages bring.

A package brings a network by an entry point of the group `aimbot_lab.networks`, whose name is the
network's and whose object is a `training.networks.network.NetworkType`.
"""

from types import MappingProxyType
from typing import Annotated

from aimbot_lab.foundation.registry import Registry, SettingsByName
from aimbot_lab.training.networks.mlp import MLP
from aimbot_lab.training.networks.network import NetworkType
from aimbot_lab.training.networks.settings import KindOfNetwork

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
