"""The features of a network with encoders: of plain columns, each kind of units, a picture."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.features import ScaledFeatures
from aimbot_lab.training.networks.parts.part_shapes import (
    encoded_blocks,
    input_size,
    resolved_picture,
)
from aimbot_lab.training.networks.parts.picture_encoder import (
    ACTIVATIONS,
    PictureEncoder,
    columns_shown,
)
from aimbot_lab.training.networks.parts.units import UnitEncoder, UnitFeatures
from aimbot_lab.training.networks.settings import NetworkSettings


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
            encoded = self.encoders[block.kind](*self.units[block.kind](observations))
            parts.append(encoded.pooled)
            if _has_keys(block, self._keys):
                keys.append(encoded.keys.flatten(1))
        for name, encoder in zip(self._shown, self.picture or (), strict=True):
            parts.append(encoder(shown[name]))
        return th.cat([*parts, *keys], dim=1)


def _has_keys(block: UnitBlock, keys: int) -> bool:
    return block.target and keys > 0


def _layers(sizes: tuple[int, ...], activation: type[nn.Module]) -> nn.Sequential:
    """Layers of these sizes, each with the activation; of a single size none."""
    made: list[nn.Module] = []
    for one, other in pairwise(sizes):
        made += [nn.Linear(one, other), activation()]
    return nn.Sequential(*made)
