"""An agent as one network, from raw observations to the environment's actions."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import torch as th
from sb3_contrib.ars.policies import ARSPolicy
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.crossq.policies import CrossQPolicy
from sb3_contrib.qrdqn.policies import QRDQNPolicy
from sb3_contrib.tqc.policies import TQCPolicy
from stable_baselines3.common.distributions import BernoulliDistribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import nn

from aimbot_lab.evaluation.temperature import LIKELIEST, Temperature
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import EnvironmentActions, Float32Array, WorldSpec
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.networks.hybrid_policy import FORBIDDEN
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy
from aimbot_lab.training.networks.settings import target_blocks

LARGEST = float(np.finfo(np.float32).max)
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
LOG_STD = (-20.0, 2.0)  # between which stable-baselines3 keeps an actor's
MEMORY = ("memory_h", "memory_c")  # inputs: hidden and cell of the step before
Scores = Callable[[Any, Any], th.Tensor]


class DeployedPolicy(nn.Module):
    """Actions [N, A] at `temperature` and the scores [N, L] that they come from.

    Actions are in the units of the environment, where the world's own are others.

    Takes raw observations [N, D] and, where the agent learned with masks, those of the choices of
    the world's branches [N, C]; `masked` says so. Where the temperature is not 0 it takes noise
    [N, `columns`], a number of an even distribution from 0 to 1 for each column of the action (and,
    before the mouse's, one for the target), and is a function: the same observation and noise give
    the same action. Scores are logits as trained; the last columns are the means of continuous
    ones (and the logarithms of their deviations, where an observation decides them), for algorithms
    that value actions they are these values. An agent that remembers takes
    hidden and cell [N, `memory.size`], zeros where an episode begins, and gives those after.
    """

    bins: th.Tensor  # [C, K] of each continuous column of the world
    deviation: th.Tensor  # [C] of continuous columns at the temperature; [0] where they have bins
    limits: th.Tensor  # [2, C] where continuous columns are cut
    starts: th.Tensor  # [branches] the environment's number of each first choice
    units: th.Tensor  # [2, C] low and high in the environment's units; [2, 0] where they are ours
    shared: th.Tensor  # [C] which columns go from -1 to 1 between them
    whole: th.Tensor  # [C] which are whole numbers
    combinations: th.Tensor  # [K, branches] of algorithms that value all of them; [0] of others

    def __init__(self, saved: SavedAgent, temperature: Temperature | None = None) -> None:
        super().__init__()
        agent, train = saved.agent, saved.train
        policy: Any = agent.policy
        self.policy, self.spec = policy, agent.spec
        self.temperature = agent.temperature(temperature)
        self.noisy = self.temperature != LIKELIEST
        algorithm = algorithm_of(train)
        self.masked, self._masks_seen = agent.masked, algorithm.adapter(train).masks_shown
        self._scores = _scores_of(policy, train.algo)
        self._yes_or_no = isinstance(getattr(policy, "action_dist", None), BernoulliDistribution)
        self._pictures, self._seen = agent.spec.pictures, agent.seen
        self.memory = deployed_memory(policy)
        self.aimed = AimedMouse(agent.spec) if train.target != "none" else None
        target = () if self.aimed is None else (1 + self.aimed.slots,)
        count = self._numbers = agent.spec.continuous
        hybrid = count > 0 and not algorithm.chooses_bins(train, agent.spec)
        bins = () if hybrid else (len(train.aim_bins),) * count
        space: Any = agent.space
        ends = (space.low, space.high) if hybrid else agent.spec.action_bounds
        low, high = (tuple(end.ravel()[-count:].tolist() if count else ()) for end in ends)
        self.choices = (*agent.spec.branches, *target, *bins)  # sizes, in the order of scores
        self.ends = (low, high) if hybrid else None  # which numbers without bins are cut at
        self.flat = algorithm.ranks_actions  # scores are of all combinations of choices
        self._branches = sum(agent.spec.branches)
        self.squashed = isinstance(policy, SQUASHED)
        self._shares = hybrid and bool(policy.squash_output)
        log_std = th.zeros(count if self.squashed else 0)  # of which an observation decides
        if hybrid and not self.squashed and agent.samples:
            log_std = policy.log_std.detach()
        taken = agent.spec.environment_actions
        starts = (0,) * len(agent.spec.branches) if taken is None else taken.starts
        units = np.zeros((2, 0), np.float32) if taken is None else _inner_bounds(taken)
        nothing = np.zeros(count, np.bool_)
        shares = taken is not None and algorithm.adapter(train).actions == "hybrid"
        for name, values in (
            ("bins", th.from_numpy(agent.bins)),
            ("deviation", th.exp(log_std) * float(self.temperature)),
            ("limits", th.tensor([low, high])),
            ("starts", th.tensor(starts, dtype=th.float32)),
            ("units", th.from_numpy(units)),
            ("shared", th.from_numpy(taken.bounded if taken and shares else nothing)),
            ("whole", th.from_numpy(nothing if taken is None else taken.whole)),
            ("combinations", _combinations(self.choices if self.flat else ())),
        ):
            self.register_buffer(name, values)

    @property
    def columns(self) -> int:
        """Numbers of noise that a decision takes."""
        return len(self.choices) + len(self.deviation)

    def nothing(self, rows: int) -> dict[str, Float32Array]:
        """The memory of `rows` episodes that begin, by name; empty without a memory."""
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
        observation: th.Tensor | None = None,
        action_masks: th.Tensor | None = None,
        noise: th.Tensor | None = None,
        memory_h: th.Tensor | None = None,
        memory_c: th.Tensor | None = None,
        pictures: tuple[th.Tensor, ...] = (),
    ) -> tuple[th.Tensor, ...]:
        """(actions, scores) for raw observations, then the memory after them where there is one.

        `observation` are its columns, which there may be none of beside `pictures` [N, H, W, C].
        """
        if observation is None:
            observation = pictures[0].new_zeros((pictures[0].shape[0], 0), dtype=th.float32)
        memory = None if memory_h is None or memory_c is None else (memory_h, memory_c)
        scores, after = self.scored(observation, action_masks, memory, pictures)
        return self._actions(scores, noise, observation), scores, *after

    def scored(
        self,
        observation: th.Tensor,
        action_masks: th.Tensor | None,
        memory: "State | None",
        pictures: tuple[th.Tensor, ...],
    ) -> tuple[th.Tensor, tuple[th.Tensor, ...]]:
        """(scores [N, L], memory after) of what `forward` takes."""
        columns, after = observation, cast(tuple[th.Tensor, ...], ())
        if self._masks_seen and action_masks is not None:
            columns = th.cat([observation, action_masks.to(observation.dtype)], dim=1)
        seen = self._shown(columns, pictures)
        if self.memory is None:
            scores = self._scores(self.policy, seen)
        else:
            assert memory is not None
            scores, after = remembered_scores(self.policy, self.memory, seen, memory)
        if self._yes_or_no:  # a logit for each choice that is 0 or 1
            scores = th.stack([th.zeros_like(scores), scores], dim=2).flatten(1)
        if action_masks is not None and not self._masks_seen:
            allowed, free = scores[:, : self._branches], scores[:, self._branches :]
            forbidden = th.full_like(allowed, FORBIDDEN)
            scores = th.cat([th.where(action_masks, allowed, forbidden), free], dim=1)
        return scores, after

    def _shown(self, columns: th.Tensor, pictures: tuple[th.Tensor, ...]) -> Any:
        """What the policy sees, as `ObservationCodec.shown` gives it in NumPy."""
        if not self._seen.names:
            return columns
        names = (block.name for block in self._pictures)
        first = {name: one.permute(0, 3, 1, 2) for name, one in zip(names, pictures, strict=True)}
        codec = self._seen
        parts = {
            name: columns[:, codec.columns[name]] if name in codec.columns else first[name]
            for name in codec.names
        }
        return parts[codec.names[0]] if codec.alone else parts

    def _actions(
        self, scores: th.Tensor, noise: th.Tensor | None, observation: th.Tensor
    ) -> th.Tensor:
        if noise is None:
            return self.acted(scores, observation, self.likeliest(scores))
        cooled = [part / float(self.temperature) for part in self.by_branch(scores)]
        chosen = [drawn(part, noise[:, column]) for column, part in enumerate(cooled)]
        normal = None if self.ends is None else noise[:, -self._numbers :]
        quantiles = None if normal is None else normal_quantile(normal)
        return self.acted(scores, observation, chosen, quantiles)

    def by_branch(self, scores: th.Tensor) -> list[th.Tensor]:
        """The scores [N, size] of each branch's choices, in `scores` [N, L]."""
        ends = np.cumsum([0, *self.choices]).tolist()
        return [scores[:, first:end] for first, end in pairwise(ends)]

    def likeliest(self, scores: th.Tensor) -> list[th.Tensor]:
        """The index [N] of each branch whose score, or that of its combination, is the highest."""
        if self.flat:
            return list(self.combinations[scores.argmax(dim=1)].unbind(1))
        return [part.argmax(dim=1) for part in self.by_branch(scores)]

    def acted(
        self,
        scores: th.Tensor,
        observation: th.Tensor,
        chosen: list[th.Tensor],
        normal: th.Tensor | None = None,
    ) -> th.Tensor:
        """The actions [N, A] with an index `chosen` [N] of each branch, and with `numbers`."""
        if self.ends is None:
            return self._with_bins(chosen, observation)
        return self._with_numbers(chosen, self.numbers(scores, normal), observation)

    def numbers(self, scores: th.Tensor, normal: th.Tensor | None) -> th.Tensor:
        """Continuous columns [N, C] for `scores` [N, L], where they have no bins.

        `normal` [N, C] are numbers of a standard normal distribution; without them they are the
        likeliest.
        """
        first, count = sum(self.choices), self._numbers
        numbers = scores[:, first : first + count]
        if normal is not None:
            own = th.exp(scores[:, first + count :]) * float(self.temperature)
            numbers = numbers + (own if self.squashed else self.deviation) * normal
        if self._shares:
            low, high = self.limits
            share = th.tanh(numbers) if self.squashed else numbers
            numbers = low + 0.5 * (share + 1.0) * (high - low)
        return th.clamp(numbers, *self.limits)

    def _with_bins(self, chosen: list[th.Tensor], observation: th.Tensor) -> th.Tensor:
        count = len(chosen) - self._numbers
        picked = [self.bins[k][index] for k, index in enumerate(chosen[count:])]
        numbers = th.stack(picked, dim=1) if picked else None
        return self._with_numbers(chosen[:count], numbers, observation)

    def _with_numbers(
        self,
        chosen: list[th.Tensor],
        numbers: th.Tensor | None,
        observation: th.Tensor,
    ) -> th.Tensor:
        """The action: the target, where one is chosen, is worked into the mouse."""
        if self.aimed is not None:
            assert numbers is not None
            *chosen, target = chosen
            numbers = self.aimed(target, numbers[:, 0], observation).unsqueeze(1)
        parts = [] if numbers is None else [self._in_units(numbers)]
        if chosen:
            parts.insert(0, th.stack(chosen, dim=1) + self.starts)
        return th.cat(parts, dim=1)

    def _in_units(self, numbers: th.Tensor) -> th.Tensor:
        """Continuous columns [N, C] as the environment takes them."""
        if not self.units.shape[1]:
            return numbers
        low, high = self.units
        share = (numbers.clamp(-1.0, 1.0) + 1.0) / 2.0
        scaled = th.where(self.shared, low * (1.0 - share) + high * share, numbers)
        cut = th.clamp(scaled, low, high)
        return th.where(self.whole, cut.round(), cut)


def _inner_bounds(taken: EnvironmentActions) -> Float32Array:
    """Bounds [2, C] in single precision that lie within those of `taken`."""
    exact = np.array([taken.low, taken.high], np.float64).clip(-LARGEST, LARGEST)
    inner = exact.astype(np.float32)
    outside = np.stack([inner[0] < exact[0], inner[1] > exact[1]])
    towards = np.array([[np.inf], [-np.inf]], np.float32)
    return np.where(outside, np.nextafter(inner, towards), inner).astype(np.float32)


def _combinations(sizes: tuple[int, ...]) -> th.Tensor:
    """[K, branches] of all choices from branches of these sizes; the last counts fastest."""
    return th.from_numpy(np.array([*np.ndindex(*sizes)], np.int64))


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


def actor_scores(policy: Any, seen: Any) -> th.Tensor:
    """What the actor's last layer gives."""
    features = policy.pi_features_extractor(seen)
    scores: th.Tensor = policy.action_net(policy.mlp_extractor.forward_actor(features))
    return scores


def _q_values(policy: Any, seen: Any) -> th.Tensor:
    values: th.Tensor = policy.q_net.q_net(policy.q_net.features_extractor(seen))
    return values


def _mean_quantiles(policy: Any, seen: Any) -> th.Tensor:
    net = policy.quantile_net
    quantiles = net.quantile_net(net.features_extractor(seen))
    values: th.Tensor = quantiles.view(-1, net.n_quantiles, int(net.action_space.n)).mean(dim=1)
    return values


def _squashed_numbers(policy: Any, seen: Any) -> th.Tensor:
    actor = policy.actor
    latent = actor.latent_pi(actor.features_extractor(seen))
    return th.cat([actor.mu(latent), actor.log_std(latent).clamp(*LOG_STD)], dim=1)


def _searched(policy: Any, seen: Any) -> th.Tensor:
    scores: th.Tensor = policy.action_net(policy.features_extractor(seen))
    return scores


def _bounded_numbers(policy: Any, seen: Any) -> th.Tensor:
    numbers: th.Tensor = policy.actor.mu(policy.actor.features_extractor(seen))
    return numbers


SQUASHED = (SACPolicy, TQCPolicy, CrossQPolicy)
SCORES: Mapping[type[BasePolicy], Scores] = MappingProxyType(
    {
        **dict.fromkeys(SQUASHED, _squashed_numbers),
        TD3Policy: _bounded_numbers,
        ARSPolicy: _searched,
        ActorCriticPolicy: actor_scores,
        MaskableActorCriticPolicy: actor_scores,
        DQNPolicy: _q_values,
        QRDQNPolicy: _mean_quantiles,
    }
)
"""How policies score actions."""


def _scores_of(policy: BasePolicy, algo: str) -> Scores:
    if getattr(getattr(policy, "actor", None) or policy, "use_sde", False):
        raise ConfigurationError(
            "train.options.use_sde: no ONNX file can hold its noise; export it to a folder, as "
            "safetensors"
        )
    found = next((one for kind, one in SCORES.items() if isinstance(policy, kind)), None)
    if found is None:
        raise ConfigurationError(
            f"{algo}: no ONNX file can hold its kind of policy; export it to a folder, as "
            "safetensors"
        )
    return found


State = tuple[th.Tensor, th.Tensor]  # hidden and cell, [N, layers H] each


class AimedMouse(nn.Module):
    """The mouse that turns by an offset from the unit that was chosen, as `TargetCodec` does it."""

    seen: th.Tensor  # [U] columns of an observation
    ahead: th.Tensor  # [U]
    right: th.Tensor  # [U]

    def __init__(self, spec: WorldSpec) -> None:
        super().__init__()
        blocks = target_blocks(spec)
        assert spec.turn_per_unit is not None
        self.slots, self._turn = sum(block.slots for block in blocks), float(spec.turn_per_unit)
        places = [(block.seen or "", *(block.place or ("", ""))) for block in blocks]
        for number, name in enumerate(("seen", "ahead", "right")):
            parts = [b.column_of(p[number]) for b, p in zip(blocks, places, strict=True)]
            self.register_buffer(name, th.as_tensor(np.concatenate(parts)), persistent=False)
        (low,), (high,) = spec.action_bounds
        self._low, self._high = float(low), float(high)

    def forward(self, target: th.Tensor, mouse: th.Tensor, observation: th.Tensor) -> th.Tensor:
        """[N] for choices [N] (0: no target), the mouse [N] and raw observations [N, D]."""
        slot = (target - (target > 0).long()).unsqueeze(1)
        seen, ahead, right = (
            observation[:, columns].gather(1, slot).squeeze(1)
            for columns in (self.seen, self.ahead, self.right)
        )
        chosen = (target > 0) & (seen > 0.5)
        bearing = th.atan2(right, th.where(chosen, ahead, th.ones_like(ahead)))
        used = (bearing / self._turn + mouse).clamp(self._low, self._high)
        return th.where(chosen, used, mouse)


class LstmLayer(NamedTuple):
    """The weights of one layer of long short-term memory, gates i f g o."""

    of_input: th.Tensor  # [4 H, I]
    of_hidden: th.Tensor  # [4 H, H]
    bias: th.Tensor  # [4 H]

    def step(self, given: th.Tensor, hidden: th.Tensor, cell: th.Tensor) -> State:
        """(hidden, cell) [N, H] after `given` [N, I], in products and gates alone."""
        gates = given @ self.of_input.T + hidden @ self.of_hidden.T + self.bias
        i, f, g, o = gates.chunk(4, dim=1)
        after = th.sigmoid(f) * cell + th.sigmoid(i) * th.tanh(g)
        return th.sigmoid(o) * th.tanh(after), after


class DeployedMemory(nn.Module):
    """What an actor remembers, one step at a time: layers on top of each other."""

    def __init__(self, cells: Sequence[LstmLayer]) -> None:
        super().__init__()
        self._count = len(cells)
        self.inputs, self.hidden_size = cells[0].of_input.shape[1], cells[0].of_hidden.shape[1]
        for name, weight in chain.from_iterable(
            (zip(_names(number), cell, strict=True) for number, cell in enumerate(cells))
        ):
            self.register_buffer(name, weight, persistent=False)

    @property
    def size(self) -> int:
        """Numbers of each of hidden and cell."""
        return self._count * self.hidden_size

    def forward(self, given: th.Tensor, state: State) -> tuple[th.Tensor, State]:
        """(output [N, H], state after) of `given` [N, I]."""
        befores = [th.split(part, self.hidden_size, dim=1) for part in state]
        afters: list[State] = []
        for number, before in enumerate(zip(*befores, strict=True)):
            cell = LstmLayer(*(getattr(self, name) for name in _names(number)))
            afters.append(cell.step(given, *before))
            given = afters[-1][0]
        hidden, kept = zip(*afters, strict=True)
        return given, (th.cat(hidden, dim=1), th.cat(kept, dim=1))


def _names(layer: int) -> tuple[str, str, str]:
    return f"of_input_{layer}", f"of_hidden_{layer}", f"bias_{layer}"


def deployed_memory(policy: Any) -> DeployedMemory | None:
    """The memory of the actor of `policy`; None: it has none."""
    if isinstance(policy, RememberingPolicy) and policy.memory_shape is not None:
        layer = policy.memory.cell
        weights: list[tuple[th.Tensor, ...]] = [
            (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
        ]
    elif isinstance(policy, RecurrentActorCriticPolicy):
        lstm: Any = policy.lstm_actor
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        layers = range(lstm.num_layers)
        weights = [tuple(getattr(lstm, f"{name}_l{k}") for name in names) for k in layers]
    else:
        return None
    detached = ([weight.detach() for weight in each] for each in weights)
    return DeployedMemory([LstmLayer(w_in, w_on, b_i + b_o) for w_in, w_on, b_i, b_o in detached])


def remembered_scores(
    policy: Any, memory: DeployedMemory, seen: Any, state: State
) -> tuple[th.Tensor, State]:
    """(what the actor's last layer gives, state after) for what the policy is shown [N, D]."""
    features = policy.pi_features_extractor(seen)
    core = memory.inputs
    output, after = memory(features[:, :core], state)
    latent = policy.mlp_extractor.forward_actor(th.cat([output, features[:, core:]], dim=1))
    return policy.action_net(latent), after
