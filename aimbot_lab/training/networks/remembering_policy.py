"""The policy of hybrid_ppo with a memory."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.torch_layers import MlpExtractor
from torch import nn
from torch.nn import functional

from aimbot_lab.training.networks.encoders import columns_shown
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy, MaskPassingMlp


class MemoryShape(NamedTuple):
    """How large a policy's memory is, and how it is learned."""

    size: int  # H
    length: int  # L, steps of a chunk through which gradients flow
    burn_in: int = 0  # steps before a chunk that are run first, without gradient
    own_critic: bool = False  # whether the critic has a memory of its own

    @property
    def parts(self) -> int:
        """S, arrays [H] of a state: hidden and cell, of the actor and, where it has one, critic."""
        return 4 if self.own_critic else 2


class Lstm(nn.Module):
    """PyTorch's LSTM cell, gates i f g o; the forget gates' bias is 1 at first.

    Hochreiter & Schmidhuber 1997; the bias is that of Jozefowicz et al. 2015, as in ML-Agents.
    """

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs, size)
        with th.no_grad():
            self.cell.bias_ih[size : 2 * size] = 1.0
            self.cell.bias_hh[size : 2 * size] = 0.0

    def forward(
        self, inputs: th.Tensor, state: th.Tensor, starts: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor]:
        """(outputs [L, N, H], state after them [N, 2, H]) of `inputs` [L, N, I].

        `state` [N, 2, H] are hidden and cell before; where `starts` [L, N] is 1 an episode begins
        and both are 0 before that step.
        """
        cell = self.cell
        gates = functional.linear(inputs, cell.weight_ih, cell.bias_ih + cell.bias_hh)
        hidden, memory = state.unbind(dim=1)
        kept, outputs = (1.0 - starts).unsqueeze(2), []
        for step, given in enumerate(gates):
            recurrent = functional.linear(hidden * kept[step], cell.weight_hh)
            i, f, g, o = (given + recurrent).chunk(4, dim=1)
            new = th.sigmoid(i) * th.tanh(g)
            memory = th.sigmoid(f) * (memory * kept[step]) + new
            hidden = th.sigmoid(o) * th.tanh(memory)
            outputs.append(hidden)
        return th.stack(outputs), th.stack([hidden, memory], dim=1)


WarmUp = tuple[th.Tensor, th.Tensor, th.Tensor]
"""L steps before chunks, which are run without gradient.

Their rows [R] of a minibatch, observations [R * L, D] and starts [L, R].
"""


class Chunks(NamedTuple):
    """What the memory needs of a minibatch of N chunks of L steps, beside its samples."""

    state: th.Tensor  # [N, S, H] where the warm-up begins, or the chunk
    starts: th.Tensor  # [L, N] 1 where an episode begins
    warm_up: tuple[WarmUp, ...] = ()


class RolloutMemory:
    """The state [B, S, H] of every row, and copies of it from where each chunk began."""

    def __init__(self, parts: int, size: int, *, length: int) -> None:
        self._form, self._length = (parts, size), length
        self.state: th.Tensor | None = None
        self.kept: list[th.Tensor] = []  # [B, S, H] as it was at each chunk's first step
        self.cut_off: deque[int] = deque()  # rows whose last observation is valued next
        self._steps = 0
        self._starts: Callable[[], np.ndarray] | None = None

    def begin(self, starts: Callable[[], np.ndarray]) -> None:
        """Begin a rollout; `starts` gives where an episode begins now [B]."""
        self.kept, self._steps, self._starts = [], 0, starts
        self.cut_off.clear()

    def starts(self, rows: int, device: th.device) -> th.Tensor:
        """[1, B] 1 where an episode begins with the present observations; everywhere at first."""
        if self._starts is None:
            return th.ones(1, rows, device=device)
        return th.as_tensor(self._starts(), dtype=th.float32, device=device).reshape(1, rows)

    def before(self, rows: int, device: th.device) -> th.Tensor:
        """The state [B, S, H] before a step, kept where a chunk begins with it."""
        if self.state is None or len(self.state) != rows:
            self.state = self.empty(rows, device)
        if self._steps % self._length == 0:
            self.kept.append(self.state)
        self._steps += 1
        return self.state

    def empty(self, rows: int, device: th.device) -> th.Tensor:
        """The state of `rows` rows that remember nothing."""
        return th.zeros(rows, *self._form, device=device)


