"""Encoders of units: the same weights for all units of a kind, pooled over those that are seen."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch as th
from torch import nn


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
