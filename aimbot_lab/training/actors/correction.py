"""Blocks valued anew by the policy that is about to learn from them."""

from collections.abc import Sequence

import numpy as np
import torch as th
from gymnasium import spaces

from aimbot_lab.training.actors.block import Array, Block, Ends
from aimbot_lab.training.actors.v_trace import Steps, v_trace
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO


def correct(model: HybridPPO, blocks: Sequence[Block]) -> None:
    """Set the rollout buffer's values, log-probabilities, advantages and returns anew.

    Advantages are those of V-trace, which bear the ratio of the policy that learns to the actor's.
    So PPO's clip has to bound the update alone, and compares with the policy where it begins: the
    decoupled objective of Hilton et al. 2022 (arXiv 2110.00641). Compared with the actor's, part
    of the samples would be out of bounds before the first step. `blocks` are those in the buffer,
    side by side.
    """
    buffer, row = model.rollout_buffer, 0
    for block in blocks:
        steps, log_probs = _valued(model, block)
        advantages = v_trace(steps, gamma=model.gamma, gae_lambda=model.gae_lambda)
        rows = slice(row, row + steps.values.shape[1])
        buffer.values[:, rows] = steps.values
        buffer.log_probs[:, rows] = log_probs
        buffer.advantages[:, rows] = advantages
        buffer.returns[:, rows] = steps.values + advantages
        row = rows.stop


def _valued(model: HybridPPO, block: Block) -> tuple[Steps, Array]:
    """What the present policy makes of `block`, and its log-probabilities [T, N, ...]."""
    assert block.ends is not None
    ends, made = Ends(**block.ends), block.columns["log_probs"]
    values, log_probs = _judged(model, block)
    rewards = ends.rewards.copy()
    if ends.cut_steps.size:
        after = _values(model, ends.cut_observations)
        rewards[ends.cut_steps, ends.cut_rows] += np.float32(model.gamma) * after
    log_probs = log_probs.reshape(made.shape)
    apart = log_probs - made
    if apart.ndim > values.ndim:  # by branch
        apart = apart.sum(axis=-1)
    steps = Steps(
        rewards=rewards,
        ends=ends.ends,
        values=values,
        last_values=_values(model, ends.last_observations),
        ratios=np.exp(apart),
    )
    return steps, log_probs


def _judged(model: HybridPPO, block: Block) -> tuple[Array, Array]:
    """(values [T, N], log-probabilities) of what `block` shows and does."""
    observations = block.columns["observations"]
    seen = th.as_tensor(observations, device=model.device).flatten(end_dim=1)
    actions = th.as_tensor(block.columns["actions"], device=model.device).flatten(end_dim=1)
    if isinstance(model.action_space, spaces.Discrete):
        actions = actions.long().flatten()
    with th.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(seen, actions)
    return values.numpy(force=True).reshape(observations.shape[:2]), log_probs.numpy(force=True)


def _values(model: HybridPPO, observations: Array) -> Array:
    """Values [N] of `observations` [N, D]."""
    with th.no_grad():
        found = model.policy.predict_values(th.as_tensor(observations, device=model.device))
    values: Array = found.numpy(force=True).reshape(-1)
    return values
