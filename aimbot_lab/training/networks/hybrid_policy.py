"""The policy of hybrid_ppo: branches of an action, a head that chooses a target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import (
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn
from torch.distributions import Categorical, Normal

from aimbot_lab.foundation.world import COLUMNS
from aimbot_lab.training.networks.encoders import (
    Shown,
    columns_shown,
    with_columns,
)

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
    if th.onnx.is_in_onnx_export():  # the same in an operator that Unity's Barracuda has
        parts = tuple(part.log_softmax(dim=1) for part in parts)
    else:
        parts = tuple(part - part.logsumexp(dim=1, keepdim=True) for part in parts)
    logits = th.cat(parts, dim=1)
    return th.where(masks > 0.5, logits, th.full_like(logits, FORBIDDEN))


@dataclass(frozen=True)
class TargetChoice:
    """What a policy has to know of its branch `target`: no target, then one choice a slot."""

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
    no 1 / sqrt(K), and a learned key for "no target". Input: the actor's output, then keys and
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


class HybridPolicy(ActorCriticPolicy):
    """stable-baselines3's policy, and that exactly where none of these is given.

    `hybrid`: sizes of the choices in the first columns of a `Box` of actions; the others are
    Gaussian. `masked`: sizes of the first choices that the observation's last columns mask
    (1: allowed); the networks do not see these columns. `per_branch`: log-probabilities are
    [N, branches], not [N]. `target`: a branch after the world's chooses a unit to aim at.
    `act`, where set, samples in place of `forward`; `values` gives those of `valued_rows` rows
    after a rollout's last step.
    """

    act: Callable[[th.Tensor], tuple[th.Tensor, th.Tensor, th.Tensor]] | None = None
    values: Callable[[th.Tensor], th.Tensor] | None = None
    valued_rows = 0  # none where there is one row: nothing would tell it from an episode cut off

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        hybrid: Sequence[int] = (),
        masked: Sequence[int] = (),
        per_branch: bool = False,
        target: TargetChoice | None = None,
        **arguments: Any,
    ) -> None:
        self._hybrid, self.masked = tuple(hybrid), tuple(masked)
        self.per_branch, self.target = per_branch, target
        super().__init__(observation_space, action_space, lr_schedule, **arguments)

    def forward(
        self, obs: Any, deterministic: bool = False
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """(actions, values [N, 1], log-probabilities) for observations [N, D]."""
        if self.act is not None and not deterministic:
            return self.act(obs)
        return super().forward(obs, deterministic)

    def predict_values(self, obs: Any) -> th.Tensor:
        """Values [N, 1] of observations [N, D]."""
        if self.values is not None and len(obs) == self.valued_rows:
            return self.values(obs)
        return super().predict_values(obs)

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """The extractor of all columns but the masks, which pass it by."""
        if not self.masked:
            return self._beside_seen(super().make_features_extractor())
        space, count = self.observation_space, sum(self.masked)
        columns: Any = space[COLUMNS] if isinstance(space, spaces.Dict) else space
        fewer = spaces.Box(columns.low[:-count], columns.high[:-count], dtype=np.float32)
        seen: spaces.Space[Any] = fewer
        if isinstance(space, spaces.Dict):
            rest = {name: one for name, one in space.items() if name != COLUMNS}
            own = {COLUMNS: fewer} if fewer.shape[0] else {}
            seen = spaces.Dict(list({**own, **rest}.items()))
        made = self.features_extractor_class(seen, **self.features_extractor_kwargs)
        return BesideMasks(space, self._beside_seen(made), fewer.shape[0], masks=count)

    def _beside_seen(self, features: BaseFeaturesExtractor) -> BaseFeaturesExtractor:
        return features if self.target is None else BesideSeen(features, self.target)

    @property
    def passed(self) -> int:
        """Columns behind the features that go past the actor's layers to its head."""
        return sum(self.masked) + (0 if self.target is None else self.target.passed)

    def _build_mlp_extractor(self) -> None:
        count = self.passed
        if not count:
            super()._build_mlp_extractor()
            return
        self.mlp_extractor = MaskPassingMlp(
            self.features_dim - count,
            net_arch=self.net_arch,
            activation_fn=self.activation_fn,
            device=self.device,
        ).passing(count)

    def _build(self, lr_schedule: Schedule) -> None:
        self.action_dist = self._distribution()
        super()._build(lr_schedule)

    def _distribution(self) -> Any:
        space = self.action_space
        distribution: Any = self.action_dist
        if self._hybrid:
            assert isinstance(space, spaces.Box)
            rest = space.shape[0] - len(self._hybrid)
            distribution = HybridDistribution(self._hybrid, rest, per_branch=self.per_branch)
        elif self.per_branch:
            assert isinstance(space, spaces.MultiDiscrete)
            distribution = SeparateBranches(space.nvec.tolist())
        if self.target is not None:
            distribution.proba_distribution_net = self._targeting_net(
                distribution.proba_distribution_net, self.target
            )
        elif self.masked:
            distribution.proba_distribution_net = self._masked_net(
                distribution.proba_distribution_net
            )
        return distribution

    def _masked_net(self, net: Any) -> Any:
        """`net`, a maker of the last layer, with a layer that obeys masks."""

        def masked_net(latent_dim: int, **arguments: Any) -> Any:
            made = net(latent_dim=latent_dim - sum(self.masked), **arguments)
            if isinstance(made, tuple):
                return MaskedHead(made[0], self.masked), *made[1:]
            return MaskedHead(made, self.masked)

        return masked_net

    def _targeting_net(self, net: Any, target: TargetChoice) -> Any:
        """`net`, a maker of the last layer, with a head that has the target among its branches."""

        def targeting_net(latent_dim: int, **arguments: Any) -> Any:
            latent = latent_dim - self.passed
            made = net(latent_dim=latent, **arguments)
            layer, *others = made if isinstance(made, tuple) else (made,)
            rest = layer.out_features - sum(target.branches) - 1 - target.slots
            head = TargetHead(latent, target, rest=rest, masks=sum(self.masked))
            return (head, *others) if others else head

        return targeting_net


class BesideMasks(BaseFeaturesExtractor):
    """Features of the first columns, and the mask columns behind them as they are."""

    def __init__(
        self,
        observations: spaces.Space[Any],
        seen: BaseFeaturesExtractor,
        columns: int,
        *,
        masks: int,
    ) -> None:
        super().__init__(observations, features_dim=seen.features_dim + masks)
        self.seen, self._columns = seen, columns

    def forward(self, observations: Shown) -> th.Tensor:
        """Features [N, F + masks] of observations of D columns + masks."""
        columns = columns_shown(observations)
        features = self.seen(with_columns(observations, columns[:, : self._columns]))
        return th.cat([features, columns[:, self._columns :]], dim=1)


class MaskPassingMlp(MlpExtractor):
    """The networks, with the masks behind the actor's output."""

    _count = 0

    def passing(self, count: int) -> "MaskPassingMlp":
        """This network, whose input ends in `count` masks."""
        self._count = count
        self.latent_dim_pi += count
        return self

    def forward(self, features: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """(actor's output [N, H + masks], critic's [N, H]) of features [N, F + masks]."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: th.Tensor) -> th.Tensor:
        """The actor's output [N, H] and the masks."""
        seen, masks = features[:, : -self._count], features[:, -self._count :]
        return th.cat([super().forward_actor(seen), masks], dim=1)

    def forward_critic(self, features: th.Tensor) -> th.Tensor:
        """The critic's output [N, H]."""
        return super().forward_critic(features[:, : -self._count])
