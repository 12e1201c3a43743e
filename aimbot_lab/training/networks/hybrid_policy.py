"""An actor-critic policy with hybrid actions and with masks in its observations."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor
from stable_baselines3.common.type_aliases import Schedule

from aimbot_lab.foundation.world import COLUMNS
from aimbot_lab.training.networks.branches import HybridDistribution, MaskedHead, SeparateBranches
from aimbot_lab.training.networks.parts.picture_encoder import (
    Shown,
    columns_shown,
    with_columns,
)
from aimbot_lab.training.networks.parts.target_head import BesideSeen, TargetChoice, TargetHead


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
