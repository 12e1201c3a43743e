"""The built-in network: scaled observations, then fully connected layers."""

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.egocentric_columns import has_egocentric_columns
from aimbot_lab.training.networks.network import NetworkType
from aimbot_lab.training.networks.settings import Activation, NetworkSettings

if TYPE_CHECKING:
    from gymnasium import spaces
    from torch import nn


class Mlp(NetworkType):
    """Fully connected layers, of the actor and of the critic."""

    name = "mlp"
    settings = NetworkSettings

    def features(
        self, settings: NetworkSettings, observations: "spaces.Box", *, spec: WorldSpec
    ) -> "nn.Module":
        """The scaled observation, and what is worked out of it for an agent in an arena."""
        from aimbot_lab.training.networks import features

        scaling, names = settings.scaling or "ranges", spec.observation_names
        plain: features.ScaledFeatures
        if settings.features != "scaled" and has_egocentric_columns(names):
            plain = features.EgocentricFeatures(observations, names, scaling=scaling)
        else:
            plain = features.ScaledFeatures(observations, scaling=scaling)
        if settings.scalars is None and settings.units is None and settings.picture is None:
            return plain
        from aimbot_lab.training.networks.parts.encoded_features import EncodedFeatures

        return EncodedFeatures(plain, settings, spec)

    def resolved(self, settings: NetworkSettings, spec: WorldSpec) -> NetworkSettings:
        """`settings` with the features that the world of `spec` has, where none are named."""
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
        units, memory, picture = settings.units, settings.memory, settings.picture
        if settings.scalars is None and units is None and memory is None and picture is None:
            return _matrices((inputs, *settings.layers, outputs))
        encoders = _matrices(units.layers) if units else 0
        core = (settings.scalars or (0,))[-1] + (units.layers[-1] if units else 0)
        core += picture.size if picture else 0
        if memory is not None:
            encoders += 4 * memory.size * (memory.size + core)
            core = memory.size
        return (
            _matrices(settings.scalars or ())
            + encoders
            + _matrices((core, *settings.layers, outputs))
        )


def _matrices(sizes: tuple[int, ...]) -> int:
    return sum(one * other for one, other in pairwise(sizes))


MLP = Mlp()
