"""What the minibatches of an update are made of, shard by shard."""

from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.fused.core.parts import Doubles, Floats, Whole
from aimbot_lab.training.processes.exchange import Exchange
from aimbot_lab.training.shards import Shards


class Minibatch(NamedTuple):
    """As many pieces of each shard."""

    asked: Whole  # [S, M] what the gradient is asked for
    samples: int  # of all shards of the training
    advantages: Doubles  # [2] the sum of theirs, and of the squares


class Update(NamedTuple):
    """An update before its first step."""

    epochs: list[list[Minibatch]]
    explained_variance: float  # of the returns by the values of the rollout


class Streams(NamedTuple):
    """Where the random numbers of a model come from, and who learns it."""

    seed: int
    shards: Shards
    exchange: Exchange


def streams_of(model: Any) -> Streams:
    """Those of a HybridPPO."""
    return Streams(model.stream_seed, model.shards, model.exchange)


def sums_and_squares(numbers: Floats) -> Doubles:
    """Sums, and sums of squares, [S, 2] of `numbers` [S, N]."""
    exact = numbers.astype(np.float64)
    return np.stack([exact.sum(axis=1), np.square(exact).sum(axis=1)], axis=1)


def sums_of_returns(buffer: RolloutBuffer, shards: Shards) -> Doubles:
    """Sums [S, 4] of the returns, of their squares, and of what the values leave of them."""
    size = buffer.buffer_size, shards.here, shards.rows
    returns, values = (
        one.reshape(size).swapaxes(0, 1).reshape(shards.here, -1)
        for one in (buffer.returns, buffer.values)
    )
    return np.concatenate([sums_and_squares(returns), sums_and_squares(returns - values)], axis=1)


def explained_variance(sums: Doubles, samples: int) -> float:
    """1 - Var[returns - values] / Var[returns] from `sums` [4]; NaN where all are equal."""
    whole, left = (sums[k + 1] - sums[k] * sums[k] / samples for k in (0, 2))
    return float(1.0 - left / whole) if whole > 0.0 else float("nan")
