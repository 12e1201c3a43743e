"""What an encoder is shown of units, and encoders: the same weights for all units of a kind."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from torch import nn

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.training.networks.parts.part_shapes import plain_features

NEAR = 3.0  # m over which closeness falls to 1/e, as for the rays of EgocentricFeatures


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
            yield (label == th.tensor(values, device=units.device)).to(units.dtype)
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


class EncodedUnits(NamedTuple):
    """What an encoder makes of a kind of units."""

    pooled: th.Tensor  # [N, E], 0 where none is seen
    keys: th.Tensor  # [N, U, K] for the attention of a target head


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

    def forward(self, units: th.Tensor, seen: th.Tensor) -> EncodedUnits:
        """What is made of `units` [N, U, I], of which `seen` [N, U] says which there are."""
        output = self.last(self.hidden(units))
        shown = self.activation(output[..., : self.size])
        return EncodedUnits(pooled_over(shown, seen), output[..., self.size :])


def pooled_over(shown: th.Tensor, seen: th.Tensor) -> th.Tensor:
    """The maximum [N, E] of `shown` [N, U, E] over units that are `seen` [N, U]; 0 of none."""
    lowest = th.full_like(shown, -th.inf)
    most = th.where(seen.unsqueeze(2), shown, lowest).amax(dim=1)
    return th.where(seen.any(dim=1, keepdim=True), most, th.zeros_like(most))
