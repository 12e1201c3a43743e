"""The losses of proximal policy optimisation as pure functions of tensors.

Shapes: N samples, K branches of an action. A log-probability is [N] for whole actions or
[N, K] where each branch has its own ratio.
"""

from typing import NamedTuple

import torch as th
from torch.nn import functional


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
