"""An agent as one network from raw observations to the world's actions, to be used elsewhere."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch as th
from torch import nn

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents import SavedAgent
from aimbot_lab.training.algorithms import ALGORITHMS
from aimbot_lab.training.branches import FORBIDDEN
from aimbot_lab.training.settings import ONE_CHOICE

Scores = Callable[[Any, th.Tensor], th.Tensor]


class Heads(NamedTuple):
    """How scores are read: one for every choice of every branch, then means of numbers."""

    choices: tuple[int, ...]  # sizes of the branches, the bins of the mouse among them
    limit: float | None  # a continuous mouse is cut here; None: it has bins
    flat: bool  # scores are of all combinations of choices


class DeployedPolicy(nn.Module):
    """The likeliest actions [N, 4] and the scores [N, L] that they come from.

    Takes raw observations [N, D] and, where the agent learned with masks, those of the world's
    branches [N, 8]; `masked` says so. Scores are logits; for a continuous mouse the last column
    is its mean, for algorithms that value actions they are these values.
    """

    bins: th.Tensor  # [M]

    def __init__(self, saved: SavedAgent) -> None:
        super().__init__()
        agent, train = saved.agent, saved.train
        if agent.recurrent:
            raise ConfigurationError(
                f"{train.algo}: its agent remembers, so no ONNX file can play it; export it to a "
                "folder, as safetensors"
            )
        self.policy: Any = agent.policy
        self.masked, self._masks_seen = agent.masked, ALGORITHMS[train.algo].face(train).masks_shown
        self._scores = SCORES.get(train.algo, actor_scores)
        hybrid = train.aim == "hybrid"
        bins = () if hybrid else (len(train.aim_bins),)
        limit = agent.spec.continuous_limit if hybrid else None
        self.heads = Heads((*agent.spec.branches, *bins), limit, train.algo in ONE_CHOICE)
        self._branches = sum(agent.spec.branches)
        self.register_buffer("bins", th.tensor(train.aim_bins, dtype=th.float32))

    def forward(
        self, observation: th.Tensor, action_masks: th.Tensor | None = None
    ) -> tuple[th.Tensor, th.Tensor]:
        """(actions, scores) for raw observations."""
        if self._masks_seen and action_masks is not None:
            seen = th.cat([observation, action_masks.to(observation.dtype)], dim=1)
            scores = self._scores(self.policy, seen)
        else:
            scores = self._scores(self.policy, observation)
            if action_masks is not None:
                allowed, free = scores[:, : self._branches], scores[:, self._branches :]
                forbidden = th.full_like(allowed, FORBIDDEN)
                scores = th.cat([th.where(action_masks, allowed, forbidden), free], dim=1)
        return self._actions(scores), scores

    def _actions(self, scores: th.Tensor) -> th.Tensor:
        heads = self.heads
        if heads.flat:
            return self._from_flat(scores.argmax(dim=1))
        if heads.limit is None:
            chosen = [part.argmax(dim=1) for part in th.split(scores, list(heads.choices), dim=1)]
            return self._with_bins(chosen)
        *parts, mouse = th.split(scores, [*heads.choices, 1], dim=1)
        columns = [part.argmax(dim=1).to(scores.dtype) for part in parts]
        aim = mouse[:, 0].clamp(-heads.limit, heads.limit)
        return th.stack([*columns, aim], dim=1)

    def _from_flat(self, index: th.Tensor) -> th.Tensor:
        chosen = []
        for size in reversed(self.heads.choices):  # the last counts fastest
            chosen.append(index % size)
            index = th.div(index, size, rounding_mode="floor")
        return self._with_bins(chosen[::-1])

    def _with_bins(self, chosen: list[th.Tensor]) -> th.Tensor:
        aim = self.bins[chosen[-1]]
        return th.stack([*(index.to(aim.dtype) for index in chosen[:-1]), aim], dim=1)


def actor_scores(policy: Any, seen: th.Tensor) -> th.Tensor:
    """What the actor's last layer gives."""
    features = policy.pi_features_extractor(seen)
    scores: th.Tensor = policy.action_net(policy.mlp_extractor.forward_actor(features))
    return scores


def _q_values(policy: Any, seen: th.Tensor) -> th.Tensor:
    values: th.Tensor = policy.q_net.q_net(policy.q_net.features_extractor(seen))
    return values


def _mean_quantiles(policy: Any, seen: th.Tensor) -> th.Tensor:
    net = policy.quantile_net
    quantiles = net.quantile_net(net.features_extractor(seen))
    values: th.Tensor = quantiles.view(-1, net.n_quantiles, int(net.action_space.n)).mean(dim=1)
    return values


SCORES: Mapping[str, Scores] = MappingProxyType({"dqn": _q_values, "qrdqn": _mean_quantiles})
"""How the algorithms that value actions score them; all others by their actor."""
