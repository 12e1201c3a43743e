"""Rewards as a learner is given them: times a constant, or over their running spread."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array

EPSILON = 1e-8  # variance added
LARGEST = 10.0  # size beyond which a scaled reward is cut


class RewardScale(Protocol):
    """What turns a step's rewards into the learner's."""

    def restart(self, rows: BoolArray) -> None:
        """Episodes begin in `rows` [B]."""
        ...

    def scaled(self, rewards: Float32Array, finished: BoolArray) -> Float32Array:
        """Fresh rewards [B] of a step's raw ones [B]; `finished` [B] ended an episode."""
        ...

    def state(self) -> dict[str, Any]:
        """What later rewards depend on: numbers and arrays by name."""
        ...

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        ...


class ConstantRewardScale:
    """Every reward times the same number."""

    def __init__(self, factor: float) -> None:
        self._factor = np.float32(factor)

    def restart(self, _: BoolArray) -> None:
        """Nothing is remembered."""

    def scaled(self, rewards: Float32Array, _: BoolArray) -> Float32Array:
        """Fresh rewards [B]."""
        with np.errstate(over="ignore"):  # the report of the losses shows it
            return rewards * self._factor

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on."""


class RunningRewardScale:
    """Rewards over the standard deviation of all discounted returns so far, cut at ten.

    A row's return is the discounted sum of its episode's rewards up to now, as in
    stable-baselines3's VecNormalize; the statistics are brought up to date at every step, before
    its rewards are scaled.
    """

    def __init__(self, num_envs: int, *, gamma: float) -> None:
        self._gamma = gamma
        self._returns = np.zeros(num_envs)  # [B]
        self._mean, self._variance, self._count = 0.0, 1.0, 1e-4

    def restart(self, rows: BoolArray) -> None:
        """Forget the returns of the episodes that run in `rows` [B], not the statistics."""
        self._returns[rows] = 0.0

    def scaled(self, rewards: Float32Array, finished: BoolArray) -> Float32Array:
        """Fresh rewards [B]."""
        self._returns = self._returns * self._gamma + rewards
        self._count_in(float(np.mean(self._returns)), float(np.var(self._returns)))
        self._returns[finished] = 0.0
        spread = np.sqrt(self._variance + EPSILON)
        scaled: Float32Array = np.clip(rewards / spread, -LARGEST, LARGEST).astype(np.float32)
        return scaled

    def _count_in(self, mean: float, variance: float) -> None:
        """One more batch (Chan, Golub & LeVeque 1979)."""
        seen, apart = len(self._returns), mean - self._mean
        total = self._count + seen
        squares = self._variance * self._count + variance * seen
        squares += apart * apart * self._count * seen / total
        self._mean += apart * seen / total
        self._variance, self._count = squares / total, total

    def state(self) -> dict[str, Any]:
        """`returns` [B], `mean`, `variance` and `count`."""
        return {
            "returns": self._returns.copy(),
            "mean": self._mean,
            "variance": self._variance,
            "count": self._count,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._returns = np.array(state["returns"], np.float64)
        self._mean, self._variance = float(state["mean"]), float(state["variance"])
        self._count = float(state["count"])


def reward_scale(scale: float | Literal["running"], num_envs: int, *, gamma: float) -> RewardScale:
    """What `scale` means for `num_envs` rows whose learner discounts by `gamma`."""
    if scale == "running":
        return RunningRewardScale(num_envs, gamma=gamma)
    return ConstantRewardScale(scale)
