"""Our own PPO, and the engines that can compute it."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol
from warnings import catch_warnings, simplefilter

import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from aimbot_lab.training.algorithms.ppo_update import (
    ChunkRolloutBuffer,
    Engine,
    HybridRolloutBuffer,
    KeptRollouts,
    TorchEngine,
    UnsuitedError,
)
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.networks.remembering_policy import (
    DRIFT_ROWS,
    RememberingPolicy,
    RolloutMemory,
)
from aimbot_lab.training.processes.cores import one_torch_thread
from aimbot_lab.training.processes.exchange import (
    Alone,
    Exchange,
    Shards,
    asked_count,
    of_all_shards,
    one_shard,
)

AUTO = "auto"


class EngineType(NamedTuple):
    """An engine by the name that `train.engine` gives it."""

    name: str
    make: Callable[[ActorCriticPolicy], Engine]  # raises UnsuitedError
    any_threads: bool  # whether the number of threads makes no difference to what is learned
    draws_from_kept: bool = False  # whether it learns from rollouts of older policies, too


ENGINES = (
    EngineType("fused", FusedEngine, any_threads=True),
    EngineType("torch", TorchEngine, any_threads=False, draws_from_kept=True),
)
"""The faster ones first; the last one suits every policy."""


def engine_types(asked: str) -> tuple[EngineType, ...]:
    """The engines to try, in this order, where `asked` is one's name or `auto`."""
    return tuple(one for one in ENGINES if asked in (AUTO, one.name))


def suited_engine(
    policy: ActorCriticPolicy, types: Sequence[EngineType], *, keeps_rollouts: bool = False
) -> tuple[Engine, tuple[tuple[str, str], ...]]:
    """The first of `types` that suits `policy`, and those before it: (name, why it does not).

    Raises ValueError where none does.
    """
    passed_over: list[tuple[str, str]] = []
    for one in types:
        if keeps_rollouts and not one.draws_from_kept:
            passed_over.append((one.name, "it does not know train.samples.keep"))
            continue
        try:
            return one.make(policy), tuple(passed_over)
        except UnsuitedError as error:
            passed_over.append((one.name, str(error)))
    raise ValueError("; ".join(f"engine {name}: {why}" for name, why in passed_over))


Objective = Literal["joint", "per_branch"]
EngineName = Literal["torch", "fused", "auto"]


class RolloutSource(Protocol):
    """Plays rollouts elsewhere."""

    def collect(self, model: "HybridPPO", callback: BaseCallback, *, steps: int) -> bool:
        """Fill `model.rollout_buffer` with `steps` of all rows; False where `callback` ended it.

        It is called as stable-baselines3's own loop calls it.
        """


