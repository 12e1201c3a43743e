"""Which algorithms exist, and an untrained model of each."""

from collections.abc import Mapping
from types import MappingProxyType

from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv

from aimbot_lab.adapters.sb3_actions import learner_codec
from aimbot_lab.adapters.spaces import observation_space
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.algorithm import Algorithm
from aimbot_lab.training.algorithms.policy_gradient import (
    HYBRID_PPO,
    MASKABLE_PPO,
    PPO_ALGORITHM,
    RECURRENT_PPO,
    TRPO_ALGORITHM,
)
from aimbot_lab.training.algorithms.q_learning import DQN_ALGORITHM, QRDQN_ALGORITHM
from aimbot_lab.training.networks.devices import chosen_device
from aimbot_lab.training.settings import TrainSettings, bins_within

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "ppo": PPO_ALGORITHM,
        "maskable_ppo": MASKABLE_PPO,
        "recurrent_ppo": RECURRENT_PPO,
        "trpo": TRPO_ALGORITHM,
        "dqn": DQN_ALGORITHM,
        "qrdqn": QRDQN_ALGORITHM,
        "hybrid_ppo": HYBRID_PPO,
    }
)


def new_model(settings: TrainSettings, env: VecEnv, *, spec: WorldSpec, seed: int) -> BaseAlgorithm:
    """An untrained model for `env`, all its random choices drawn from `seed`.

    Raises ConfigurationError where the algorithm's class refuses the settings, or where there is
    no such device.
    """
    device = chosen_device(settings.device)
    algorithm = ALGORITHMS[settings.algo]
    assert isinstance(env.observation_space, spaces.Box)
    arguments = algorithm.model_arguments(settings, env.observation_space, env.num_envs)
    policy_arguments = algorithm.policy_arguments(settings, spec)
    try:
        return algorithm.model(
            algorithm.policy,
            env,
            policy_kwargs=policy_arguments,
            seed=seed,
            device=device,
            **arguments,
        )
    except (AssertionError, ValueError, RuntimeError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else "no reason given"
        raise ConfigurationError(f"train: {settings.algo} refuses this: {reason}") from error


def new_policy(settings: TrainSettings, spec: WorldSpec) -> BasePolicy:
    """An untrained policy to load weights into."""
    algorithm = ALGORITHMS[settings.algo]
    face = algorithm.face(settings)
    actions = learner_codec(spec, face.actions, bins_within(settings, spec.continuous_limit)).space
    observations = observation_space(spec, masks=face.masks_shown)
    arguments = algorithm.policy_arguments(settings, spec)
    return algorithm.policy(observations, actions, lambda _: 0.0, **arguments)
