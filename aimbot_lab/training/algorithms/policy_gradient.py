"""Algorithms that learn from each rollout once it is complete: the PPO family and TRPO."""

from sb3_contrib import TRPO, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.algorithm import Algorithm, Arguments, Face, same_names
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.networks.policy_arguments import actor_critic
from aimbot_lab.training.settings import TrainSettings

ROLLOUT = ("n_steps", "batch_size", "learning_rate", "gamma", "gae_lambda", "normalize_advantage")
CLIPPED = (*ROLLOUT, "n_epochs", "clip_range", "ent_coef", "vf_coef", "max_grad_norm", "target_kl")

PPO_ALGORITHM = Algorithm(PPO, ActorCriticPolicy, same_names(*CLIPPED), actor_critic)
MASKABLE_PPO = Algorithm(
    MaskablePPO, MaskableActorCriticPolicy, same_names(*CLIPPED), actor_critic, masked=True
)
RECURRENT_PPO = Algorithm(
    RecurrentPPO,
    RecurrentActorCriticPolicy,
    same_names(*CLIPPED),
    actor_critic,
    recurrent=True,
    policy_options=("lstm_hidden_size", "n_lstm_layers", "shared_lstm", "enable_critic_lstm"),
)
TRPO_ALGORITHM = Algorithm(TRPO, ActorCriticPolicy, same_names(*ROLLOUT, "target_kl"), actor_critic)


def hybrid_face(settings: TrainSettings) -> Face:
    """Actions and masks as the switches say."""
    return Face(settings.aim, masks_shown=settings.masks)


def hybrid_policy(settings: TrainSettings, spec: WorldSpec) -> Arguments:
    """The policy's part of the switches."""
    return {
        "hybrid": spec.branches if settings.aim == "hybrid" else (),
        "masked": spec.branches if settings.masks else (),
    }


HYBRID_PPO = Algorithm(
    HybridPPO,
    HybridPolicy,
    same_names(*CLIPPED, "objective", "dual_clip", "engine"),
    actor_critic,
    face=hybrid_face,
    derived=frozenset({"aim", "masks"}),
    more_policy=hybrid_policy,
    policy_options=("log_std_init",),
)
