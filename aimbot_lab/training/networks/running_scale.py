"""Running statistics of observations, kept where the weights are."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from torch import nn

from aimbot_lab.foundation.world import Float32Array

FIRST_COUNT = 1e-4  # weight of the mean 0 and variance 1 before anything was seen
EPSILON = 1e-8  # variance added, so that a constant column divides by no zero
LARGEST = 10.0  # standard deviations beyond which a value is cut


class Moments(NamedTuple):
    """What a batch of rows says about its columns."""

    mean: npt.NDArray[np.float64]  # [D]
    variance: npt.NDArray[np.float64]  # [D]
    rows: int


def moments(rows: Float32Array) -> Moments:
    """Mean and variance of each column of `rows` [N, D]."""
    exact = rows.astype(np.float64)
    return Moments(exact.mean(axis=0), exact.var(axis=0), len(rows))


def together(one: Moments, other: Moments) -> Moments:
    """What two batches say together (Chan, Golub & LeVeque 1979)."""
    rows, apart = one.rows + other.rows, other.mean - one.mean
    squares = one.variance * one.rows + other.variance * other.rows
    squares = squares + apart * apart * (one.rows * other.rows / rows)
    return Moments(one.mean + apart * (other.rows / rows), squares / rows, rows)


class RunningScale(nn.Module):
    """Columns minus their mean, over their standard deviation, cut at ten of these.

    The numbers are those of stable-baselines3's VecNormalize. The statistics change in `fold`
    alone, so that whoever folds between a training's rollouts keeps the log-probabilities of
    each rollout right for its update. As buffers they are part of the policy's state.
    """

    mean: th.Tensor  # [D] float64
    variance: th.Tensor  # [D] float64
    count: th.Tensor  # float64
    factor: th.Tensor  # [D] float32, from the variance
    shift: th.Tensor  # [D] float32, from both

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("mean", th.zeros(columns, dtype=th.float64))
        self.register_buffer("variance", th.ones(columns, dtype=th.float64))
        self.register_buffer("count", th.tensor(FIRST_COUNT, dtype=th.float64))
        for name in ("factor", "shift"):
            self.register_buffer(name, th.zeros(columns), persistent=False)
        self._follow()

    def forward(self, rows: th.Tensor) -> th.Tensor:
        """Scaled rows [N, D] of `rows` [N, D]."""
        return th.addcmul(self.shift, rows, self.factor).clamp(-LARGEST, LARGEST)

    def fold(self, seen: Moments) -> None:
        """Count rows in (Chan, Golub & LeVeque 1979)."""
        mean, variance = th.as_tensor(seen.mean), th.as_tensor(seen.variance)
        device, before = self.mean.device, self.count
        mean, variance = mean.to(device), variance.to(device)
        apart, total = mean - self.mean, before + seen.rows
        squares = self.variance * before + variance * seen.rows
        squares = squares + apart * apart * before * seen.rows / total
        self.mean.copy_(self.mean + apart * seen.rows / total)
        self.variance.copy_(squares / total)
        self.count.copy_(total)
        self._follow()

    def _follow(self) -> None:
        factor = th.rsqrt(self.variance + EPSILON)
        self.factor.copy_(factor)
        self.shift.copy_(-self.mean * factor)

    def _load_from_state_dict(self, state: Mapping[str, Any], *args: Any) -> None:
        super()._load_from_state_dict(state, *args)
        self._follow()
