"""Gradients of the fused engine beside those of torch's autograd."""

from typing import Any

import numpy as np

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import _losses, ranges_of
from aimbot_lab.training.fused import engine as fused_engine
from aimbot_lab.training.fused.core.arrays import Loss
from aimbot_lab.training.fused.engine import Minibatch, sums_and_squares
from aimbot_lab.training.fused.layout import net_views, tensor_views


def whole_rollout(model: HybridPPO, loss: Loss | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(gradient, sums of the losses) over the rollout in the buffer, by the fused engine."""
    engine: Any = model.engine
    buffer = model.rollout_buffer
    engine._weights.load()
    chunks = np.random.default_rng(0).permutation(engine._pieces(buffer, model.shards).ravel())
    if loss is None:
        loss = fused_engine._loss(model, whole_minibatch(model), ranges_of(model, None))
    flat, sums = engine._gradient.of(engine._rows(buffer), chunks[None], loss, shards=1)
    return flat[0], sums[0]


def whole_minibatch(model: HybridPPO) -> Minibatch:
    """The rollout in the buffer as one minibatch, of which only the advantages are known."""
    advantages = model.rollout_buffer.advantages.reshape(1, -1)
    moments = sums_and_squares(advantages)[0]
    return Minibatch(np.zeros((1, 0), np.int64), advantages.size, moments)


def fused_gradient_of(model: HybridPPO) -> dict[str, np.ndarray]:
    """The gradient over the whole rollout by every weight of the policy, by its name."""
    engine: Any = model.engine
    shape, (flat, _) = engine.shape, whole_rollout(model)
    names = {id(weight): name for name, weight in model.policy.named_parameters()}
    found = {name: np.zeros(w.shape, np.float32) for name, w in model.policy.named_parameters()}
    tensors = list(dict.fromkeys(place.tensor for place in engine._weights.places))
    for tensor, views in zip(tensors, tensor_views(shape, net_views(shape, flat)), strict=True):
        for view in views:
            found[names[id(tensor)]][view.part] = view.weights
    return found


def autograds(model: HybridPPO) -> dict[str, np.ndarray]:
    """The same by torch."""
    loss, _ = _losses(model, next(model.rollout_buffer.get(None)), ranges_of(model, None))
    model.policy.zero_grad()
    loss.backward()
    return {name: weight.grad.numpy() for name, weight in model.policy.named_parameters()}


def apart(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """How far two gradients are apart, relative to their norm."""
    difference = np.concatenate([(one[name] - other[name]).ravel() for name in other])
    whole = np.concatenate([other[name].ravel() for name in other])
    return float(np.linalg.norm(difference) / np.linalg.norm(whole))


def ratios_and_values_moved(model: HybridPPO) -> tuple[float, float]:
    """(samples whose ratio is off 1 by more than 1e-6, sum of squares of values' changes).

    Of the rollout in the buffer, whose returns are taken for its values, by the kernels of an
    update.
    """
    buffer = model.rollout_buffer
    returns, buffer.returns = buffer.returns, buffer.values.copy()
    loss = Loss(*map(np.float32, (1.0, 0.0, 1.0, 1e-6, 0.0, 0.0, 0.0, 1.0)))
    try:
        _, sums = whole_rollout(model, loss)
    finally:
        buffer.returns = returns
    return float(sums[3]), float(sums[1])
