"""Weights read from a file that anyone may have made, fitted to the network they belong to."""

from collections.abc import Mapping
from typing import Any

import torch as th
from safetensors.torch import load
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.networks.network import network_of
from aimbot_lab.training.settings import TrainSettings


def policy_of(data: bytes, train: TrainSettings, spec: WorldSpec) -> BasePolicy:
    """The policy that `train` describes with the weights in `data`, a safetensors file.

    Raises ValueError, or what safetensors and torch raise, where they do not fit to the last
    name, shape and type, or hold what is no number.
    """
    weights = load(data)
    held = sum(tensor.numel() for tensor in weights.values())
    if held < _least_weights(train, spec):
        raise ValueError("the described network is larger than the weights in the file")
    policy = new_policy(train, spec)
    _check(weights, policy.state_dict())
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    # Buffers once more: some are worked out from those in the file.
    if not all(bool(th.isfinite(buffer).all()) for buffer in policy.buffers()):
        raise ValueError("its statistics are no numbers")
    return policy


def _least_weights(train: TrainSettings, spec: WorldSpec) -> int:
    """Fewer weights than this no such network has; worked out before one is made."""
    algorithm = algorithm_of(train)
    if algorithm.table is not None:
        return algorithm.table(train, spec)
    bins = spec.continuous * len(train.aim_bins) if train.aim == "bins" else 0
    quantiles = train.options.get("n_quantiles")
    outputs = max(bins, quantiles if isinstance(quantiles, int) else 0)
    memory = algorithm.memory(train, len(spec.observation_names))
    network = network_of(train.network)
    return memory.weights + network.weights(train.network, memory.outputs, outputs)


def _check(weights: Mapping[str, th.Tensor], wanted: Mapping[str, th.Tensor]) -> None:
    """Raise ValueError for the first difference in names, shapes and types, and for NaN."""
    for name in sorted(wanted.keys() ^ weights.keys()):
        what = "is missing" if name in wanted else "belongs to no part of the network"
        raise ValueError(f"weight {name} {what}")
    for name, tensor in weights.items():
        for kind in ("shape", "dtype"):
            given, right = getattr(tensor, kind), getattr(wanted[name], kind)
            if given != right:
                raise ValueError(f"weight {name} has {kind} {_shown(given)}, not {_shown(right)}")
        if not bool(th.isfinite(tensor).all()):
            raise ValueError(f"weight {name} holds what is no number")


def _shown(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, th.Size) else str(value).removeprefix("torch.")
