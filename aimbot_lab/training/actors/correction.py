"""V-trace: blocks valued anew by the policy that is about to learn from them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.utils import obs_as_tensor

from aimbot_lab.training.actors.block import Array, Block, StepEnds
from aimbot_lab.training.algorithms.buffers import tensors_of
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
MAX_RATIO = 2.0
"""rho-bar and c-bar. At 1, where the paper has them, ratios below 1 shorten the traces and none
lengthens them: one update apart by 5 % a step."""


def v_trace(
    rewards: Floats,
    ends: Bools,
    *,
    values: Floats,
    last_values: Floats,
    ratios: Floats,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Advantages [T, N] by V-trace; the targets of the values are the values plus these.

    `rewards` [T, N] hold the discounted value of the end where an episode was cut off, `ends`
    [T, N] are True where one ended, by its rules or cut off. `values` [T, N] and `last_values`
    [N] (after the last step) are those of the present policy, `ratios` [T, N] its probability of
    the action over the older one's.

    (Espeholt et al. 2018, eq. 1, c of remark 2.) With rho = min(MAX_RATIO, ratio) and d_t = r_t +
    gamma V_t+1 - V_t, a_t = rho_t (d_t + gamma lambda a_t+1). That is v_t - V_t, and at lambda 1
    also the advantage of section 4.2, which bears rho. With equal policies it is GAE's.
    """
    rho = np.minimum(ratios, np.float32(MAX_RATIO))
    advantages = np.empty_like(values)
    next_values, later = last_values, np.zeros_like(last_values)
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = np.float32(gamma) * ~ends[t]
        delta = rewards[t] + goes_on * next_values - values[t]
        advantages[t] = rho[t] * (delta + goes_on * np.float32(gae_lambda) * later)
        next_values, later = values[t], advantages[t]
    return advantages


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
        assert block.ends is not None
        ends, made = StepEnds(**block.ends), block.columns["log_probs"]
        values, log_probs = _judged(model, block)
        rewards = ends.rewards.copy()
        if ends.cut_steps.size:
            after = _values(model, ends.cut_observations)
            rewards[ends.cut_steps, ends.cut_rows] += np.float32(model.gamma) * after
        log_probs = log_probs.reshape(made.shape)
        apart = log_probs - made
        if apart.ndim > values.ndim:  # by branch
            apart = apart.sum(axis=-1)
        advantages = v_trace(
            rewards,
            ends.ends,
            values=values,
            last_values=_values(model, ends.last_observations),
            ratios=np.exp(apart),
            gamma=model.gamma,
            gae_lambda=model.gae_lambda,
        )
        rows = slice(row, row + values.shape[1])
        buffer.values[:, rows] = values
        buffer.log_probs[:, rows] = log_probs
        buffer.advantages[:, rows] = advantages
        buffer.returns[:, rows] = values + advantages
        row = rows.stop


def _judged(model: HybridPPO, block: Block) -> tuple[Array, Array]:
    """(values [T, N], log-probabilities) of what `block` shows and does."""
    observations: Any = block.columns["observations"]
    shape = observations.shape[:2]
    if observations.dtype.names is None:
        seen: Any = th.as_tensor(observations, device=model.device).flatten(end_dim=1)
    else:
        seen = tensors_of(observations, model.device)
    actions = th.as_tensor(block.columns["actions"], device=model.device).flatten(end_dim=1)
    if isinstance(model.action_space, spaces.Discrete):
        actions = actions.long().flatten()
    with th.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(seen, actions)
    return values.numpy(force=True).reshape(shape), log_probs.numpy(force=True)


def _values(model: HybridPPO, observations: Any) -> Array:
    """Values [N] of `observations` [N, D], or by name."""
    with th.no_grad():
        found = model.policy.predict_values(obs_as_tensor(observations, model.device))
    values: Array = found.numpy(force=True).reshape(-1)
    return values
