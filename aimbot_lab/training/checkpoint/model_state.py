"""What a stable-baselines3 model knows at a rollout's beginning, the replay buffer left out.

`save` of stable-baselines3 keeps less (no generators, no observations) and pickles; here all is
plain values, arrays and tensors. The last episodes, which it only prints, are left out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm

NUMBERS = (
    "num_timesteps",
    "_episode_num",
    "_n_updates",
    "_n_calls",
    "_current_progress_remaining",
    "exploration_rate",
    "ent_coef",
)
SEEN = ("_last_obs", "_last_episode_starts")
MEMORY, REMEMBERED = "_last_lstm_states", "remembered"


def model_state(model: BaseAlgorithm) -> dict[str, Any]:
    """Weights, optimisers, counters, last observations and memory, and what was recorded."""
    numbers = {name: getattr(model, name) for name in NUMBERS if hasattr(model, name)}
    return {
        "parameters": model.get_parameters(),
        "numbers": numbers,
        "seen": {name: getattr(model, name) for name in SEEN},
        "memory": tuple(getattr(model, MEMORY, ())),
        **_remembered(model),
        "recorded": {key: float(value) for key, value in model.logger.name_to_value.items()},
    }


def _remembered(model: BaseAlgorithm) -> dict[str, Any]:
    """What our own policy remembers of every row, where it remembers."""
    state = getattr(getattr(model.policy, "rollout", None), "state", None)
    return {} if state is None else {REMEMBERED: state}


def restore_model(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Have `model`, made from the same settings, go on from what `model_state` gave."""
    model.set_parameters(state["parameters"], exact_match=True, device=model.device)
    # The names are those of this file: a file may hold any.
    for name in NUMBERS:
        if hasattr(model, name):
            setattr(model, name, state["numbers"][name])
    for name in SEEN:
        setattr(model, name, state["seen"][name])
    if hasattr(model, MEMORY):
        kind = type(getattr(model, MEMORY))
        on_device = (tuple(t.to(model.device) for t in pair) for pair in state["memory"])
        setattr(model, MEMORY, kind(*on_device))
    if REMEMBERED in state:
        rollout: Any = getattr(model.policy, "rollout", None)
        rollout.state = state[REMEMBERED].to(model.device)
    model.logger.name_to_value.update(state["recorded"])


def begin_episodes(model: BaseAlgorithm, observations: Any) -> None:
    """Have `model` go on with new episodes in every row, which begin with `observations` [B, D]."""
    model._last_obs = observations
    model._last_episode_starts = np.ones(len(observations), np.bool_)
