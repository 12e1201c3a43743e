"""An agent as one network from raw observations to the world's actions, to be used elsewhere."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.qrdqn.policies import QRDQNPolicy
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from aimbot_lab.evaluation.temperature import LIKELIEST, Temperature
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.deployed_parts import (
    AimedMouse,
    deployed_memory,
    remembered_scores,
)
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.networks.branches import FORBIDDEN

OUTERMOST = 2.5e-7  # which a quantile's argument keeps from 0 and from 1
NEAR = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
FAR = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)
"""Coefficients of Giles's polynomials for the middle and the tails."""
MEMORY = ("memory_h", "memory_c")  # inputs: hidden and cell of the step before
Scores = Callable[[Any, th.Tensor], th.Tensor]


class Heads(NamedTuple):
    """How scores are read: one for every choice of every branch, then means of numbers."""

    choices: tuple[int, ...]  # sizes of the branches, the bins of a mouse among them
    limits: tuple[float, float] | None  # a continuous mouse is cut here; None: it has bins
    flat: bool  # scores are of all combinations of choices


class DeployedPolicy(nn.Module):
    """Actions [N, A] at `temperature` and the scores [N, L] that they come from.

    Takes raw observations [N, D] and, where the agent learned with masks, those of the choices of
    the world's branches [N, C]; `masked` says so. Where the temperature is not 0 it takes noise
    [N, `columns`], a number of an even distribution from 0 to 1 for each column of the action (and,
    before the mouse's, one for the target), and is a function: the same observation and noise give
    the same action. Scores are logits as trained; for a continuous mouse the last column is its
    mean, for algorithms that value actions they are these values. An agent that remembers takes
    hidden and cell [N, `memory.size`], zeros where an episode begins, and gives those after.
    """

    bins: th.Tensor  # [M]
    deviation: th.Tensor  # [1] of a continuous mouse at the temperature; [0] where it has bins

    def __init__(self, saved: SavedAgent, temperature: Temperature | None = None) -> None:
        super().__init__()
        agent, train = saved.agent, saved.train
        if agent.spec.continuous > 1:
            raise ConfigurationError(
                "an ONNX file can hold agents whose actions have at most one continuous column "
                f"(this one's have {agent.spec.continuous}); export it to a folder, as safetensors"
            )
        policy: Any = agent.policy
        self.policy, self.spec = policy, agent.spec
        self.temperature = agent.temperature(temperature)
        self.noisy = self.temperature != LIKELIEST
        algorithm = algorithm_of(train)
        self.masked, self._masks_seen = agent.masked, algorithm.adapter(train).masks_shown
        self._scores = _scores_of(policy, train.algo)
        self.memory = deployed_memory(policy)
        self.aimed = AimedMouse(agent.spec) if train.target != "none" else None
        target = () if self.aimed is None else (1 + self.aimed.slots,)
        self._has_mouse = agent.spec.continuous == 1
        hybrid = train.aim == "hybrid" and self._has_mouse
        bins = () if hybrid or not self._has_mouse else (len(train.aim_bins),)
        limits = None
        if hybrid:
            (low,), (high,) = agent.spec.action_bounds
            limits = float(low), float(high)
        choices = *agent.spec.branches, *target, *bins
        self.heads = Heads(choices, limits, algorithm.ranks_actions)
        self._branches = sum(agent.spec.branches)
        self.register_buffer("bins", th.from_numpy(agent.bins[:1].flatten()))
        log_std: th.Tensor = policy.log_std.detach() if hybrid else th.zeros(0)
        deviation = th.exp(log_std) * float(self.temperature)
        self.register_buffer("deviation", deviation)

    @property
    def columns(self) -> int:
        """Numbers of noise that a decision takes."""
        return len(self.heads.choices) + (self.heads.limits is not None)

    def nothing(self, rows: int) -> dict[str, Float32Array]:
        """What it remembers of so many episodes that begin, by name; empty without a memory."""
        if self.memory is None:
            return {}
        return {name: np.zeros((rows, self.memory.size), np.float32) for name in MEMORY}

    def as_memory(self, state: Any) -> dict[str, Float32Array]:
        """What `Agent.choose` gave as the `state` of N episodes, by the same names."""
        if isinstance(state, tuple):  # of sb3-contrib: hidden and cell [layers, N, H]
            parts = [np.concatenate(list(part), axis=1) for part in state]
        else:
            parts = [state[:, 0], state[:, 1]]
        return dict(zip(MEMORY, parts, strict=True))

    def forward(
        self,
        observation: th.Tensor,
        action_masks: th.Tensor | None = None,
        noise: th.Tensor | None = None,
        memory_h: th.Tensor | None = None,
        memory_c: th.Tensor | None = None,
    ) -> tuple[th.Tensor, ...]:
        """(actions, scores) for raw observations, then the memory after them where there is one."""
        seen, after = observation, cast(tuple[th.Tensor, ...], ())
        if self._masks_seen and action_masks is not None:
            seen = th.cat([observation, action_masks.to(observation.dtype)], dim=1)
        if self.memory is None:
            scores = self._scores(self.policy, seen)
        else:
            assert memory_h is not None
            assert memory_c is not None
            before = memory_h, memory_c
            scores, after = remembered_scores(self.policy, self.memory, seen, before)
        if action_masks is not None and not self._masks_seen:
            allowed, free = scores[:, : self._branches], scores[:, self._branches :]
            forbidden = th.full_like(allowed, FORBIDDEN)
            scores = th.cat([th.where(action_masks, allowed, forbidden), free], dim=1)
        return self._actions(scores, noise, observation), scores, *after

    def _actions(
        self, scores: th.Tensor, noise: th.Tensor | None, observation: th.Tensor
    ) -> th.Tensor:
        heads = self.heads
        if heads.flat:
            return self._from_flat(scores.argmax(dim=1))
        if heads.limits is None:
            return self._with_bins(self._chosen(scores, noise), observation)
        count = sum(heads.choices)
        chosen = self._chosen(scores[:, :count], noise)
        mouse = scores[:, count]
        if noise is not None:
            mouse = mouse + self.deviation * normal_quantile(noise[:, -1])
        return self._with_mouse(chosen, mouse.clamp(*heads.limits), observation)

    def _chosen(self, scores: th.Tensor, noise: th.Tensor | None) -> list[th.Tensor]:
        """An index [N] of each branch."""
        parts = th.split(scores, list(self.heads.choices), dim=1)
        if noise is None:
            return [part.argmax(dim=1) for part in parts]
        cooled = [part / float(self.temperature) for part in parts]
        return [drawn(part, noise[:, column]) for column, part in enumerate(cooled)]

    def _from_flat(self, index: th.Tensor) -> th.Tensor:
        chosen = []
        for size in reversed(self.heads.choices):  # the last counts fastest
            chosen.append(index % size)
            index = th.div(index, size, rounding_mode="floor")
        return self._with_bins(chosen[::-1])

    def _with_bins(
        self, chosen: list[th.Tensor], observation: th.Tensor | None = None
    ) -> th.Tensor:
        if not self._has_mouse:
            return th.stack([index.to(self.bins.dtype) for index in chosen], dim=1)
        return self._with_mouse(chosen[:-1], self.bins[chosen[-1]], observation)

    def _with_mouse(
        self, chosen: list[th.Tensor], mouse: th.Tensor, observation: th.Tensor | None
    ) -> th.Tensor:
        """The world's action: the target, where one is chosen, is worked into the mouse."""
        if self.aimed is not None:
            assert observation is not None
            *chosen, target = chosen
            mouse = self.aimed(target, mouse, observation)
        return th.stack([*(index.to(mouse.dtype) for index in chosen), mouse], dim=1)


