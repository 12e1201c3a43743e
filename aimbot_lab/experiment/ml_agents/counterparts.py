"""Where a trainer file of ML-Agents has what a curriculum says, and what has no counterpart."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Keys = tuple[str, ...]

# Ours, and theirs with its default.
SHARED: Mapping[str, tuple[Keys, Any]] = MappingProxyType(
    {
        "total_steps": (("max_steps",), 500_000),
        "gamma": (("reward_signals", "extrinsic", "gamma"), 0.99),
        "reward_scale": (("reward_signals", "extrinsic", "strength"), 1.0),
    }
)
PPO: Mapping[str, tuple[Keys, Any]] = MappingProxyType(
    {
        "n_epochs": (("hyperparameters", "num_epoch"), 3),
        "learning_rate": (("hyperparameters", "learning_rate"), 3e-4),
        "gae_lambda": (("hyperparameters", "lambd"), 0.95),
        "clip_range": (("hyperparameters", "epsilon"), 0.2),
        "ent_coef": (("hyperparameters", "beta"), 5e-3),
    }
)
# The last value of what falls in a straight line to max_steps unless its schedule is constant.
# Without one of its own it has that of the learning rate.
FLOORS: Mapping[str, tuple[Keys, float]] = MappingProxyType(
    {
        "learning_rate": (("hyperparameters", "learning_rate_schedule"), 1e-10),
        "clip_range": (("hyperparameters", "epsilon_schedule"), 0.1),
        "ent_coef": (("hyperparameters", "beta_schedule"), 1e-5),
    }
)
RATE_SCHEDULE = FLOORS["learning_rate"][0]
UNITS, LAYERS = ("network_settings", "hidden_units"), ("network_settings", "num_layers")
NORMALIZE = ("network_settings", "normalize")
BUFFER, BATCH = ("hyperparameters", "buffer_size"), ("hyperparameters", "batch_size")
HORIZON = ("time_horizon",)
DEVICE = ("torch_settings", "device")
MEMORY = ("network_settings", "memory")
SELF_SECTION, RATIO = "self_play", "play_against_latest_model_ratio"
# Under the same keys, with ML-Agents' defaults.
SELF_PLAY: Mapping[str, Any] = MappingProxyType(
    {"save_steps": 20_000, "swap_steps": 2_000, "window": 10, RATIO: 0.5, "initial_elo": 1200.0}
)
LIKE_PPO = ("ppo", "poca")
OURS = "hybrid_ppo"  # the algorithm whose network may have a memory
NO_RESET = (
    "has no counterpart: episodes that run go on to their ends, and the next lesson begins with "
    "each row's next one"
)

# Why something has no counterpart in {world}, by the last keys of its place.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "self_play": "the {world} has no self-play; without --target a world that has is taken",
        "team_change": "both sides are learned at once",
        "normalize": "observations are scaled by the ranges that the {world} declares",
        "curiosity": "there is no reward but the {world}'s",
        "gail": "there is no reward but the {world}'s",
        "rnd": "there is no reward but the {world}'s",
        "behavioral_cloning": "there are no demonstrations",
        "env_settings": "the {world} is no program of its own",
        "engine_settings": "there is no engine that draws",
        "checkpoint_settings": "runs are kept by aimbot-lab's tracking",
        "curriculum": "an old form; ML-Agents' upgrade_config makes environment_parameters of it",
        "parameter_randomization": "an old form; ML-Agents' upgrade_config brings it up to date",
    }
)