class HybridPPO(PPO):
    """PPO of stable-baselines3, to the bit where no switch is on.

    `objective` per_branch: each branch of an action has its own probability ratio and clipped
    objective, and these are summed. `dual_clip` c: where the advantage A is negative the
    objective is no less than c A. Hybrid actions and masks are its policy's matter.
    `engine` fused: the same losses and steps, several times faster, equal within rounding;
    raises ValueError where the policy is not of the kind it knows. auto: fused where it can be.
    `shards`: into how many blocks of neighbouring rows the fused engine cuts what it learns from,
    by default as many as suit; what is learned depends on it. `own_shards`: those whose rows the
    environment has, where other processes have more; `exchange` is theirs, and given afterwards.
    `keep_rollouts` K: an epoch passes over the last K rollouts, older ones with the
    log-probabilities, values and advantages that they were made with.
    """

    engine: Engine
    rollouts: KeptRollouts | None
    """Those that updates draw from beside the last."""
    passed_over: tuple[tuple[str, str], ...]
    """Faster engines that `auto` did not take, each with the reason."""
    stream_seed: int
    """From which the fused engine draws."""
    shards: Shards
    exchange: Exchange
    """With the processes that learn from other shards."""
    all_rows: int
    """Rows of all of them, which a step counts."""
    source: RolloutSource | None = None
    """Collects in place of the environment; None: the environment does."""

    def __init__(
        self,
        *args: Any,
        objective: Objective = "joint",
        dual_clip: float | None = None,
        engine: EngineName = "torch",
        keep_rollouts: int = 1,
        shards: int | Literal["auto"] = "auto",
        own_shards: Shards | None = None,
        **arguments: Any,
    ) -> None:
        if dual_clip is not None and dual_clip <= 1.0:
            raise ValueError(f"dual_clip must be greater than 1 (got {dual_clip:g})")
        self.objective, self.dual_clip, self.asked_engine = objective, dual_clip, engine
        self.asked_shards, self.own_shards = shards, own_shards
        self.rollouts = KeptRollouts(keep_rollouts) if keep_rollouts > 1 else None
        with catch_warnings():
            if own_shards is not None:  # a minibatch is made of the rows of all processes
                simplefilter("ignore", UserWarning)
            super().__init__(*args, **arguments)

    def _setup_model(self) -> None:
        if self.rollout_buffer_class is None:
            self.rollout_buffer_class = HybridRolloutBuffer
        if self.objective == "per_branch":
            self.policy_kwargs["per_branch"] = True
            self.rollout_buffer_class = HybridRolloutBuffer
            self.rollout_buffer_kwargs["branches"] = self._branches()
        if (memory := self.policy_kwargs.get("memory")) is not None:
            self.rollout_buffer_class = ChunkRolloutBuffer
            self.rollout_buffer_kwargs["shape"] = memory
        types = engine_types(self.asked_engine)
        # The first weights depend on torch's number of threads; what is learned here may not.
        with one_torch_thread() if any(one.any_threads for one in types) else nullcontext():
            super()._setup_model()
        keeps = self.rollouts is not None
        self.engine, self.passed_over = suited_engine(self.policy, types, keeps_rollouts=keeps)
        if isinstance(self.rollout_buffer, ChunkRolloutBuffer):
            self.rollout_buffer.memory = self._memory
        self.stream_seed = np.random.randint(2**31) if self.seed is None else self.seed
        self.shards, self.exchange = self.own_shards or one_shard(self.n_envs), Alone()
        if self.engine.by_shards and self.own_shards is None:
            memory = self.policy_kwargs.get("memory")
            samples = 1 if memory is None else memory.length
            batch = self.batch_size // samples
            count = asked_count(self.asked_shards, self.n_envs, batch, samples=samples)
            self.shards = Shards(count, 0, count, self.n_envs // count)
        self.all_rows = self.shards.total * self.shards.rows

    @property
    def _memory(self) -> RolloutMemory:
        """What the policy remembers of every row."""
        assert isinstance(self.policy, RememberingPolicy)
        return self.policy.rollout

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why `auto` did not take a faster engine, a line for each."""
        return tuple(
            f"engine {self.engine.name}, not the faster {name} one: {why}"
            for name, why in self.passed_over
        )

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "engine", "passed_over", "source"]

    def _branches(self) -> int:
        """How many parts an action has."""
        if isinstance(self.action_space, spaces.MultiDiscrete):
            return len(self.action_space.nvec)
        if self.policy_kwargs.get("hybrid"):
            assert self.action_space.shape is not None
            return self.action_space.shape[0]
        raise ValueError("objective per_branch needs actions of several branches")

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Fill `rollout_buffer`; False where `callback` ended it."""
        if self.source is not None:
            return self.source.collect(self, callback, steps=n_rollout_steps)
        counted: Any = env if self.all_rows == env.num_envs else _Counted(env, self.all_rows)
        loop = partial(super().collect_rollouts, counted, callback, rollout_buffer, n_rollout_steps)
        if isinstance(rollout_buffer, ChunkRolloutBuffer):
            self._memory.begin(lambda: np.asarray(self._last_episode_starts))
        return self.engine.collect(self, loop, steps=n_rollout_steps)

    def _update_info_buffer(
        self, infos: list[dict[str, Any]], dones: np.ndarray | None = None
    ) -> None:
        """Keep what `infos` say of the episodes that ended; the others say nothing."""
        if dones is not None:
            ended = np.flatnonzero(dones)
            if isinstance(self.rollout_buffer, ChunkRolloutBuffer):
                self._memory.cut_off.extend(int(row) for row in ended if _is_cut_off(infos[row]))
            infos = [infos[row] for row in ended]
            dones = np.ones(len(infos), np.bool_)
        super()._update_info_buffer(infos, dones)

    def train(self) -> None:
        """Improve the policy by the rollout in the buffer, and by those that are kept."""
        last = self.rollout_buffer
        if self.rollouts is not None:
            self.rollout_buffer = self.rollouts.with_last(last, step=self.num_timesteps)
        try:
            self.engine.update(self, dual_clip=self.dual_clip)
        finally:
            self.rollout_buffer = last
        if isinstance(self.rollout_buffer, ChunkRolloutBuffer):
            self.logger.record("train/state_drift", self._state_drift())

    def _state_drift(self) -> float:
        """The mean over all shards of what their states drifted in the update."""
        policy, shards = self.policy, self.shards
        assert isinstance(policy, RememberingPolicy)
        most = max(1, DRIFT_ROWS // shards.total)
        blocks = [range(k * shards.rows, (k + 1) * shards.rows) for k in range(shards.here)]
        own = [[policy.state_drift(self.rollout_buffer, one, most=most)] for one in blocks]
        return float(of_all_shards(np.array(own), self.exchange).mean())


class _Counted:
    """`env`, whose steps count for `num_envs` rows, most of which others have."""

    def __init__(self, env: VecEnv, num_envs: int) -> None:
        self.num_envs, self.step = num_envs, env.step


def _is_cut_off(info: dict[str, Any]) -> bool:
    """Whether stable-baselines3 asks for the value of the episode's last observation."""
    return info.get("terminal_observation") is not None and bool(info.get("TimeLimit.truncated"))
