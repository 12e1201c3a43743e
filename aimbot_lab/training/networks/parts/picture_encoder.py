"""Pictures through convolutions, and the features of algorithms that see a world block by block."""

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from aimbot_lab.foundation.world import COLUMNS, WorldSpec
from aimbot_lab.training.networks.features import ScaledFeatures
from aimbot_lab.training.networks.parts.part_shapes import ENCODERS, map_sizes, resolved_picture
from aimbot_lab.training.networks.settings import NetworkSettings, PictureSettings

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
        picture, alone = resolved_picture(settings, spec), isinstance(observations, spaces.Box)
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
