"""The fused engine with a memory: its states, updates and gradients against those by torch."""

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from fused_gradients import apart, autograds, fused_gradient_of
from guessing import ROWS, STEPS, learned, new_model
from recall_world import RecallVecEnv

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.remembering_policy import MemoryShape, RememberingPolicy

pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
SIZE, LENGTH = 7, 16  # with units to make lanes whole


def memory(length: int = LENGTH, **given: Any) -> dict[str, Any]:
    """Arguments of a model with a memory; a piece of samples and a rest in each minibatch."""
    policy = {"net_arch": [16], "memory": MemoryShape(SIZE, length)}
    return {"policy_kwargs": policy, "batch_size": 320, **given}


@pytest.mark.parametrize("length", [1, LENGTH, STEPS])
def test_the_gradient_is_autograds_for_chunks_of_any_length(length: int) -> None:
    """Far enough from the rollout for ratios to be clipped."""
    given = memory(length, learning_rate=0.02, objective="per_branch")
    model = learned("fused", "hybrid", masked=True, **given)
    assert model.rollout_buffer.episode_starts[1:].any()
    assert apart(fused_gradient_of(model), autograds(model)) < 1e-6


def test_the_gradient_is_autograds_wherever_an_episode_begins() -> None:
    model = learned("fused", "hybrid", **memory(n_epochs=1))
    rollout, whole = copy.deepcopy(model.rollout_buffer), fused_gradient_of(model)
    for reset in (0, 1, LENGTH - 1):
        model.rollout_buffer = buffer = copy.deepcopy(rollout)
        buffer.episode_starts[:] = 0.0
        buffer.episode_starts[reset::LENGTH] = 1.0
        found = fused_gradient_of(model)
        assert apart(found, autograds(model)) < 1e-6
        assert apart(found, whole) > 1e-4


def test_the_states_of_a_rollout_are_those_of_torchs_lstm() -> None:
    model = new_model("fused", "hybrid", **memory())
    policy: Any = model.policy
    model.learn(STEPS * ROWS)  # so that no bias is 0
    cell = policy.memory.cell
    lstm = th.nn.LSTM(cell.input_size, SIZE)
    lstm.load_state_dict({f"{name}_l0": weight for name, weight in cell.state_dict().items()})
    random = np.random.default_rng(0)
    seen = random.uniform(-1, 1, (9, ROWS, cell.input_size)).astype(np.float32)
    starts = (random.random((9, ROWS)) < 0.3).astype(np.float32)
    steps = iter(starts)
    model.engine.actor.begin(9, ROWS)
    policy.rollout.begin(lambda: next(steps))
    hidden, cells = policy.rollout.state.transpose(0, 1)[:, None]
    for step in range(9):
        kept = 1.0 - th.as_tensor(starts[step])[None, :, None]
        with th.no_grad():
            output, (hidden, cells) = lstm(
                th.as_tensor(seen[step])[None], (hidden * kept, cells * kept)
            )
        model.engine.actor.act(th.as_tensor(seen[step]))
        th.testing.assert_close(policy.rollout.state[:, 0], output[0], rtol=0, atol=1e-6)
        th.testing.assert_close(policy.rollout.state[:, 1], cells[0], rtol=0, atol=1e-6)


def test_what_was_shown_is_recalled() -> None:
    th.set_num_threads(1)
    env = RecallVecEnv(32, 3)
    model = HybridPPO(
        RememberingPolicy,
        env,
        policy_kwargs={"net_arch": [16], "memory": MemoryShape(16, 8)},
        engine="fused",
        seed=1,
        device="cpu",
        gamma=0.9,
        n_steps=16,
        batch_size=128,
        n_epochs=4,
        learning_rate=5e-3,
    )
    model.learn(25 * 32 * 16)
    assert np.mean(env.won[-400:]) > 0.95


UNSUITED: list[tuple[dict[str, Any], str]] = [
    ({"memory": MemoryShape(1025, LENGTH)}, "more than 1024 units"),
    ({"net_arch": {"pi": [8], "vf": [16]}}, "same layers"),
]


@pytest.mark.parametrize(("given", "reason"), UNSUITED, ids=str)
def test_a_memory_that_it_does_not_know_is_refused_by_name_and_auto_leaves_it_to_torch(
    given: dict[str, Any], reason: str
) -> None:
    policy = {**memory()["policy_kwargs"], **given}
    with pytest.raises(ValueError, match=rf"engine fused: .*{reason}"):
        new_model("fused", "hybrid", **memory(policy_kwargs=policy))
    assert new_model("auto", "hybrid", **memory(policy_kwargs=policy)).engine.name == "torch"
    assert new_model("auto", "hybrid", **memory()).engine.name == "fused"
