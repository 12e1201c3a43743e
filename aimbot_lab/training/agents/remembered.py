"""Distributions of actions of policies that remember, from the memory of the step before."""

from typing import Any

import numpy as np
import torch as th

from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy


def remembering_distribution(
    policy: Any, shown: th.Tensor, *, state: Any, starts: BoolArray | None
) -> tuple[Any, Any]:
    """(distribution, memory) for what `policy` is shown [N, D]; memory is as `predict` gives it.

    `starts` [N] is True where an episode begins; without a `state` all do.
    """
    ours = isinstance(policy, RememberingPolicy)
    before = _before(policy, len(shown), state, ours=ours)
    began = np.zeros(len(shown), np.bool_) if starts is None else starts
    begins = th.as_tensor(began, dtype=th.float32)
    if ours:
        drawn, after = policy.distribution_after(shown, before[0], begins.reshape(1, -1))
        return drawn, after.numpy()
    drawn, after = policy.get_distribution(shown, before, begins)
    return drawn, tuple(part.numpy() for part in after)


def _before(policy: Any, rows: int, state: Any, *, ours: bool) -> tuple[th.Tensor, ...]:
    """The memory before, [N, S, H] where it is of our policy, else hidden and cell [K, N, H]."""
    if state is not None:
        parts = (state,) if ours else state
        return tuple(th.as_tensor(part, dtype=th.float32) for part in parts)
    if ours:
        return (policy.rollout.empty(rows, th.device("cpu")),)
    layers, _, size = policy.lstm_hidden_state_shape
    return tuple(th.zeros(layers, rows, size) for _ in range(2))
