"""Algorithms that learn from each rollout once it is complete: the PPO family and TRPO."""

from typing import Any

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.algorithm import (
    AdapterOptions,
    Algorithm,
    Arguments,
    Classes,
    Memory,
    same_names,
)
from aimbot_lab.training.networks.parts.network_parts import (
    memory_shape,
    target_choice,
    unfused_parts,
    widest_part,
)
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.settings import MAX_FUSED_UNITS, TrainSettings
from aimbot_lab.training.shards import asked_count

ROLLOUT = ("n_steps", "batch_size", "learning_rate", "gamma", "gae_lambda", "normalize_advantage")
CLIPPED = (*ROLLOUT, "n_epochs", "clip_range", "ent_coef", "vf_coef", "max_grad_norm", "target_kl")


def _ppo() -> Classes:
    from stable_baselines3 import PPO
    from stable_baselines3.common.policies import ActorCriticPolicy

    return Classes(PPO, ActorCriticPolicy)


def _maskable_ppo() -> Classes:
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

    return Classes(MaskablePPO, MaskableActorCriticPolicy)


def _recurrent_ppo() -> Classes:
    from sb3_contrib import RecurrentPPO
    from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy

    return Classes(RecurrentPPO, RecurrentActorCriticPolicy)


def _trpo() -> Classes:
    from sb3_contrib import TRPO
    from stable_baselines3.common.policies import ActorCriticPolicy

    return Classes(TRPO, ActorCriticPolicy)


def _hybrid_ppo() -> Classes:
    from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
    from aimbot_lab.training.networks.remembering_policy import RememberingPolicy

    return Classes(HybridPPO, RememberingPolicy)


def lstm(settings: TrainSettings, inputs: int) -> Memory:
    """The least that the LSTM has which the options describe; the class refuses what is none."""
    width, depth = (settings.options.get(name) for name in ("lstm_hidden_size", "n_lstm_layers"))
    width = width if isinstance(width, int) and width > 0 else 0
    depth = depth if isinstance(depth, int) and depth > 0 else 0
    del inputs
    return Memory(width, 4 * max(width, 1) ** 2 * max(depth, 1))


def hybrid_adapter(settings: TrainSettings) -> AdapterOptions:
    """Actions and masks as the switches say."""
    aims = settings.target != "none"
    actions: Any = f"target_{settings.aim}" if aims else settings.aim
    return AdapterOptions(actions, masks_shown=settings.masks)


def hybrid_policy(settings: TrainSettings, spec: WorldSpec) -> Arguments:
    """The policy's part of the switches."""
    target, memory = target_choice(settings, spec), memory_shape(settings)
    choices = spec.branches if target is None else (*spec.branches, 1 + target.slots)
    return {
        "hybrid": choices if settings.aim == "hybrid" else (),
        "masked": spec.branches if settings.masks else (),
        **({} if target is None else {"target": target}),
        **({} if memory is None else {"memory": memory}),
    }


def kept_rollouts(settings: TrainSettings, *_: Any) -> Arguments:
    """How many rollouts an update draws from."""
    return {"keep_rollouts": settings.samples.keep}


def surely_fused(settings: TrainSettings) -> bool:
    """Whether the fused engine learns, for which the number of threads makes no difference."""
    network = settings.network
    if not isinstance(network, NetworkSettings) or unfused_parts(settings):
        return False
    suits = widest_part(network) <= MAX_FUSED_UNITS
    asked = settings.engine != "torch" and settings.device == "cpu"
    return asked and suits and not settings.options


def shard_count(settings: TrainSettings, rows: int) -> int:
    """Into how many shards the fused engine cuts `rows`; 1 where another one learns.

    Raises ValueError for a number that does not divide, and for one that nothing asks for.
    """
    if settings.engine == "torch" and settings.shards != "auto":
        raise ValueError("does nothing with train.engine: torch: leave it out")
    if settings.algo != HYBRID_PPO.name or not surely_fused(settings):
        return 1
    memory = memory_shape(settings)
    samples = 1 if memory is None else memory.length
    batch = settings.batch_size // samples
    return asked_count(settings.shards, rows, batch, samples=samples)


PPO_ALGORITHM = Algorithm(name="ppo", classes=_ppo, shared=same_names(*CLIPPED), self_play=True)
MASKABLE_PPO = Algorithm(
    name="maskable_ppo",
    classes=_maskable_ppo,
    shared=same_names(*CLIPPED),
    masked=True,
    self_play=True,
)
RECURRENT_PPO = Algorithm(
    name="recurrent_ppo",
    classes=_recurrent_ppo,
    shared=same_names(*CLIPPED),
    recurrent=True,
    policy_options=("lstm_hidden_size", "n_lstm_layers", "shared_lstm", "enable_critic_lstm"),
    memory=lstm,
)
TRPO_ALGORITHM = Algorithm(name="trpo", classes=_trpo, shared=same_names(*ROLLOUT, "target_kl"))
HYBRID_PPO = Algorithm(
    name="hybrid_ppo",
    classes=_hybrid_ppo,
    shared=same_names(*CLIPPED, "objective", "dual_clip", "engine", "shards"),
    self_play=True,
    adapter=hybrid_adapter,
    derived=frozenset({"aim", "masks", "target", "samples", "actors"}),
    more=kept_rollouts,
    more_policy=hybrid_policy,
    fixed=frozenset({"keep_rollouts", "own_shards"}),
    policy_options=("log_std_init",),
    any_threads=surely_fused,
)
