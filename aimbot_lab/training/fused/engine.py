"""Learning without autograd: the losses and steps of the torch engine, within rounding."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.foundation.threads.thread_pool import ThreadPool
from aimbot_lab.training.algorithms.ppo_update import Minibatch, Ranges, Tally, ranges_of, record
from aimbot_lab.training.engines.engine import Loop
from aimbot_lab.training.fused.actor import FusedActor
from aimbot_lab.training.fused.core.parts import (
    CLIPPED,
    DIVERGENCE,
    DUAL_CLIPPED,
    ENTROPY,
    POLICY,
    VALUE,
    Doubles,
    Floats,
    Loss,
    Whole,
)
from aimbot_lab.training.fused.gradient import FusedGradient
from aimbot_lab.training.fused.policy import features_of, fused_weights
from aimbot_lab.training.fused.workspace import MAX_THREADS
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.networks.torch_threads import one_torch_thread


class FusedEngine:
    """Acts and learns for one policy; what is learned stays in the policy and its optimiser.

    Works with as many threads as torch is set to. These are its own, and torch has one meanwhile;
    the result is the same for any number. Building one compiles the kernels.
    Raises UnsuitedError for a policy that it does not know.
    """

    name = "fused"

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self._policy = policy
        self.workers = ThreadPool(1)
        self.before_step: Callable[[], None] | None = None  # called before each gradient step
        self._make_parts()
        self._compile()

    def _make_parts(self) -> None:
        """Make what the kernels work with, for the policy."""
        self.shape, self._weights = fused_weights(self._policy)
        self._gradient: Any = FusedGradient(self.shape, self._weights.networks)
        self.actor = FusedActor(self._policy, self.shape, self._weights)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is an engine of the copied policy: views into arrays would not stay views."""
        return type(self), (self._policy,)

    def _compile(self) -> None:
        """Have the kernels compiled, or read from the cache, before a training begins."""
        self.actor.begin(1, 1)
        self.actor.choose(0)
        first, loss = np.zeros(1, np.int64), Loss(*np.ones(8, np.float32))
        gradient, _ = self._gradient.of(self._one_sample(), first, loss)
        self._weights.descend(gradient, self._policy.optimizer, max_norm=1.0)

    def _one_sample(self) -> Any:
        """What `_rows` gives, of a single sample."""
        return self.actor.rollout.rows[0]

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Work with torch's number of threads, while torch has one in each."""
        with one_torch_thread() as threads:
            if self.workers.count != min(threads, MAX_THREADS):
                workers = ThreadPool(min(threads, MAX_THREADS))
                self.actor.join(workers)
                self._gradient.join(workers)
                self.workers = workers  # last, or an interrupt would leave the others without
            yield

    def collect(self, model: PPO, loop: Loop, *, steps: int) -> bool:
        """Fill the buffer by stable-baselines3's loop, whose policy acts by the kernels."""
        policy = model.policy
        assert isinstance(policy, HybridPolicy)
        self.actor.begin(steps, model.n_envs)
        policy.act = self.actor.act
        try:
            with self.threads():
                return loop()
        finally:
            policy.act = None

    def update(self, model: PPO, *, dual_clip: float | None) -> None:
        """Improve the policy by the rollout of `model` and record what PPO records.

        Raises ValueError where the weights are no numbers any more, as torch would.
        """
        optimizer = self._policy.optimizer
        model._update_learning_rate(optimizer)
        ranges, tally = ranges_of(model, dual_clip), Tally()
        self._weights.load()
        self._weights.load_optimizer(optimizer)
        with self.threads():
            rows = self._rows(model.rollout_buffer)
            for _ in range(model.n_epochs):
                whole = self._epoch(model, rows, ranges=ranges, tally=tally)
                model._n_updates += 1
                if not whole:
                    break
        self._weights.store(optimizer)
        self.actor.rollout.steps = 0  # used up
        record(model, ranges, tally)
        if not np.isfinite(self._weights.weights).all():
            raise ValueError("the policy's weights are no numbers any more")

    def _features(self, observations: th.Tensor) -> Floats:
        """What a rollout keeps of observations [N, D]: [N, F + M]."""
        return features_of(self._policy, observations)

    def _rows(self, buffer: RolloutBuffer) -> Any:
        """The samples [S, W] in `buffer`, in the order in which they were collected."""
        rollout = self.actor.rollout
        if rollout.steps != buffer.buffer_size:  # they were collected in another way
            rollout.begin(buffer.buffer_size, buffer.n_envs)
            seen = th.as_tensor(buffer.observations).flatten(end_dim=1)
            features = self._features(seen)
            rollout.show_all(features.reshape(*buffer.values.shape, -1))
        return rollout.complete(buffer)

    def _minibatches(self, model: PPO) -> Iterator[tuple[Whole, Whole]]:
        """(what the gradient is asked for, numbers of the samples) of the minibatches of a pass."""
        buffer = model.rollout_buffer
        # stable-baselines3 counts samples environment by environment, the rows are step by step.
        size = buffer.buffer_size * buffer.n_envs
        table = np.arange(size).reshape(buffer.buffer_size, buffer.n_envs).T.ravel()
        order = table[np.random.permutation(size)]
        for start in range(0, size, model.batch_size):
            indices = order[start : start + model.batch_size]
            yield indices, indices

    def _epoch(self, model: PPO, rows: Any, *, ranges: Ranges, tally: Tally) -> bool:
        """Take the gradient steps of one pass; False where the divergence stopped it."""
        tally.last_kl.clear()
        advantages = model.rollout_buffer.advantages.reshape(-1)
        for asked, indices in self._minibatches(model):
            loss = _loss(model, advantages[indices], ranges)
            gradient, sums = self._gradient.of(rows, asked, loss)
            batch = self._measured(model, sums / len(indices), bounds=ranges.dual_clip is not None)
            tally.add(batch)
            if model.target_kl is not None and batch.kl > 1.5 * model.target_kl:
                return False
            if self.before_step is not None:
                self.before_step()
            self._weights.descend(gradient, self._policy.optimizer, max_norm=model.max_grad_norm)
        return True

    def _measured(self, model: PPO, means: Doubles, *, bounds: bool) -> Minibatch:
        policy, value, entropy = (float(means[k]) for k in (POLICY, VALUE, ENTROPY))
        return Minibatch(
            total=policy + model.ent_coef * entropy + model.vf_coef * value,
            policy=policy,
            value=value,
            entropy=entropy,
            clip_fraction=float(means[CLIPPED]) / self.shape.ratios,
            kl=float(means[DIVERGENCE]),
            dual_clip_fraction=float(means[DUAL_CLIPPED]) / self.shape.ratios if bounds else None,
        )


def _loss(model: PPO, advantages: Floats, ranges: Ranges) -> Loss:
    """The loss of a minibatch with these advantages [N]."""
    mean, deviation = 0.0, 1.0
    if model.normalize_advantage and len(advantages) > 1:
        mean, deviation = float(advantages.mean()), float(advantages.std(ddof=1)) + 1e-8
    numbers = (
        1.0 / len(advantages),
        mean,
        deviation,
        ranges.clip,
        ranges.dual_clip or 0.0,
        ranges.clip_value or 0.0,
        model.ent_coef,
        model.vf_coef,
    )
    return Loss(*map(np.float32, numbers))
