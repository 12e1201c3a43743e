"""What a policy remembers while a rollout is collected, and the chunks it is learned from."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch as th


class WarmUp(NamedTuple):
    """Steps before chunks, which are run without gradient: L of `rows` [R] of a minibatch."""

    rows: th.Tensor
    observations: th.Tensor  # [R * L, D]
    starts: th.Tensor  # [L, R]


class Chunks(NamedTuple):
    """What the memory needs of a minibatch of N chunks of L steps, beside its samples."""

    state: th.Tensor  # [N, S, H] where the warm-up begins, or the chunk
    starts: th.Tensor  # [L, N] 1 where an episode begins
    warm_up: tuple[WarmUp, ...] = ()


class RolloutMemory:
    """The state [B, S, H] of every row, and copies of it from where each chunk began."""

    def __init__(self, parts: int, size: int, *, length: int) -> None:
        self._form, self._length = (parts, size), length
        self.state: th.Tensor | None = None
        self.kept: list[th.Tensor] = []  # [B, S, H] as it was at each chunk's first step
        self.cut_off: deque[int] = deque()  # rows whose last observation is valued next
        self._steps = 0
        self._starts: Callable[[], np.ndarray] | None = None

    def begin(self, starts: Callable[[], np.ndarray]) -> None:
        """Begin a rollout; `starts` gives where an episode begins now [B]."""
        self.kept, self._steps, self._starts = [], 0, starts
        self.cut_off.clear()

    def starts(self, rows: int, device: th.device) -> th.Tensor:
        """[1, B] 1 where an episode begins with the present observations; everywhere at first."""
        if self._starts is None:
            return th.ones(1, rows, device=device)
        return th.as_tensor(self._starts(), dtype=th.float32, device=device).reshape(1, rows)

    def before(self, rows: int, device: th.device) -> th.Tensor:
        """The state [B, S, H] before a step, kept where a chunk begins with it."""
        if self.state is None or len(self.state) != rows:
            self.state = self.empty(rows, device)
        if self._steps % self._length == 0:
            self.kept.append(self.state)
        self._steps += 1
        return self.state

    def empty(self, rows: int, device: th.device) -> th.Tensor:
        """The state of so many rows that remember nothing."""
        return th.zeros(rows, *self._form, device=device)
