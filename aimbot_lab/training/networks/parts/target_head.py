"""The action head that chooses a unit to aim at, or nobody."""

from dataclasses import dataclass

import torch as th
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from aimbot_lab.training.networks.branches import FORBIDDEN, masked_logits
from aimbot_lab.training.networks.parts.picture_encoder import Shown, columns_shown


@dataclass(frozen=True)
class TargetChoice:
    """What a policy has to know of its branch `target`: nobody, then one choice a slot."""

    branches: tuple[int, ...]  # sizes of the world's, which come first
    seen_columns: tuple[int, ...]  # [U] of an observation, 1 where a slot has a unit
    keys: int  # K, numbers of a unit's key; 0: the linear head, which has none
    masked: bool  # whether slots without a unit are ruled out

    @property
    def slots(self) -> int:
        """U, how many units there may be."""
        return len(self.seen_columns)

    @property
    def passed(self) -> int:
        """Columns that go past the actor's layers: keys [U, K], and which slots are seen [U]."""
        return self.slots * (self.keys + 1)


class BesideSeen(BaseFeaturesExtractor):
    """Features, and behind them which slots have a unit."""

    columns: th.Tensor  # [U]

    def __init__(self, features: BaseFeaturesExtractor, target: TargetChoice) -> None:
        super().__init__(
            features._observation_space, features_dim=features.features_dim + target.slots
        )
        self.features = features
        self.register_buffer("columns", th.tensor(target.seen_columns), persistent=False)

    def forward(self, observations: Shown) -> th.Tensor:
        """[N, F + U] of raw observations."""
        seen = columns_shown(observations)[:, self.columns]
        return th.cat([self.features(observations), seen], dim=1)


class TargetHead(nn.Module):
    """Logits of the world's branches, of the target, and of the rest of an action.

    Attention (Ye et al. 2020): p(t | a) = softmax(q . keys), q a layer of the actor's output, with
    no 1 / sqrt(K), and a learned key for nobody. The input is the actor's output, then keys and
    which slots are seen, then masks of the world's branches, of which there may be none.
    """

    def __init__(self, latent: int, target: TargetChoice, *, rest: int, masks: int) -> None:
        super().__init__()
        self._choices, self._target, self._masks = list(target.branches), target, masks
        self._latent = latent
        self.layer = nn.Linear(latent, sum(target.branches) + rest)
        if target.keys:
            self.query = nn.Linear(latent, target.keys)
            self.nobody = nn.Parameter(th.zeros(target.keys))
        else:
            self.linear = nn.Linear(latent, 1 + target.slots)

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Logits [N, L] with those forbidden at -1e8."""
        target = self._target
        sizes = [self._latent, target.slots * target.keys, target.slots, self._masks]
        latent, keys, seen, masks = th.split(inputs, sizes, dim=1)
        output, count = self.layer(latent), sum(self._choices)
        branches = output[:, :count]
        if self._masks:
            branches = masked_logits(branches, masks, self._choices)
        scores = self.scores(latent, keys.reshape(keys.shape[0], target.slots, target.keys))
        if target.masked:
            nobody = th.ones_like(seen[:, :1], dtype=th.bool)
            allowed = th.cat([nobody, seen > 0.5], dim=1)
            scores = th.where(allowed, scores, th.full_like(scores, FORBIDDEN))
        return th.cat([branches, scores, output[:, count:]], dim=1)

    def scores(self, latent: th.Tensor, keys: th.Tensor) -> th.Tensor:
        """Scores [N, 1 + U] for the actor's output [N, H] and `keys` [N, U, K]."""
        if not self._target.keys:
            linear: th.Tensor = self.linear(latent)
            return linear
        query = self.query(latent)
        nobody = (query * self.nobody).sum(dim=1, keepdim=True)
        return th.cat([nobody, (keys @ query.unsqueeze(2)).squeeze(2)], dim=1)
