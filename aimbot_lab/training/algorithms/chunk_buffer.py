"""A rollout buffer that is learned from in whole chunks of steps of one row."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from stable_baselines3.common.type_aliases import RolloutBufferSamples

from aimbot_lab.training.algorithms.rollout_buffer import HybridRolloutBuffer
from aimbot_lab.training.networks.parts.lstm import MemoryShape
from aimbot_lab.training.networks.parts.rollout_memory import Chunks, RolloutMemory, WarmUp

FLATTENED = ("observations", "actions", "values", "log_probs", "advantages", "returns")
Int64Array = npt.NDArray[np.int64]


class ChunkSamples(NamedTuple):
    """A minibatch of N chunks of L steps, chunk by chunk, with what the memory needs of them."""

    observations: th.Tensor  # [N L, D]
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
            whole = self.observations.reshape(self.n_envs, self.buffer_size, -1)
            seen = whole[rows, steps]
        else:
            seen = self.observations[steps, rows].swapaxes(0, 1)
        starts = np.ascontiguousarray(self.episode_starts[steps, rows])
        return self.to_torch(seen.reshape(-1, seen.shape[-1])), self.to_torch(starts)

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
        """The chunks so many before, of those rows that have them in this rollout."""
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
        return self.to_torch(np.ascontiguousarray(flat[chunks].T))