def drawn(logits: th.Tensor, uniform: th.Tensor) -> th.Tensor:
    """Choices [N] from `logits` [N, K] by the inverse of their distribution at `uniform` [N].

    The first choice whose cumulated probability exceeds it, never one of probability 0.
    """
    cumulated = logits.softmax(dim=1).cumsum(dim=1)
    total = cumulated[:, -1:]  # 1 but for rounding
    passed = (cumulated <= uniform.unsqueeze(1) * total) & (cumulated < total)
    return passed.sum(dim=1)


def normal_quantile(uniform: th.Tensor) -> th.Tensor:
    """The value below which a standard normal number lies with probability `uniform`.

    Within 1e-5 of itself; cut at five deviations. Source: Giles 2012, "Approximating the erfinv
    function" (single precision), since ONNX has no such operator.
    """
    u = uniform.clamp(OUTERMOST, 1.0 - OUTERMOST)
    w = -th.log(4.0 * u * (1.0 - u))
    inner, outer = w - 2.5, w.sqrt() - 3.0
    series = th.where(w < 5.0, _polynomial(inner, NEAR), _polynomial(outer, FAR))
    return math.sqrt(2.0) * (2.0 * u - 1.0) * series


def _polynomial(x: th.Tensor, coefficients: tuple[float, ...]) -> th.Tensor:
    """By Horner's rule, the highest power first."""
    first, *others = coefficients
    value = th.full_like(x, first)
    for coefficient in others:
        value = value * x + coefficient
    return value


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


SCORES: Mapping[type[BasePolicy], Scores] = MappingProxyType(
    {
        ActorCriticPolicy: actor_scores,
        MaskableActorCriticPolicy: actor_scores,
        DQNPolicy: _q_values,
        QRDQNPolicy: _mean_quantiles,
    }
)
"""How policies score actions."""


def _scores_of(policy: BasePolicy, algo: str) -> Scores:
    found = next((one for kind, one in SCORES.items() if isinstance(policy, kind)), None)
    if found is None:
        raise ConfigurationError(
            f"{algo}: no ONNX file can hold its kind of policy; export it to a folder, as "
            "safetensors"
        )
    return found
