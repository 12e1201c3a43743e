"""Gradients of a policy that remembers: within a chunk all of them, beyond its beginning none."""

from typing import Any

import numpy as np
import pytest
import torch as th
from test_memory import memory_plan, recall
from units_training import with_rollout

from aimbot_lab.training.algorithms.ppo_update import evaluated
from aimbot_lab.training.networks.remembering_policy import MemoryShape

pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
ROWS, STEPS, LENGTH = 4, 8, 4


def first_rollout(model: Any) -> Any:
    """`model` after its first rollout, from which nothing was learned."""
    model.engine.update = lambda *_args, **_named: None
    model.learn(model.n_envs * model.n_steps)
    return model


def test_no_gradient_crosses_the_beginning_of_a_chunk() -> None:
    """What a chunk comes to does not move with the steps before it, though they made its state."""
    model = with_rollout(memory_plan("everything"))
    np.random.seed(0)
    data = next(iter(model.rollout_buffer.get(8 * 32)))
    length = model.policy.memory_shape.length
    seen = data.observations.clone().requires_grad_()
    values, log_prob, _ = evaluated(model, data._replace(observations=seen))
    chunk = slice(length, 2 * length)
    (values[chunk].sum() + log_prob[chunk].sum()).backward()
    assert seen.grad is not None
    assert bool(seen.grad[chunk].any())
    assert not seen.grad[:length].any()
    assert not seen.grad[2 * length :].any()
    assert not data.chunks.state.requires_grad
    assert bool(data.chunks.state.any())  # it is not that nothing was remembered


def test_gradients_of_every_weight_of_a_whole_network_are_finite_differences() -> None:
    """With episodes that begin within chunks, and states that chunks begin with."""
    shape = MemoryShape(3, LENGTH, own_critic=True)
    model = recall(2, shape, rows=ROWS, units=4, n_steps=STEPS, batch_size=ROWS * STEPS)
    policy: Any = first_rollout(model).policy
    policy.double()
    policy.features_extractor.register_forward_hook(lambda _, __, features: features.double())
    data = next(iter(model.rollout_buffer.get(ROWS * STEPS)))
    chunks = data.chunks._replace(
        state=th.randn(data.chunks.state.shape).double(), starts=data.chunks.starts.double()
    )
    given = data._replace(observations=data.observations.double(), chunks=chunks)
    assert bool(chunks.starts[1:].any())

    def run(*_: th.Tensor) -> Any:
        values, log_prob, entropy = evaluated(model, given)
        return values, log_prob, entropy

    th.manual_seed(0)
    assert th.autograd.gradcheck(run, list(policy.parameters()), fast_mode=False)
