"""Algorithms that learn action values from a replay buffer: DQN and QR-DQN."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aimbot_lab.training.algorithms.algorithm import AdapterOptions, Algorithm, Classes, same_names
from aimbot_lab.training.settings import TrainSettings

if TYPE_CHECKING:
    from gymnasium import spaces

MAX_BUFFER = 256 * 2**20  # bytes
MIN_ROLLOUTS = 4  # that a replay buffer holds
SHARED = ("batch_size", "learning_rate", "gamma", "max_grad_norm")


def replay_arguments(
    settings: TrainSettings, observations: "spaces.Box", rows: int
) -> dict[str, Any]:
    """Rollout, updates and buffer of a training with `rows` environments.

    The rollout is n_steps of every environment, and as many samples are drawn after it as
    n_epochs passes over it would take. The buffer holds the whole training if that fits
    MAX_BUFFER, and never less than MIN_ROLLOUTS.
    """
    rollout = settings.n_steps * rows
    transition = 2 * observations.shape[0] * observations.dtype.itemsize
    fits = min(settings.total_steps, MAX_BUFFER // transition)
    return {
        "train_freq": settings.n_steps,
        "gradient_steps": max(1, round(settings.n_epochs * rollout / settings.batch_size)),
        "buffer_size": max(fits, MIN_ROLLOUTS * rollout),
    }


def flat_adapter(_: TrainSettings) -> AdapterOptions:
    """One choice of all combinations."""
    return AdapterOptions("flat")


def _dqn() -> Classes:
    from stable_baselines3 import DQN
    from stable_baselines3.dqn.policies import DQNPolicy

    return Classes(DQN, DQNPolicy)


def _qrdqn() -> Classes:
    from sb3_contrib import QRDQN
    from sb3_contrib.qrdqn.policies import QRDQNPolicy

    return Classes(QRDQN, QRDQNPolicy)


DQN_ALGORITHM = Algorithm(
    name="dqn",
    classes=_dqn,
    shared=same_names(*SHARED),
    adapter=flat_adapter,
    ranks_actions=True,
    replay_buffer=True,
    derived=frozenset({"n_steps", "n_epochs"}),
    fixed=frozenset({"train_freq"}),
    more=replay_arguments,
)
QRDQN_ALGORITHM = replace(
    DQN_ALGORITHM, name="qrdqn", classes=_qrdqn, policy_options=("n_quantiles",)
)
