"""What extracts features from observations: rays, pictures and units."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from aimbot_lab.foundation.world import COLUMNS, Float32Array, UnitBlock, WorldSpec
from aimbot_lab.training.fused.core.act import Columns, Ranges, Sight, see_from_agent
from aimbot_lab.training.networks.settings import (
    EGOCENTRIC,
    EGOCENTRIC_COLUMNS,
    ENCODERS,
    NetworkSettings,
    PictureSettings,
    Scaling,
    encoded_blocks,
    input_size,
    map_sizes,
    plain_features,
    resolved_picture,
)

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
        self._is_bounded = bool(bounded.any())
        span = th.where(bounded, high - low, th.ones_like(low))
        scale, shift = 2.0 / span, -(high + low) / span
        self.register_buffer("scale", th.where(bounded, scale, 1.0), persistent=False)
        self.register_buffer("shift", th.where(bounded, shift, 0.0), persistent=False)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features [N, D] of raw observations [N, D]."""
        scaled = observations
        if self._is_bounded:
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
        tracing = th.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        traced = th.compiler.is_compiling() or tracing
        if observations.device.type == "cpu" and not traced:
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


ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}
BRIGHTEST = 255.0  # of a shade in 8 bits
Shown = th.Tensor | dict[str, th.Tensor]
"""Columns [N, D], or these as `columns` beside pictures [N, C, H, W]; or a picture alone."""


def columns_shown(observations: Shown) -> th.Tensor:
    """The columns [N, D] of what a network is shown."""
    if isinstance(observations, th.Tensor):
        return observations
    if COLUMNS in observations:
        return observations[COLUMNS]
    one = next(iter(observations.values()))
    return one.new_zeros((len(one), 0))


def with_columns(observations: Shown, columns: th.Tensor) -> Shown:
    """The same with other columns, or without any."""
    if isinstance(observations, th.Tensor):
        return columns
    rest = {name: part for name, part in observations.items() if name != COLUMNS}
    return {COLUMNS: columns, **rest} if columns.shape[1] else rest


class PictureEncoder(nn.Module):
    """Features [N, F] of pictures [N, C, H, W], whose shades of 8 bits are divided by 255.

    `nature` is stable-baselines3's NatureCNN to the bit, and like `impala` has ReLU throughout.
    """

    def __init__(
        self, settings: PictureSettings, shape: tuple[int, ...], activation: type[nn.Module]
    ) -> None:
        super().__init__()
        height, width, channels = shape
        made: list[nn.Module] = []
        if settings.encoder in ("nature", "impala"):
            activation = nn.ReLU
        for one in ENCODERS[settings.encoder or ""]:
            if settings.encoder == "impala":
                made.append(ImpalaSection(channels, one.filters))
            else:
                layer = nn.Conv2d(channels, one.filters, one.kernel, one.stride, one.padding)
                made += [layer, activation()]
            channels = one.filters
        if settings.encoder == "impala":
            made.append(activation())
        last_height, last_width = map_sizes(settings.encoder or "", height, width)[-1]
        linear = nn.Linear(channels * last_height * last_width, settings.size or 0)
        self.layers = nn.Sequential(*made, nn.Flatten(), linear, activation())

    def forward(self, pictures: th.Tensor) -> th.Tensor:
        """Features [N, F] of `pictures` [N, C, H, W]."""
        if not pictures.is_floating_point():  # as stable-baselines3 does before it comes here
            pictures = pictures.float() / BRIGHTEST
        features: th.Tensor = self.layers(pictures)
        return features


