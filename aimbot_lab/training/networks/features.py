"""Features of observations: scaled by ranges or by running statistics, or seen from the agent."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.training.fused.core.features import Columns, Ranges, Sight, see_from_agent
from aimbot_lab.training.networks.settings import EGOCENTRIC, EGOCENTRIC_COLUMNS, Scaling

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
    alone, so folding between rollouts keeps each rollout's log-probabilities valid for its
    update. As buffers they are part of the policy's state.
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


WIDEST = 1e5  # range that is scaled to -1 to 1; within a wider one nothing could be told apart
NEAR = 3.0  # m over which a ray's closeness falls to 1/e


class ScaledFeatures(BaseFeaturesExtractor):
    """Each observation column mapped linearly from its declared range to -1 to 1.

    With scaling `running`, then to mean 0 and standard deviation 1 by what was seen so far; with
    `none` it stays as it is.
    """

    scale: th.Tensor  # [D]
    shift: th.Tensor  # [D]

    def __init__(
        self, observation_space: spaces.Box, *, scaling: Scaling = "ranges", extra: int = 0
    ) -> None:
        columns = observation_space.shape[0]
        super().__init__(observation_space, features_dim=columns + extra)
        self.statistics = RunningScale(columns) if scaling == "running" else None
        low = th.as_tensor(observation_space.low)
        high = th.as_tensor(observation_space.high)
        bounded = (high - low < WIDEST) & (high > low)  # others are left as they are
        bounded &= scaling != "none"
        span = th.where(bounded, high - low, th.ones_like(low))
        scale, shift = 2.0 / span, -(high + low) / span
        self.register_buffer("scale", th.where(bounded, scale, 1.0), persistent=False)
        self.register_buffer("shift", th.where(bounded, shift, 0.0), persistent=False)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features [N, D] of raw observations [N, D]."""
        scaled = th.addcmul(self.shift, observations, self.scale)
        return scaled if self.statistics is None else self.statistics(scaled)

    def moments(self, observations: Float32Array) -> Moments:
        """What raw observations [N, D or more] say about the columns once scaled by ranges."""
        seen = observations[:, : len(self.scale)]
        return moments(seen * self.scale.cpu().numpy() + self.shift.cpu().numpy())


class EgocentricFeatures(ScaledFeatures):
    """Scaled columns, ray distances as closeness, and where the target lies from the agent.

    Added columns: FireBase centre ahead and to the right in metres over the floor's side, the
    same as a unit vector, and the closeness of the target; all 0 without a FireBase. A ray's
    distance d becomes 1 - 2 exp(-d / 3 m), so that near walls are told apart best; that and
    the added columns are the same with `running`.
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        names: Sequence[str],
        *,
        scaling: Scaling = "ranges",
    ) -> None:
        super().__init__(observation_space, scaling=scaling, extra=EGOCENTRIC)
        index = {name: column for column, name in enumerate(names)}
        self._floor = float(observation_space.high[index["agent_x"]])
        distances = [k for k, name in enumerate(names) if name.endswith("_distance")]
        # The newest observation comes last, and its ray distances at its very end.
        known = {column: index[name] for column, name in EGOCENTRIC_COLUMNS.items()}
        self._columns = Columns(**known, rays=distances[0], size=len(names))

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features [N, D + 5] of raw observations [N, D]."""
        if observations.device.type == "cpu" and not th.compiler.is_compiling():
            return self._by_kernel(observations)
        return self._by_torch(observations, super().forward(observations))

    def _by_kernel(self, observations: th.Tensor) -> th.Tensor:
        """Several times as fast as torch on a few hundred samples, and with no gradient."""
        features = np.empty((len(observations), self.features_dim), np.float32)
        seen = observations.detach().contiguous().numpy()
        see_from_agent(seen, self.own_columns(observations), self.sight(), features)
        return th.from_numpy(features)

    def sight(self) -> Sight:
        """How the kernels see; they need `own_columns` beside raw observations."""
        scale, shift = self.scale, self.shift
        if self.statistics is not None:  # which `own_columns` contain
            scale, shift = th.ones_like(scale), th.zeros_like(shift)
        lengths = np.float32(self._floor), np.float32(NEAR)
        return Sight(self._columns, Ranges(scale.numpy(), shift.numpy(), *lengths))

    def own_columns(self, observations: th.Tensor) -> Float32Array:
        """What is to be scaled of raw observations [N, D]: with `running`, by these [N, D]."""
        seen = observations.detach().contiguous()
        if self.statistics is not None:
            seen = super().forward(seen)
        own: Float32Array = seen.numpy()
        return own

    def _by_torch(self, observations: th.Tensor, scaled: th.Tensor) -> th.Tensor:
        distances = observations[:, self._columns.rays :]
        near = th.exp(distances * (-1.0 / NEAR))
        # Where a ray met nothing its distance is 0, which must not read as touching.
        near = th.where(distances > 0.0, near, th.zeros_like(near))
        parts = [scaled[:, : self._columns.rays], 1.0 - 2.0 * near, self._target(observations)]
        return th.cat(parts, dim=1)

    def _target(self, observations: th.Tensor) -> th.Tensor:
        base_x, base_z, x, z, cosine, sine = (observations[:, k] for k in self._columns[:6])
        to_x, to_z = base_x - x, base_z - z
        ahead = to_x * sine + to_z * cosine
        right = to_x * cosine - to_z * sine
        distance = th.sqrt(to_x * to_x + to_z * to_z).clamp_min(1e-6)
        columns = [ahead / self._floor, right / self._floor, ahead / distance, right / distance]
        columns.append(th.exp(distance * (-1.0 / NEAR)))
        exists = (observations[:, self._columns.diameter] > 0.0).unsqueeze(1)
        return th.stack(columns, dim=1) * exists
