"""The update of proximal policy optimisation: epochs over a rollout, in minibatches."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.utils import explained_variance
from torch.nn import functional

from aimbot_lab.training.algorithms.buffers import ChunkSamples
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy


class Ranges(NamedTuple):
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


def ranges_of(model: PPO, dual_clip: float | None) -> Ranges:
    """How far the update that `model` makes now may go."""
    progress = model._current_progress_remaining
    clip_value = None if model.clip_range_vf is None else model.clip_range_vf(progress)  # type: ignore[operator]
    return Ranges(model.clip_range(progress), clip_value, dual_clip)  # type: ignore[operator]


def _epoch(model: PPO, ranges: Ranges, tally: Tally) -> bool:
    """Take the gradient steps of one pass; False where the divergence stopped it."""
    tally.last_kl.clear()
    for loss, batch in _minibatches(model, ranges):
        tally.add(batch)
        if model.target_kl is not None and batch.kl > 1.5 * model.target_kl:
            return False
        optimizer = model.policy.optimizer
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        th.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
        optimizer.step()
    return True


def _minibatches(model: PPO, ranges: Ranges) -> Iterator[tuple[th.Tensor, Losses]]:
    for data in model.rollout_buffer.get(model.batch_size):
        yield _losses(model, data, ranges)


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


def _losses(model: PPO, data: RolloutBufferSamples, ranges: Ranges) -> tuple[th.Tensor, Losses]:
    """(loss to differentiate, what it is made of)."""
    values, log_prob, entropy = evaluated(model, data)
    advantages = normalized(data.advantages) if model.normalize_advantage else data.advantages
    policy = policy_loss(
        log_prob,
        data.old_log_prob,
        advantages,
        clip_range=ranges.clip,
        dual_clip=ranges.dual_clip,
    )
    value = value_loss(values.flatten(), data.old_values, data.returns, ranges.clip_value)
    disorder = entropy_loss(entropy, log_prob)
    touched = policy.dual_clip_fraction
    with th.no_grad():
        kl = approximate_kl(log_prob, data.old_log_prob).item()
    total = policy.loss + model.ent_coef * disorder + model.vf_coef * value
    return total, Losses(
        total=total.item(),
        policy=policy.loss.item(),
        value=value.item(),
        entropy=disorder.item(),
        clip_fraction=policy.clip_fraction.item(),
        kl=kl,
        dual_clip_fraction=None if touched is None else touched.item(),
    )


def record(model: PPO, ranges: Ranges, tally: Tally, *, fit: float) -> None:
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


class PolicyLoss(NamedTuple):
    """The policy's loss and what it tells about the step."""

    loss: th.Tensor  # scalar
    clip_fraction: th.Tensor  # scalar: share of ratios outside the clip range
    dual_clip_fraction: th.Tensor | None = None  # scalar: share of ratios that dual clip bounds


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
) -> PolicyLoss:
    """The clipped loss; with log-probabilities [N, K] the branches' objectives are summed."""
    ratio = th.exp(log_prob - old_log_prob)
    per_branch = ratio.dim() == 2
    if per_branch:
        advantages = advantages.unsqueeze(1)
    objective = clipped_objective(ratio, advantages, clip_range=clip_range, dual_clip=dual_clip)
    loss = -(objective.sum(dim=1) if per_branch else objective).mean()
    clipped = th.mean((th.abs(ratio - 1) > clip_range).float())
    if dual_clip is None:
        return PolicyLoss(loss, clipped)
    return PolicyLoss(loss, clipped, dual_clipped(ratio, advantages, dual_clip).float().mean())


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
