"""Network settings as arguments of stable-baselines3's policies."""

from typing import Any

import torch as th

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.features import (
    EgocentricFeatures,
    ScaledFeatures,
    has_egocentric_columns,
)
from aimbot_lab.training.settings import NetworkSettings

ACTIVATIONS = {"tanh": th.nn.Tanh, "relu": th.nn.ReLU}


def actor_critic(network: NetworkSettings, spec: WorldSpec) -> dict[str, Any]:
    """Arguments of a policy with one network to act and one to value."""
    layers = {"pi": list(network.layers), "vf": list(network.layers)}
    return {"net_arch": layers, **_common(network, spec)}


def q_values(network: NetworkSettings, spec: WorldSpec) -> dict[str, Any]:
    """Arguments of a policy that values actions."""
    return {"net_arch": list(network.layers), **_common(network, spec)}


def _common(network: NetworkSettings, spec: WorldSpec) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "activation_fn": ACTIVATIONS[network.activation],
        "features_extractor_class": ScaledFeatures,
        "features_extractor_kwargs": {"running": network.scaling == "running"},
    }
    if network.features == "egocentric" and has_egocentric_columns(spec.observation_names):
        arguments["features_extractor_class"] = EgocentricFeatures
        arguments["features_extractor_kwargs"]["names"] = spec.observation_names
    return arguments
