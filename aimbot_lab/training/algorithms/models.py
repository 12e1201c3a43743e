"""An untrained model or policy of an algorithm with its network."""

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv

from aimbot_lab.adapters.spaces import learner_codec, observation_space
from aimbot_lab.foundation.errors import ConfigurationError, place_of
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.algorithm import Algorithm
from aimbot_lab.training.algorithms.optimizer_import import spare_compiler_import
from aimbot_lab.training.algorithms.registry import ALGORITHMS, algorithm_of
from aimbot_lab.training.networks.devices import chosen_device
from aimbot_lab.training.networks.parts.network_parts import with_keys
from aimbot_lab.training.networks.policy_arguments import network_arguments
from aimbot_lab.training.networks.registry import NETWORKS
from aimbot_lab.training.settings import TrainSettings, bins_within

REFUSALS = AssertionError, ValueError, RuntimeError, MemoryError


def new_model(
    settings: TrainSettings, env: VecEnv, *, spec: WorldSpec, seed: int, **more: Any
) -> BaseAlgorithm:
    """An untrained model for `env`, all its random choices drawn from `seed`.

    `more` goes to the algorithm's class as it is.
    Raises ConfigurationError where the algorithm's class refuses the settings, or where there is
    no such device.
    """
    spare_compiler_import()
    device = chosen_device(settings.device)
    algorithm = algorithm_of(settings)
    assert isinstance(env.observation_space, spaces.Box)
    arguments = algorithm.model_arguments(settings, env.observation_space, env.num_envs)
    policy_arguments = _policy_arguments(algorithm, settings, spec)
    model, policy = algorithm.load()
    try:
        return model(
            policy,
            env,
            policy_kwargs=policy_arguments,
            seed=seed,
            device=device,
            **arguments,
            **more,
        )
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        ours = algorithm.name in ALGORITHMS.own and settings.network.kind in NETWORKS.own
        if ours and not isinstance(error, REFUSALS):
            raise  # a mistake of our own
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        place = "" if ours or (found := place_of(error)) is None else f" ({found})"
        raise ConfigurationError(f"train: {settings.algo} refuses this: {what}{place}") from error


def new_policy(settings: TrainSettings, spec: WorldSpec) -> BasePolicy:
    """An untrained policy to load weights into."""
    spare_compiler_import()
    algorithm = algorithm_of(settings)
    adapter = algorithm.adapter(settings)
    actions = learner_codec(
        spec, adapter.actions, bins_within(settings, spec.continuous_limit)
    ).space
    observations = observation_space(spec, masks=adapter.masks_shown)
    arguments = _policy_arguments(algorithm, settings, spec)
    return algorithm.load().policy(observations, actions, lambda _: 0.0, **arguments)


def _policy_arguments(
    algorithm: Algorithm, settings: TrainSettings, spec: WorldSpec
) -> dict[str, Any]:
    if algorithm.table is not None:
        return algorithm.policy_arguments(settings, spec)
    network = network_arguments(with_keys(settings), spec, one_stack=algorithm.ranks_actions)
    return {**network, **algorithm.policy_arguments(settings, spec)}
