"""Algorithms that learn action values from a replay buffer: DQN and QR-DQN."""

from typing import Any

from gymnasium import spaces
from sb3_contrib import QRDQN
from sb3_contrib.qrdqn.policies import QRDQNPolicy
from stable_baselines3 import DQN
from stable_baselines3.dqn.policies import DQNPolicy

from aimbot_lab.training.algorithms.algorithm import Algorithm, Face, same_names
from aimbot_lab.training.networks.policy_arguments import q_values
from aimbot_lab.training.settings import TrainSettings

MAX_BUFFER = 256 * 2**20  # bytes
MIN_ROLLOUTS = 4  # that a replay buffer holds
SHARED = ("batch_size", "learning_rate", "gamma", "max_grad_norm")


def replay_arguments(
    settings: TrainSettings, observations: spaces.Box, rows: int
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


def flat_face(_: TrainSettings) -> Face:
    """One choice of all combinations."""
    return Face("flat")


DERIVED = frozenset({"n_steps", "n_epochs"})
FIXED = frozenset({"train_freq"})

DQN_ALGORITHM = Algorithm(
    DQN,
    DQNPolicy,
    same_names(*SHARED),
    q_values,
    face=flat_face,
    derived=DERIVED,
    fixed=FIXED,
    more=replay_arguments,
)
QRDQN_ALGORITHM = Algorithm(
    QRDQN,
    QRDQNPolicy,
    same_names(*SHARED),
    q_values,
    face=flat_face,
    policy_options=("n_quantiles",),
    derived=DERIVED,
    fixed=FIXED,
    more=replay_arguments,
)