DRIFT_ROWS = 64  # whose states are recomputed after an update
Latents = tuple[th.Tensor, th.Tensor]  # of actor and critic, [N, H and what is passed]


class RememberingPolicy(HybridPolicy):
    """`HybridPolicy`, and that exactly without `memory`.

    Actor and critic share the memory, or have one each. While a rollout is collected the state of
    every row lives in `rollout`; players hand theirs to `predict`.
    """

    rollout: RolloutMemory

    def __init__(self, *args: Any, memory: MemoryShape | None = None, **arguments: Any) -> None:
        self.memory_shape = memory
        super().__init__(*args, **arguments)
        if memory is not None:
            self.rollout = RolloutMemory(memory.parts, memory.size, length=memory.length)

    def _build_mlp_extractor(self) -> None:
        shape = self.memory_shape
        if shape is None:
            super()._build_mlp_extractor()
            return
        core = self.features_dim - self.passed
        self.memory = Lstm(core, shape.size)
        self.critic_memory = Lstm(core, shape.size) if shape.own_critic else None
        kind = MaskPassingMlp if self.passed else MlpExtractor
        made = kind(
            shape.size,
            net_arch=self.net_arch,
            activation_fn=self.activation_fn,
            device=self.device,
        )
        self.mlp_extractor = made
        if isinstance(made, MaskPassingMlp):
            made.passing(self.passed)

    def forward(
        self, obs: Any, deterministic: bool = False
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """(actions, values [N, 1], log-probabilities) for observations [N, D] of a rollout."""
        if self.memory_shape is None or (self.act is not None and not deterministic):
            return super().forward(obs, deterministic)
        rows, device = len(columns_shown(obs)), self.device
        state = self.rollout.before(rows, device)
        starts = self.rollout.starts(rows, device)
        (actor, critic), self.rollout.state = self._remembered(obs, state, starts)
        distribution = self._get_action_dist_from_latent(actor)
        actions = distribution.get_actions(deterministic=deterministic)
        log_prob = distribution.log_prob(actions)
        shape = self.action_space.shape
        assert shape is not None
        return actions.reshape(-1, *shape), self.value_net(critic), log_prob

    def evaluate_chunks(
        self, obs: Any, actions: th.Tensor, chunks: Chunks
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """(values [N L, 1], log-probabilities, entropy) of N chunks of L steps, chunk by chunk."""
        state = chunks.state
        with th.no_grad():
            for rows, seen, starts in chunks.warm_up:
                _, run = self._remembered(seen, state[rows], starts)
                state = state.index_copy(0, rows, run)
        (actor, critic), _ = self._remembered(obs, state, chunks.starts)
        distribution = self._get_action_dist_from_latent(actor)
        return self.value_net(critic), distribution.log_prob(actions), distribution.entropy()

    def predict_values(self, obs: Any) -> th.Tensor:
        """Values [N, 1] of observations that follow a rollout's steps; nothing is remembered."""
        if self.memory_shape is None or (self.values is not None and len(obs) == self.valued_rows):
            return super().predict_values(obs)
        rollout, rows = self.rollout, len(columns_shown(obs))
        starts = th.zeros(1, rows, device=self.device)
        if rollout.cut_off:
            assert rollout.state is not None
            state = rollout.state[[rollout.cut_off.popleft()]]
        elif rollout.state is not None and len(rollout.state) == rows:
            state, starts = rollout.state, rollout.starts(rows, self.device)
        else:
            state = rollout.empty(rows, self.device)
        (_, critic), _ = self._remembered(obs, state, starts)
        values: th.Tensor = self.value_net(critic)
        return values

    def get_distribution(self, obs: Any) -> Distribution:
        """The distribution of actions for observations [N, D], each the first of its episode."""
        if self.memory_shape is None:
            return super().get_distribution(obs)
        return self.distribution_after(obs, *self._nothing(len(columns_shown(obs))))[0]

    def distribution_after(
        self, obs: Any, state: th.Tensor, starts: th.Tensor
    ) -> tuple[Distribution, th.Tensor]:
        """(distribution, memory [N, S, H]) for `obs` [N, D] and the memory before them."""
        (actor, _), after = self._remembered(obs, state, starts)
        return self._get_action_dist_from_latent(actor), after

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """(actions, memory [N, S, H]) from the memory of the step before."""
        if self.memory_shape is None:
            return super().predict(observation, state, episode_start, deterministic)
        self.set_training_mode(False)
        obs, batched = self.obs_to_tensor(observation)
        rows = len(columns_shown(obs))
        before, starts = self._nothing(rows)
        if state is not None:
            before = th.as_tensor(state, dtype=th.float32, device=self.device)
            began = np.zeros(rows) if episode_start is None else episode_start
            starts = th.as_tensor(began, dtype=th.float32, device=self.device).reshape(1, -1)
        with th.no_grad():
            (actor, _), after = self._remembered(obs, before, starts)
            chosen = self._get_action_dist_from_latent(actor)
            actions = chosen.get_actions(deterministic=deterministic).cpu().numpy()
        space = self.action_space
        actions = actions.reshape(-1, *(space.shape or ()))
        if isinstance(space, spaces.Box):
            actions = np.clip(actions, space.low, space.high)
        return actions if batched else actions[0], after.cpu().numpy()

    def _nothing(self, rows: int) -> tuple[th.Tensor, th.Tensor]:
        return self.rollout.empty(rows, self.device), th.ones(1, rows, device=self.device)

    def _remembered(
        self, obs: Any, state: th.Tensor, starts: th.Tensor
    ) -> tuple[Latents, th.Tensor]:
        """(latents [N L, ...], state after [N, S, H]) of `obs` [N L, D], sequence by sequence."""
        features = self.extract_features(obs)
        assert isinstance(features, th.Tensor)
        core = features.shape[1] - self.passed
        passed = features[:, core:]
        steps = len(starts)
        inputs = features[:, :core].reshape(-1, steps, core).transpose(0, 1)
        actor, after = self.memory(inputs, state[:, :2], starts)
        critic, states = actor, [after]
        if self.critic_memory is not None:
            critic, of_critic = self.critic_memory(inputs, state[:, 2:], starts)
            states.append(of_critic)
        outputs = [
            th.cat([one.transpose(0, 1).flatten(0, 1), passed], dim=1) for one in (actor, critic)
        ]
        net = self.mlp_extractor
        latents = net.forward_actor(outputs[0]), net.forward_critic(outputs[1])
        return latents, th.cat(states, dim=1)

    def state_drift(self, buffer: Any, block: range, *, most: int = DRIFT_ROWS) -> float:
        """Mean |kept - recomputed| of the states where chunks begin; `buffer` is in its rollout.

        Recomputed with the present weights from the state that the rollout began with, of at most
        `most` rows of `block`, spread evenly.
        """
        shape, rollout = self.memory_shape, self.rollout
        assert shape is not None
        rows = slice(block.start, block.stop, -(-len(block) // most))
        state, apart = rollout.kept[0][rows], [th.zeros(1)]
        with th.no_grad():
            for number, kept in enumerate(rollout.kept[1:]):
                chunk = slice(number * shape.length, (number + 1) * shape.length)
                seen, starts = buffer.chunk_of(chunk, rows)
                _, state = self._remembered(seen, state, starts)
                apart.append((state - kept[rows]).abs().mean().reshape(1))
        return float(th.cat(apart[1:] or apart).mean())
