"""PPO's update by autograd, the rollouts that it learns from, and what an engine is."""

from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecNormalize
from torch.nn import functional

from aimbot_lab.training.networks.remembering_policy import (
    Chunks,
    MemoryShape,
    RememberingPolicy,
    RolloutMemory,
    WarmUp,
)


class HybridRolloutBuffer(RolloutBuffer):
    """stable-baselines3's buffer in less time: it keeps its memory, and copies a step once.

    With `branches` K it keeps K log-probabilities a sample, one a branch. Observations that are
    shown as a Dict are kept as records of its entries, in their own types.
    """

    def __init__(self, *args: Any, branches: int | None = None, **arguments: Any) -> None:
        self._branches = branches
        self._whole = False  # whether the arrays are there, in the form of a rollout
        self._records: np.dtype[Any] | None = None
        super().__init__(*args, **arguments)

    def reset(self) -> None:
        """Empty the buffer; what it held stays to be written over."""
        if self._whole and not self.generator_ready:  # a generator gives the arrays another form
            self.pos, self.full = 0, False
            return
        if isinstance(space := self.observation_space, spaces.Dict):
            self.obs_shape = ()
            parts = [(name, one.dtype, one.shape) for name, one in space.items()]
            self._records = np.dtype(parts, align=True)
        super().reset()
        if self._records is not None:
            self.observations = np.zeros((self.buffer_size, self.n_envs), self._records)
        self._whole = True
        if self._branches is not None:
            shape = self.buffer_size, self.n_envs, self._branches
            self.log_probs = np.zeros(shape, np.float32)  # [T, B, K]

    def add(
        self,
        obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        episode_start: np.ndarray,
        value: th.Tensor,
        log_prob: th.Tensor,
    ) -> None:
        """Keep a step: of each of B environments what stable-baselines3's buffer keeps."""
        at = self.pos
        if self._records is None:
            self.observations[at] = obs
        else:
            for name, part in obs.items():
                self.observations[name][at] = part
        self.actions[at] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[at] = reward
        self.episode_starts[at] = episode_start
        self.values[at] = value.numpy(force=True).reshape(self.n_envs)
        self.log_probs[at] = log_prob.numpy(force=True).reshape(self.log_probs[at].shape)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def to_torch(self, array: np.ndarray, copy: bool = True) -> Any:
        """`array` as a tensor; records as a tensor of each entry."""
        if array.dtype.names is None:
            return super().to_torch(array, copy)
        return tensors_of(array, self.device)

    def _get_samples(
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> RolloutBufferSamples:
        samples = super()._get_samples(batch_inds, env)
        if self._branches is None:
            return samples
        return samples._replace(
            old_log_prob=samples.old_log_prob.reshape(len(batch_inds), self._branches)
        )


def tensors_of(records: np.ndarray, device: th.device | str) -> dict[str, th.Tensor]:
    """A copy of each entry [N, ...] of `records` [N] or [N, 1]."""
    flat = records.reshape(-1)
    return {
        name: th.as_tensor(np.ascontiguousarray(flat[name]), device=device)
        for name in records.dtype.names or ()
    }


FLATTENED = ("observations", "actions", "values", "log_probs", "advantages", "returns")
Int64Array = npt.NDArray[np.int64]


class ChunkSamples(NamedTuple):
    """A minibatch of N chunks of L steps, chunk by chunk, with what the memory needs of them."""

    observations: Any  # [N L, D], or by name
    actions: th.Tensor
    old_values: th.Tensor
    old_log_prob: th.Tensor
    advantages: th.Tensor
    returns: th.Tensor
    chunks: Chunks


class ChunkRolloutBuffer(HybridRolloutBuffer):
    """Minibatches are shuffled chunks of `shape.length` steps, so none is padded.

    `memory` keeps the states from where each chunk began while the buffer is filled.
    """

    memory: RolloutMemory

    def __init__(self, *args: Any, shape: MemoryShape, **arguments: Any) -> None:
        self._shape = shape
        super().__init__(*args, **arguments)
        if self.buffer_size % shape.length:
            raise ValueError(f"n_steps must be a multiple of {shape.length}, a chunk's steps")

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Minibatches of `batch_size` samples, a multiple of a chunk's steps."""
        assert self.full, "the rollout is not complete"
        self._flatten()
        length, samples = self._shape.length, self.buffer_size * self.n_envs
        if batch_size is not None and batch_size % length:
            raise ValueError(f"batch_size must be a multiple of {length}, a chunk's steps")
        count = (batch_size or samples) // length
        order = np.random.permutation(samples // length)
        for first in range(0, len(order), count):
            yield self._minibatch(order[first : first + count])

    def chunk_of(self, steps: slice, rows: slice = slice(None)) -> tuple[th.Tensor, th.Tensor]:
        """(observations [R L, D] row by row, starts [L, R]) of R `rows` at `steps`."""
        if self.generator_ready:
            form = self.n_envs, self.buffer_size
            whole = self.observations.reshape(*form, *self.observations.shape[1:])
            seen = whole[rows, steps]
        else:
            seen = self.observations[steps, rows].swapaxes(0, 1)
        starts = np.ascontiguousarray(self.episode_starts[steps, rows])
        return self.to_torch(seen.reshape(-1, *seen.shape[2:])), self.to_torch(starts)

    def _flatten(self) -> None:
        if self.generator_ready:
            return
        for name in FLATTENED:
            setattr(self, name, self.swap_and_flatten(getattr(self, name)))
        self.generator_ready = True

    def _minibatch(self, chunks: Int64Array) -> ChunkSamples:
        samples: RolloutBufferSamples = self._get_samples(self._samples_of(chunks))
        rows, places = np.divmod(chunks, self.buffer_size // self._shape.length)
        back = self._shape.burn_in // self._shape.length
        state = th.stack(self.memory.kept)[np.maximum(places - back, 0), rows]
        warm_up = tuple(self._warm_up(chunks, places, back=b) for b in range(back, 0, -1))
        return ChunkSamples(*samples[:6], Chunks(state, self._starts(chunks), warm_up))

    def _warm_up(self, chunks: Int64Array, places: Int64Array, *, back: int) -> WarmUp:
        """Earlier chunks of those rows that have them in this rollout."""
        rows = np.flatnonzero(places >= back)
        earlier = chunks[rows] - back
        seen = self.to_torch(self.observations[self._samples_of(earlier)])
        return th.as_tensor(rows, device=self.device), seen, self._starts(earlier)

    def _samples_of(self, chunks: Int64Array) -> Int64Array:
        """Numbers [N L] of the samples of chunks, in order within each."""
        length = self._shape.length
        numbers: Int64Array = (chunks[:, None] * length + np.arange(length)).ravel()
        return numbers

    def _starts(self, chunks: Int64Array) -> th.Tensor:
        """[L, N] 1 where an episode begins."""
        length = self._shape.length
        flat = self.episode_starts.T.reshape(-1, length)
        starts: th.Tensor = self.to_torch(np.ascontiguousarray(flat[chunks].T))
        return starts


COLUMNS = (
    "observations",
    "actions",
    "values",
    "log_probs",
    "advantages",
    "returns",
    "episode_starts",
)
"""What an update needs of a rollout buffer, each [T, B, ...]."""


class KeptRollout(NamedTuple):
    """A complete rollout of T steps of B environments, as it was collected."""

    step: int  # environment steps of the training when it was complete
    columns: Mapping[str, np.ndarray]  # by the names in COLUMNS
    states: tuple[th.Tensor, ...]  # of a memory where each chunk begins, each [B, S, H]


class KeptRollouts:
    """The last rollouts, at most `keep`; those before the next one wait in `waiting`."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self.waiting: tuple[KeptRollout, ...] = ()  # oldest first; never changed in place

    def with_last(self, buffer: RolloutBuffer, *, step: int) -> Any:
        """A buffer of the rollout in `buffer`, complete at `step`, after all that are kept.

        It has T steps of K B environments where K rollouts of B are there, so that an
        update from one rollout takes it as it is. `buffer` stays as it is.
        """
        rollouts = (*self.waiting, _kept(buffer, step))
        self.waiting = rollouts[-(self._keep - 1) :]
        return _joined(buffer, rollouts)


def _kept(buffer: RolloutBuffer, step: int) -> KeptRollout:
    assert buffer.full, "the rollout is not complete"
    columns = {name: getattr(buffer, name).copy() for name in COLUMNS}
    states = buffer.memory.kept if isinstance(buffer, ChunkRolloutBuffer) else ()
    return KeptRollout(step, columns, tuple(states))


def _joined(buffer: RolloutBuffer, rollouts: Sequence[KeptRollout]) -> Any:
    joined: Any = copy(buffer)
    joined.n_envs = buffer.n_envs * len(rollouts)
    for name in COLUMNS:
        parts = [rollout.columns[name] for rollout in rollouts]
        setattr(joined, name, np.concatenate(parts, axis=1))
    if isinstance(buffer, ChunkRolloutBuffer):
        joined.memory = copy(buffer.memory)
        places = zip(*(rollout.states for rollout in rollouts), strict=True)
        joined.memory.kept = [th.cat(states) for states in places]
    return joined


class ClipRanges(NamedTuple):
    """How far an update may go."""

    clip: float
    clip_value: float | None
    dual_clip: float | None


class Losses(NamedTuple):
    """Losses of one minibatch."""

    total: float
    policy: float
    value: float
    entropy: float
    clip_fraction: float
    kl: float
    dual_clip_fraction: float | None = None


@dataclass
class Tally:
    """What an update's minibatches came to."""

    losses: dict[str, list[float]] = field(default_factory=dict)
    last_kl: list[float] = field(default_factory=list)  # of the last epoch
    last_loss: float = 0.0

    def add(self, batch: Losses) -> None:
        """Count a minibatch."""
        parts = {
            "policy_gradient_loss": batch.policy,
            "value_loss": batch.value,
            "entropy_loss": batch.entropy,
            "clip_fraction": batch.clip_fraction,
        }
        if batch.dual_clip_fraction is not None:
            parts["dual_clip_fraction"] = batch.dual_clip_fraction
        for name, value in parts.items():
            self.losses.setdefault(name, []).append(value)
        self.last_kl.append(batch.kl)
        self.last_loss = batch.total


def update(model: PPO, *, dual_clip: float | None) -> None:
    """Improve `model`'s policy by its rollout and record what PPO of stable-baselines3 records.

    The same operations in the same order as there, so that the results agree to the bit.
    Where the policy's log-probabilities are [N, K], each branch has its own objective.
    """
    model.policy.set_training_mode(True)
    model._update_learning_rate(model.policy.optimizer)
    ranges, tally = ranges_of(model, dual_clip), Tally()
    for _ in range(model.n_epochs):
        whole = _epoch(model, ranges, tally)
        model._n_updates += 1
        if not whole:
            break
    buffer = model.rollout_buffer
    fit = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
    record(model, ranges, tally, fit=fit)


def ranges_of(model: PPO, dual_clip: float | None) -> ClipRanges:
    """How far the update that `model` makes now may go."""
    progress = model._current_progress_remaining
    clip_value = None if model.clip_range_vf is None else model.clip_range_vf(progress)  # type: ignore[operator]
    return ClipRanges(model.clip_range(progress), clip_value, dual_clip)  # type: ignore[operator]


def _epoch(model: PPO, ranges: ClipRanges, tally: Tally) -> bool:
    """Take the gradient steps of one pass; False where the divergence stopped it."""
    tally.last_kl.clear()
    for data in model.rollout_buffer.get(model.batch_size):
        loss, batch = _losses(model, data, ranges)
        tally.add(batch)
        if model.target_kl is not None and batch.kl > 1.5 * model.target_kl:
            return False
        optimizer = model.policy.optimizer
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        th.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
        optimizer.step()
    return True


def evaluated(
    model: PPO, data: RolloutBufferSamples | ChunkSamples
) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
    """(values, log-probabilities, entropy) that `model`'s policy now has for a minibatch."""
    actions = data.actions
    if isinstance(model.action_space, spaces.Discrete):
        actions = actions.long().flatten()
    if isinstance(data, ChunkSamples):
        policy = model.policy
        assert isinstance(policy, RememberingPolicy)
        return policy.evaluate_chunks(data.observations, actions, data.chunks)
    return model.policy.evaluate_actions(data.observations, actions)


def _losses(model: PPO, data: RolloutBufferSamples, ranges: ClipRanges) -> tuple[th.Tensor, Losses]:
    """(loss to differentiate, what it is made of)."""
    values, log_prob, entropy = evaluated(model, data)
    advantages = normalized(data.advantages) if model.normalize_advantage else data.advantages
    policy, clipped, bounded = policy_loss(
        log_prob,
        data.old_log_prob,
        advantages,
        clip_range=ranges.clip,
        dual_clip=ranges.dual_clip,
    )
    value = value_loss(values.flatten(), data.old_values, data.returns, ranges.clip_value)
    disorder = entropy_loss(entropy, log_prob)
    with th.no_grad():
        kl = approximate_kl(log_prob, data.old_log_prob).item()
    total = policy + model.ent_coef * disorder + model.vf_coef * value
    return total, Losses(
        total=total.item(),
        policy=policy.item(),
        value=value.item(),
        entropy=disorder.item(),
        clip_fraction=clipped.item(),
        kl=kl,
        dual_clip_fraction=None if bounded is None else bounded.item(),
    )


def record(model: PPO, ranges: ClipRanges, tally: Tally, *, fit: float) -> None:
    """Record what PPO of stable-baselines3 records; `fit` is the explained variance."""
    record = model.logger.record
    for name, losses in tally.losses.items():
        record(f"train/{name}", np.mean(losses))
    record("train/approx_kl", np.mean(tally.last_kl))
    record("train/loss", tally.last_loss)
    record("train/explained_variance", fit)
    if hasattr(model.policy, "log_std"):
        record("train/std", th.exp(model.policy.log_std).mean().item())
    record("train/n_updates", model._n_updates, exclude="tensorboard")
    record("train/clip_range", ranges.clip)
    if ranges.clip_value is not None:
        record("train/clip_range_vf", ranges.clip_value)


def normalized(advantages: th.Tensor) -> th.Tensor:
    """`advantages` [N] with mean 0 and standard deviation 1; a single one is left as it is."""
    if len(advantages) <= 1:
        return advantages
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def clipped_objective(
    ratio: th.Tensor, advantages: th.Tensor, *, clip_range: float, dual_clip: float | None
) -> th.Tensor:
    """What to maximise, per sample: min(r A, clip(r, 1 - e, 1 + e) A) (Schulman et al. 2017).

    With `dual_clip` c and A < 0 no less than c A (Ye et al. 2020, dual-clip PPO), so that a
    ratio that has grown far does not dominate the step.
    """
    free = advantages * ratio
    clipped = advantages * th.clamp(ratio, 1 - clip_range, 1 + clip_range)
    objective = th.min(free, clipped)
    if dual_clip is None:
        return objective
    bounded = th.max(objective, dual_clip * advantages)
    return th.where(advantages < 0, bounded, objective)


def dual_clipped(ratio: th.Tensor, advantages: th.Tensor, dual_clip: float) -> th.Tensor:
    """Which samples dual clip bounds: those with A < 0 whose ratio is above it."""
    return (advantages < 0) & (ratio > dual_clip)


def policy_loss(
    log_prob: th.Tensor,
    old_log_prob: th.Tensor,
    advantages: th.Tensor,
    *,
    clip_range: float,
    dual_clip: float | None = None,
) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
    """(clipped loss, share of ratios outside the clip range, share that dual clip bounds).

    With log-probabilities [N, K] the branches' objectives are summed.
    """
    ratio = th.exp(log_prob - old_log_prob)
    per_branch = ratio.dim() == 2
    if per_branch:
        advantages = advantages.unsqueeze(1)
    objective = clipped_objective(ratio, advantages, clip_range=clip_range, dual_clip=dual_clip)
    loss = -(objective.sum(dim=1) if per_branch else objective).mean()
    clipped = th.mean((th.abs(ratio - 1) > clip_range).float())
    if dual_clip is None:
        return loss, clipped, None
    return loss, clipped, dual_clipped(ratio, advantages, dual_clip).float().mean()


def value_loss(
    values: th.Tensor, old_values: th.Tensor, returns: th.Tensor, clip_range: float | None
) -> th.Tensor:
    """Mean squared error against `returns`; with `clip_range` of values that moved no farther."""
    if clip_range is not None:
        values = old_values + th.clamp(values - old_values, -clip_range, clip_range)
    return functional.mse_loss(returns, values)


def entropy_loss(entropy: th.Tensor | None, log_prob: th.Tensor) -> th.Tensor:
    """Minus the mean entropy, estimated from the samples where it has no closed form."""
    return -th.mean(-log_prob) if entropy is None else -th.mean(entropy)


def approximate_kl(log_prob: th.Tensor, old_log_prob: th.Tensor) -> th.Tensor:
    """Estimated divergence of the new policy from the old (Schulman 2020), over whole actions."""
    log_ratio = log_prob - old_log_prob
    if log_ratio.dim() == 2:
        log_ratio = log_ratio.sum(dim=1)
    return th.mean((th.exp(log_ratio) - 1) - log_ratio)


Loop = Callable[[], bool]
"""stable-baselines3's own loop over a rollout's steps; False where a callback ended it."""


class UnsuitedError(ValueError):
    """The engine does not know this policy; says why."""


class Engine(Protocol):
    """Computes for one policy; what is learned stays in the policy and its optimiser.

    Making one of a policy that it does not know raises UnsuitedError.
    """

    name: str
    by_shards: bool
    """Whether what it learns is cut into shards."""
    before_step: Callable[[], None] | None
    """Called before each gradient step that no optimiser of torch takes."""

    def collect(self, model: PPO, loop: Loop, *, steps: int) -> bool:
        """Fill `model.rollout_buffer` with `steps` steps of every row; returns what `loop` does.

        The loop asks the policy for actions and steps the world, and calls the callbacks.
        """
        ...

    def shown(self) -> Any:
        """What the last rollout's networks were shown [T, N, F], to be given to another's `show`.

        None where the engine keeps nothing of the kind.
        """
        ...

    def show(self, shown: Any) -> None:
        """Learn next from a rollout that another engine collected, which gave this as `shown`."""
        ...

    def update(self, model: PPO, *, dual_clip: float | None) -> None:
        """Improve the policy by `model.rollout_buffer`, and record what PPO records."""
        ...


class TorchEngine:
    """stable-baselines3's loop and updates by autograd: knows every policy, equal to the bit."""

    name = "torch"
    by_shards = False
    before_step: Callable[[], None] | None = None

    def __init__(self, policy: ActorCriticPolicy) -> None:
        del policy  # the model has it

    def collect(self, model: PPO, loop: Loop, *, steps: int) -> bool:
        """Fill the buffer by stable-baselines3's loop, whose policy acts by torch."""
        del model, steps
        return loop()

    def shown(self) -> Any:
        """Nothing: the rollout buffer has it all."""

    def show(self, shown: Any) -> None:
        """Nothing to keep."""

    def update(self, model: PPO, *, dual_clip: float | None) -> None:
        """Improve the policy by gradients that torch works out."""
        update(model, dual_clip=dual_clip)
