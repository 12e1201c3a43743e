"""The picture of an observation through convolutions."""

import numpy as np
import torch as th
from gymnasium import spaces
from torch import nn

from aimbot_lab.foundation.world import Int64Array, WorldSpec
from aimbot_lab.training.networks.parts.part_shapes import IMAGE, convolutions, map_sizes
from aimbot_lab.training.networks.settings import PictureSettings


def picture_columns(spec: WorldSpec) -> Int64Array:
    """Columns [C, H, W] of the pictures of `spec`; earlier ones are the first channels."""
    first, found = 0, []
    for block in spec.observation_blocks:
        if block.kind == IMAGE:
            columns = np.arange(first, first + block.columns).reshape(block.shape)
            found.append(columns.transpose(2, 0, 1))
        first += block.columns
    return np.concatenate(found)


class PictureEncoder(nn.Module):
    """Features [N, F] of the pictures in raw observations [N, D], scaled to -1 to 1."""

    columns: th.Tensor  # [C H W]
    scale: th.Tensor  # [C H W]
    shift: th.Tensor  # [C H W]

    def __init__(
        self,
        settings: PictureSettings,
        columns: Int64Array,
        space: spaces.Box,
        *,
        activation: type[nn.Module],
    ) -> None:
        super().__init__()
        self._shape, flat = columns.shape, columns.flatten()
        low, high = space.low[flat], space.high[flat]
        self.register_buffer("columns", th.as_tensor(flat), persistent=False)
        self.register_buffer("scale", th.as_tensor(2.0 / (high - low)).float(), persistent=False)
        shift = th.as_tensor(-(high + low) / (high - low)).float()
        self.register_buffer("shift", shift, persistent=False)
        channels, height, width = columns.shape
        made: list[nn.Module] = []
        for one in convolutions(settings):
            layer = nn.Conv2d(channels, one.filters, one.kernel, one.stride, one.padding)
            made += [layer, activation()]
            channels = one.filters
        last_height, last_width = map_sizes(settings, height, width)[-1]
        made += [nn.Flatten(), nn.Linear(channels * last_height * last_width, settings.size)]
        self.layers = nn.Sequential(*made, activation())

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features [N, F] of raw observations [N, D]."""
        shades = th.addcmul(self.shift, observations[:, self.columns], self.scale)
        features: th.Tensor = self.layers(shades.reshape(len(shades), *self._shape))
        return features
