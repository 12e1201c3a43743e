"""Rollouts that are kept, so that later updates draw from them too."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.algorithms.chunk_buffer import ChunkRolloutBuffer

COLUMNS = (
    "observations",
    "actions",
    "values",
    "log_probs",
    "advantages",
    "returns",
    "episode_starts",
)
"""What an update needs of a rollout buffer, each [T, B, ...]."""


class KeptRollout(NamedTuple):
    """A complete rollout of T steps of B environments, as it was collected."""

    step: int  # environment steps of the training when it was complete
    columns: Mapping[str, np.ndarray]  # by the names in COLUMNS
    states: tuple[th.Tensor, ...]  # of a memory where each chunk begins, each [B, S, H]


class KeptRollouts:
    """The last rollouts, at most `keep`; those before the next one wait in `waiting`."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self.waiting: tuple[KeptRollout, ...] = ()  # oldest first; never changed in place

    def with_last(self, buffer: RolloutBuffer, *, step: int) -> Any:
        """A buffer of the rollout in `buffer`, complete at `step`, after all that are kept.

        It has T steps of K B environments where K rollouts of B are there, so that whoever learns
        from one rollout learns from it. `buffer` stays as it is.
        """
        rollouts = (*self.waiting, _kept(buffer, step))
        self.waiting = rollouts[-(self._keep - 1) :]
        return _joined(buffer, rollouts)


def _kept(buffer: RolloutBuffer, step: int) -> KeptRollout:
    assert buffer.full, "the rollout is not complete"
    columns = {name: getattr(buffer, name).copy() for name in COLUMNS}
    states = buffer.memory.kept if isinstance(buffer, ChunkRolloutBuffer) else ()
    return KeptRollout(step, columns, tuple(states))


def _joined(buffer: RolloutBuffer, rollouts: Sequence[KeptRollout]) -> Any:
    joined: Any = copy(buffer)
    joined.n_envs = buffer.n_envs * len(rollouts)
    for name in COLUMNS:
        parts = [rollout.columns[name] for rollout in rollouts]
        setattr(joined, name, np.concatenate(parts, axis=1))
    if isinstance(buffer, ChunkRolloutBuffer):
        joined.memory = copy(buffer.memory)
        places = zip(*(rollout.states for rollout in rollouts), strict=True)
        joined.memory.kept = [th.cat(states) for states in places]
    return joined
