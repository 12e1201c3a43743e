"""Network settings as arguments of stable-baselines3's policies."""

from dataclasses import dataclass
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.registry import network_of
from aimbot_lab.training.networks.settings import KindOfNetwork

ACTIVATIONS = {"tanh": th.nn.Tanh, "relu": th.nn.ReLU}


def network_arguments(
    settings: KindOfNetwork, spec: WorldSpec, *, one_stack: bool
) -> dict[str, Any]:
    """Arguments of a policy with one network to act and one to value; or with `one_stack`."""
    network = network_of(settings)
    layers = list(network.layers(settings))
    return {
        "net_arch": layers if one_stack else {"pi": layers, "vf": list(layers)},
        "activation_fn": ACTIVATIONS[network.activation(settings)],
        "features_extractor_class": FeaturesOf(settings, spec),
        **network.policy_arguments(settings, spec),
    }


@dataclass(frozen=True)
class FeaturesOf:
    """Makes the features of a network, as stable-baselines3 asks for them."""

    settings: KindOfNetwork
    spec: WorldSpec

    def __call__(self, observations: spaces.Box) -> BaseFeaturesExtractor:
        """The module for the columns of `observations`.

        Raises ConfigurationError, in one line, where a stranger's network can't be made.
        """
        network = network_of(self.settings)
        what = f"train.network: the network {network.name} can't be made:"
        with blamed(what, ConfigurationError):
            made = network.features(self.settings, observations, spec=self.spec)
            if isinstance(made, BaseFeaturesExtractor):
                return made
            return ModuleFeatures(observations, made)


class ModuleFeatures(BaseFeaturesExtractor):
    """Any torch module from observations [N, D] to features [N, F]."""

    def __init__(self, observations: spaces.Box, module: th.nn.Module) -> None:
        super().__init__(observations, features_dim=_width(observations, module))
        self.module = module

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features [N, F] of raw observations [N, D]."""
        features: th.Tensor = self.module(observations)
        return features


def _width(observations: spaces.Box, module: th.nn.Module) -> int:
    """How many features `module` gives; tried with two observations."""
    trains = module.training
    with th.no_grad():
        features = module.eval()(th.zeros(2, *observations.shape))
    module.train(trains)
    if features.ndim != 2 or len(features) != 2:
        raise ValueError(f"features of 2 observations must be [2, F] (got {list(features.shape)})")
    return int(features.shape[1])
