"""Algorithms by name: settings in, a stable-baselines3 model out."""

from typing import Any

import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.features import EgocentricFeatures, ScaledFeatures
from aimbot_lab.training.settings import NetworkSettings, TrainSettings

ACTIVATIONS = {"tanh": th.nn.Tanh, "relu": th.nn.ReLU}


def policy_arguments(network: NetworkSettings, spec: WorldSpec) -> dict[str, Any]:
    """Keyword arguments of an actor-critic policy with these networks."""
    arguments: dict[str, Any] = {
        "net_arch": {"pi": list(network.layers), "vf": list(network.layers)},
        "activation_fn": ACTIVATIONS[network.activation],
        "features_extractor_class": ScaledFeatures,
    }
    if network.features == "egocentric":
        arguments["features_extractor_class"] = EgocentricFeatures
        arguments["features_extractor_kwargs"] = {"names": spec.observation_names}
    return arguments


def new_model(settings: TrainSettings, env: VecEnv, *, spec: WorldSpec, seed: int) -> PPO:
    """An untrained model for `env`, all its random choices drawn from `seed`."""
    return PPO(
        "MlpPolicy",
        env,
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        learning_rate=settings.learning_rate,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.ent_coef,
        vf_coef=settings.vf_coef,
        max_grad_norm=settings.max_grad_norm,
        target_kl=settings.target_kl,
        normalize_advantage=settings.normalize_advantage,
        policy_kwargs=policy_arguments(settings.network, spec),
        seed=seed,
        device="cpu",
    )
