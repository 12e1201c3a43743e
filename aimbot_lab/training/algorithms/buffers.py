"""The rollout buffers of our own PPO: by samples, by chunks of steps, and of several rollouts."""

from collections.abc import Generator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from aimbot_lab.training.networks.remembering_policy import (
    Chunks,
    MemoryShape,
    RolloutMemory,
    WarmUp,
)


class HybridRolloutBuffer(RolloutBuffer):
    """stable-baselines3's buffer in less time: it keeps its memory, and copies a step once.

    With `branches` K it keeps K log-probabilities a sample, one a branch. Observations that are
    shown as a Dict are kept as records of its entries, in their own types.
    """

    def __init__(self, *args: Any, branches: int | None = None, **arguments: Any) -> None:
        self._branches = branches
        self._whole = False  # whether the arrays are there, in the form of a rollout
        self._records: np.dtype[Any] | None = None
        super().__init__(*args, **arguments)

    def reset(self) -> None:
        """Empty the buffer; what it held stays to be written over."""
        if self._whole and not self.generator_ready:  # a generator gives the arrays another form
            self.pos, self.full = 0, False
            return
        if isinstance(space := self.observation_space, spaces.Dict):
            self.obs_shape = ()
            parts = [(name, one.dtype, one.shape) for name, one in space.items()]
            self._records = np.dtype(parts, align=True)
        super().reset()
        if self._records is not None:
            self.observations = np.zeros((self.buffer_size, self.n_envs), self._records)
        self._whole = True
        if self._branches is not None:
            shape = self.buffer_size, self.n_envs, self._branches
            self.log_probs = np.zeros(shape, np.float32)  # [T, B, K]

    def add(
        self,
        obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        episode_start: np.ndarray,
        value: th.Tensor,
        log_prob: th.Tensor,
    ) -> None:
        """Keep a step: of each of B environments what stable-baselines3's buffer keeps."""
        at = self.pos
        if self._records is None:
            self.observations[at] = obs
        else:
            for name, part in obs.items():
                self.observations[name][at] = part
        self.actions[at] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[at] = reward
        self.episode_starts[at] = episode_start
        self.values[at] = value.numpy(force=True).reshape(self.n_envs)
        self.log_probs[at] = log_prob.numpy(force=True).reshape(self.log_probs[at].shape)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def to_torch(self, array: np.ndarray, copy: bool = True) -> Any:
        """`array` as a tensor; records as a tensor of each entry."""
        if array.dtype.names is None:
            return super().to_torch(array, copy)
        return tensors_of(array, self.device)

    def _get_samples(
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> RolloutBufferSamples:
        samples = super()._get_samples(batch_inds, env)
        if self._branches is None:
            return samples
        return samples._replace(
            old_log_prob=samples.old_log_prob.reshape(len(batch_inds), self._branches)
        )


def tensors_of(records: np.ndarray, device: th.device | str) -> dict[str, th.Tensor]:
    """A copy of each entry [N, ...] of `records` [N] or [N, 1]."""
    flat = records.reshape(-1)
    return {
        name: th.as_tensor(np.ascontiguousarray(flat[name]), device=device)
        for name in records.dtype.names or ()
    }


FLATTENED = ("observations", "actions", "values", "log_probs", "advantages", "returns")
Int64Array = npt.NDArray[np.int64]


class ChunkSamples(NamedTuple):
    """A minibatch of N chunks of L steps, chunk by chunk, with what the memory needs of them."""

    observations: Any  # [N L, D], or by name
    actions: th.Tensor
    old_values: th.Tensor
    old_log_prob: th.Tensor
    advantages: th.Tensor
    returns: th.Tensor
    chunks: Chunks


class ChunkRolloutBuffer(HybridRolloutBuffer):
    """Minibatches are shuffled chunks of `shape.length` steps, so none is padded.

    `memory` keeps the states from where each chunk began while the buffer is filled.
    """

    memory: RolloutMemory

    def __init__(self, *args: Any, shape: MemoryShape, **arguments: Any) -> None:
        self._shape = shape
        super().__init__(*args, **arguments)
        if self.buffer_size % shape.length:
            raise ValueError(f"n_steps must be a multiple of {shape.length}, a chunk's steps")

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Minibatches of `batch_size` samples, a multiple of a chunk's steps."""
        assert self.full, "the rollout is not complete"
        self._flatten()
        length, samples = self._shape.length, self.buffer_size * self.n_envs
        if batch_size is not None and batch_size % length:
            raise ValueError(f"batch_size must be a multiple of {length}, a chunk's steps")
        count = (batch_size or samples) // length
        order = np.random.permutation(samples // length)
        for first in range(0, len(order), count):
            yield self._minibatch(order[first : first + count])

    def chunk_of(self, steps: slice, rows: slice = slice(None)) -> tuple[th.Tensor, th.Tensor]:
        """(observations [R L, D] row by row, starts [L, R]) of R `rows` at `steps`."""
        if self.generator_ready:
            form = self.n_envs, self.buffer_size
            whole = self.observations.reshape(*form, *self.observations.shape[1:])
            seen = whole[rows, steps]
        else:
            seen = self.observations[steps, rows].swapaxes(0, 1)
        starts = np.ascontiguousarray(self.episode_starts[steps, rows])
        return self.to_torch(seen.reshape(-1, *seen.shape[2:])), self.to_torch(starts)

    def _flatten(self) -> None:
        if self.generator_ready:
            return
        for name in FLATTENED:
            setattr(self, name, self.swap_and_flatten(getattr(self, name)))
        self.generator_ready = True

    def _minibatch(self, chunks: Int64Array) -> ChunkSamples:
        samples: RolloutBufferSamples = self._get_samples(self._samples_of(chunks))
        rows, places = np.divmod(chunks, self.buffer_size // self._shape.length)
        back = self._shape.burn_in // self._shape.length
        state = th.stack(self.memory.kept)[np.maximum(places - back, 0), rows]
        warm_up = tuple(self._warm_up(chunks, places, back=b) for b in range(back, 0, -1))
        return ChunkSamples(*samples[:6], Chunks(state, self._starts(chunks), warm_up))

    def _warm_up(self, chunks: Int64Array, places: Int64Array, *, back: int) -> WarmUp:
        """Earlier chunks of those rows that have them in this rollout."""
        rows = np.flatnonzero(places >= back)
        earlier = chunks[rows] - back
        seen = self.to_torch(self.observations[self._samples_of(earlier)])
        return WarmUp(th.as_tensor(rows, device=self.device), seen, self._starts(earlier))

    def _samples_of(self, chunks: Int64Array) -> Int64Array:
        """Numbers [N L] of the samples of chunks, in order within each."""
        length = self._shape.length
        numbers: Int64Array = (chunks[:, None] * length + np.arange(length)).ravel()
        return numbers

    def _starts(self, chunks: Int64Array) -> th.Tensor:
        """[L, N] 1 where an episode begins."""
        length = self._shape.length
        flat = self.episode_starts.T.reshape(-1, length)
        starts: th.Tensor = self.to_torch(np.ascontiguousarray(flat[chunks].T))
        return starts


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

        It has T steps of K B environments where K rollouts of B are there, so that an
        update from one rollout takes it as it is. `buffer` stays as it is.
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
