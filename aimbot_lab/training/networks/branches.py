"""Distributions of actions that consist of branches."""

from collections.abc import Sequence
from typing import Any

import torch as th
from stable_baselines3.common.distributions import (
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from torch import nn
from torch.distributions import Categorical, Normal

FORBIDDEN = -1e8  # a logit whose probability is exactly 0


class SeparateBranches(MultiCategoricalDistribution):
    """Independent choices, each with a log-probability of its own."""

    def log_prob(self, actions: th.Tensor) -> th.Tensor:
        """Log-probabilities [N, K] of `actions` [N, K]."""
        return _log_probs(self.distribution, actions)


class HybridDistribution(DiagGaussianDistribution):
    """Independent choices, then independent Gaussians, in the columns of one action.

    A subclass of stable-baselines3's Gaussian because its policies hand that class both
    parameters: here the logits and means [N, sum of choices + C], and log_std [C].
    """

    def __init__(
        self, choices: Sequence[int], continuous: int, *, per_branch: bool = False
    ) -> None:
        super().__init__(len(choices) + continuous)
        self.choices, self.continuous = tuple(choices), continuous
        self._per_branch = per_branch
        self.branches: list[Any] = []  # of Categorical, which torch leaves untyped

    def proba_distribution_net(
        self, latent_dim: int, log_std_init: float = 0.0
    ) -> tuple[nn.Module, nn.Parameter]:
        """(layer for logits and means, log standard deviations [C])."""
        layer = nn.Linear(latent_dim, sum(self.choices) + self.continuous)
        return layer, nn.Parameter(th.ones(self.continuous) * log_std_init)

    def proba_distribution(
        self, mean_actions: th.Tensor, log_std: th.Tensor
    ) -> "HybridDistribution":
        """This distribution with these parameters; `mean_actions` are logits, then means."""
        *logits, means = th.split(mean_actions, [*self.choices, self.continuous], dim=1)
        self.branches = [Categorical(logits=part) for part in logits]
        self.distribution = Normal(means, th.ones_like(means) * log_std.exp())
        return self

    def log_prob(self, actions: th.Tensor) -> th.Tensor:
        """Log-probabilities [N] of `actions` [N, K + C]; [N, K + C] with `per_branch`."""
        count = len(self.choices)
        gaussian: Any = self.distribution
        choices = _log_probs(self.branches, actions[:, :count])
        every = th.cat([choices, gaussian.log_prob(actions[:, count:])], dim=1)
        return every if self._per_branch else every.sum(dim=1)

    def entropy(self) -> th.Tensor:
        """Entropy [N] of whole actions, in nats."""
        parts = th.stack([branch.entropy() for branch in self.branches], dim=1)
        gaussian: Any = self.distribution
        return th.cat([parts, gaussian.entropy()], dim=1).sum(dim=1)

    def sample(self) -> th.Tensor:
        """Actions [N, K + C]: choices as whole numbers, then the continuous columns."""
        chosen = th.stack([branch.sample() for branch in self.branches], dim=1)
        return th.cat([chosen.float(), self.distribution.rsample()], dim=1)

    def mode(self) -> th.Tensor:
        """The most probable actions [N, K + C]."""
        chosen = th.stack([branch.logits.argmax(dim=1) for branch in self.branches], dim=1)
        return th.cat([chosen.float(), self.distribution.mean], dim=1)


def _log_probs(branches: Sequence[Any], actions: th.Tensor) -> th.Tensor:
    """Log-probability [N, K] of each of the choices `actions` [N, K]."""
    pairs = zip(branches, th.unbind(actions, dim=1), strict=True)
    return th.stack([branch.log_prob(action) for branch, action in pairs], dim=1)


class MaskedHead(nn.Module):
    """A layer of logits whose input ends in masks of its first outputs.

    Logits are normalised within their branch before they are masked, as sb3-contrib does it, so
    that results agree.
    """

    def __init__(self, layer: nn.Module, choices: Sequence[int]) -> None:
        super().__init__()
        self.layer = layer
        self._choices, self._masks = list(choices), sum(choices)

    def forward(self, latent: th.Tensor) -> th.Tensor:
        """Logits [N, L] with those forbidden at -1e8; `latent` [N, H + sum of choices]."""
        output = self.layer(latent[:, : -self._masks])
        masks = latent[:, -self._masks :]
        logits = masked_logits(output[:, : self._masks], masks, self._choices)
        return th.cat([logits, output[:, self._masks :]], dim=1)


def masked_logits(logits: th.Tensor, masks: th.Tensor, choices: list[int]) -> th.Tensor:
    """`logits` [N, L] of branches, normalised, with those at -1e8 whose `masks` [N, L] are 0."""
    parts = th.split(logits, choices, dim=1)
    logits = th.cat([part - part.logsumexp(dim=1, keepdim=True) for part in parts], dim=1)
    return th.where(masks > 0.5, logits, th.full_like(logits, FORBIDDEN))