class ImpalaSection(nn.Module):
    """A convolution, pooling to half the size, and two residual blocks (Espeholt et al. 2018)."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, filters, 3, padding=1)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.ReLU(),
                nn.Conv2d(filters, filters, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(filters, filters, 3, padding=1),
            )
            for _ in range(2)
        )

    def forward(self, maps: th.Tensor) -> th.Tensor:
        """[N, filters, half H, half W] of `maps` [N, C, H, W]."""
        maps = self.pool(self.first(maps))
        for block in self.blocks:
            maps = maps + block(maps)
        return maps


class BlockFeatures(BaseFeaturesExtractor):
    """Features of each block, one after the other: pictures encoded, columns scaled.

    With no scaling that is stable-baselines3's CombinedExtractor; of a picture alone its NatureCNN.
    """

    def __init__(
        self,
        observations: spaces.Space[Any],
        settings: NetworkSettings,
        spec: WorldSpec,
    ) -> None:
        activation = ACTIVATIONS[settings.activation]
        picture = resolved_picture(settings, spec) if spec.pictures else PictureSettings()
        alone = isinstance(observations, spaces.Box)
        self._alone, self._names, size = alone, list[tuple[str, int | None]](), 0
        encoders: list[nn.Module] = []
        for block in spec.observation_blocks:
            if block.kind == "image":
                self._names.append((block.name, len(encoders)))
                encoders.append(PictureEncoder(picture, block.shape, activation))
                size += picture.size or 0
            elif not picture.alone:
                self._names.append((block.name, None))
                size += block.columns
        super().__init__(observations, features_dim=size)
        self.encoders = nn.ModuleList(encoders)
        self._blocks = [block for block in spec.observation_blocks if block.kind != "image"]
        columns = spaces.Box(spec.observation_low, spec.observation_high)
        scaling = settings.scaling or "ranges"
        self.plain = ScaledFeatures(columns, scaling=scaling) if self._blocks else None

    def forward(self, observations: Any) -> th.Tensor:
        """Features [N, F] of what the algorithm is shown."""
        if self._alone:
            features: th.Tensor = self.encoders[0](observations)
            return features
        scaled = dict[str, th.Tensor]()
        if self.plain is not None:
            names = [block.name for block in self._blocks]
            together = self.plain(th.cat([observations[name] for name in names], dim=1))
            sizes = [block.columns for block in self._blocks]
            scaled = dict(zip(names, th.split(together, sizes, dim=1), strict=True))
        return th.cat(
            [
                scaled[name] if at is None else self.encoders[at](observations[name])
                for name, at in self._names
            ],
            dim=1,
        )


class UnitFeatures(nn.Module):
    """Inputs [N, U, I] of a kind of units from raw observations [N, D]; 0 where there is none.

    A label becomes a column for each of its values, a distance d 1 - 2 exp(-d / 3 m), a place
    what `EgocentricFeatures` makes of the target's; slots have their fixed numbers beside.
    """

    columns: th.Tensor  # [U, F]
    fixed: th.Tensor  # [U, S]
    scale: th.Tensor  # [plain features]
    shift: th.Tensor  # [plain features]

    def __init__(self, block: UnitBlock, space: spaces.Box) -> None:
        super().__init__()
        self._block = block
        self.plain = [block.features.index(name) for name in plain_features(block)]
        first = block.columns[0, self.plain]
        low, high = space.low[first], space.high[first]
        span = np.where(high > low, high - low, 1.0)
        self.register_buffer("columns", th.as_tensor(block.columns), persistent=False)
        self.register_buffer("fixed", th.as_tensor(block.fixed), persistent=False)
        self.register_buffer("scale", th.as_tensor(2.0 / span).float(), persistent=False)
        self.register_buffer("shift", th.as_tensor(-(high + low) / span).float(), persistent=False)

    def forward(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """(inputs [N, U, I], whether there is a unit [N, U])."""
        units = observations[:, self.columns]
        seen = self._seen(units)
        units = th.where(seen.unsqueeze(2), units, th.zeros_like(units))
        inputs = th.cat(list(self._parts(units)), dim=2)
        return th.where(seen.unsqueeze(2), inputs, th.zeros_like(inputs)), seen

    def _seen(self, units: th.Tensor) -> th.Tensor:
        if self._block.seen is None:
            return th.ones_like(units[..., 0], dtype=th.bool)
        return units[..., self._block.features.index(self._block.seen)] > 0.5

    def _parts(self, units: th.Tensor) -> Iterator[th.Tensor]:
        block = self._block
        yield th.addcmul(self.shift, units[..., self.plain], self.scale)
        for name, values in block.labels.items():
            label = units[..., block.features.index(name)].unsqueeze(2)
            apart = label - th.tensor(values, dtype=units.dtype, device=units.device)
            yield (apart.abs() < 0.5).to(units.dtype)  # equality of floats is not in old opsets
        if block.distance is not None:
            distance = units[..., block.features.index(block.distance)].unsqueeze(2)
            near = th.exp(distance * (-1.0 / NEAR))
            yield 1.0 - 2.0 * th.where(distance > 0.0, near, th.zeros_like(near))
        if block.place is not None:
            yield self._place(*(units[..., block.features.index(name)] for name in block.place))
        yield self.fixed.expand(units.shape[0], -1, -1)

    def _place(self, ahead: th.Tensor, right: th.Tensor) -> th.Tensor:
        distance = th.sqrt(ahead * ahead + right * right).clamp_min(1e-6)
        scale = self._block.place_scale
        columns = [ahead / scale, right / scale, ahead / distance, right / distance]
        return th.stack([*columns, th.exp(distance * (-1.0 / NEAR))], dim=2)


class UnitEncoder(nn.Module):
    """Layers over each unit; the last one's output is split into representation and key.

    The representation [E] passes the activation, the key [K] does not, so that it may have any
    sign. Ye et al. 2020: units of a type are max-pooled; here over those that are seen.
    """

    def __init__(
        self, inputs: int, layers: Sequence[int], *, keys: int, activation: type[nn.Module]
    ) -> None:
        super().__init__()
        self.size = layers[-1]
        hidden: list[nn.Module] = []
        for one, other in pairwise((inputs, *layers[:-1])):
            hidden += [nn.Linear(one, other), activation()]
        before = layers[-2] if len(layers) > 1 else inputs
        self.hidden = nn.Sequential(*hidden)
        self.last = nn.Linear(before, layers[-1] + keys)
        self.activation = activation()

    def forward(self, units: th.Tensor, seen: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """(representation [N, E], 0 where none is seen; keys [N, U, K]) of `units` [N, U, I].

        `seen` [N, U] says which there are.
        """
        output = self.last(self.hidden(units))
        shown = self.activation(output[..., : self.size])
        return pooled_over(shown, seen), output[..., self.size :]


def pooled_over(shown: th.Tensor, seen: th.Tensor) -> th.Tensor:
    """The maximum [N, E] of `shown` [N, U, E] over units that are `seen` [N, U]; 0 of none."""
    lowest = th.full_like(shown, -th.inf)
    most = th.where(seen.unsqueeze(2), shown, lowest).amax(dim=1)
    return th.where(seen.any(dim=1, keepdim=True), most, th.zeros_like(most))


class EncodedFeatures(BaseFeaturesExtractor):
    """[features of the core | keys of the units that may be a target, `passed` columns].

    `plain` scales the columns; those of encoded units are left out of it.
    """

    kept: th.Tensor  # [P] columns of the plain features

    def __init__(
        self,
        plain: ScaledFeatures,
        settings: NetworkSettings,
        spec: WorldSpec,
        observations: spaces.Space[Any],
    ) -> None:
        blocks = encoded_blocks(settings, spec)
        taken = [column for block in blocks for column in block.columns.flatten().tolist()]
        units, scalars = settings.units, settings.scalars or ()
        picture = resolved_picture(settings, spec) if spec.pictures else None
        kept = np.setdiff1d(np.arange(plain.features_dim), taken)
        if picture is not None and picture.alone:
            kept = kept[:0]
        keys = units.keys or 0 if units else 0
        self.passed = keys * sum(block.slots for block in blocks if block.target)
        core = (scalars[-1] if scalars else len(kept)) + len(blocks) * (
            units.layers[-1] if units else 0
        )
        core += 0 if picture is None else len(spec.pictures) * (picture.size or 0)
        space = plain._observation_space
        assert isinstance(space, spaces.Box)
        super().__init__(observations, features_dim=core + self.passed)
        self.plain, self.blocks, self._keys = plain, blocks, keys
        self.register_buffer("kept", th.as_tensor(kept), persistent=False)
        activation = ACTIVATIONS[settings.activation]
        self._shown = [block.name for block in spec.pictures]
        self.picture = None
        if picture is not None:
            shapes = [block.shape for block in spec.pictures]
            self.picture = nn.ModuleList(
                PictureEncoder(picture, shape, activation) for shape in shapes
            )
        self.scalars = _layers((len(kept), *scalars), activation)
        self.units, self.encoders = nn.ModuleDict(), nn.ModuleDict()
        for block in blocks:
            assert units is not None
            self.units[block.kind] = UnitFeatures(block, space)
            self.encoders[block.kind] = UnitEncoder(
                input_size(block),
                units.layers,
                keys=keys if block.target else 0,
                activation=activation,
            )

    def forward(self, shown: Any) -> th.Tensor:
        """Features [N, F] of raw observations, `Shown`."""
        parts, observations = [], columns_shown(shown)
        if len(self.kept):
            parts.append(self.scalars(self.plain(observations)[:, self.kept]))
        keys: list[th.Tensor] = []
        for block in self.blocks:
            pooled, of_units = self.encoders[block.kind](*self.units[block.kind](observations))
            parts.append(pooled)
            if block.target and self._keys > 0:
                keys.append(of_units.flatten(1))
        for name, encoder in zip(self._shown, self.picture or (), strict=True):
            parts.append(encoder(shown[name]))
        return th.cat([*parts, *keys], dim=1)


def _layers(sizes: tuple[int, ...], activation: type[nn.Module]) -> nn.Sequential:
    """Layers of these sizes, each with the activation; of a single size none."""
    made: list[nn.Module] = []
    for one, other in pairwise(sizes):
        made += [nn.Linear(one, other), activation()]
    return nn.Sequential(*made)
