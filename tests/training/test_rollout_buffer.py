"""The rollout buffer of our own PPO."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.algorithms.buffers import HybridRolloutBuffer

STEPS, ROWS = 7, 5
SEEN = spaces.Box(-1.0, 1.0, (3,), np.float32)
ACTIONS = {
    "choices": spaces.MultiDiscrete([3, 2]),
    "one choice": spaces.Discrete(4),
    "columns": spaces.Box(-1.0, 1.0, (2,), np.float32),
}
FIELDS = [
    "observations",
    "actions",
    "rewards",
    "episode_starts",
    "values",
    "log_probs",
    "advantages",
    "returns",
]


def fill(buffer: RolloutBuffer, seed: int, *, branches: int | None = None) -> None:
    """A rollout of random numbers."""
    rng, width = np.random.default_rng(seed), buffer.action_dim
    buffer.reset()
    for _ in range(STEPS):
        log_probs = rng.normal(size=ROWS if branches is None else (ROWS, branches))
        buffer.add(
            rng.normal(size=(ROWS, 3)).astype(np.float32),
            rng.integers(2, size=(ROWS, width)),
            rng.normal(size=ROWS).astype(np.float32),
            rng.random(ROWS) < 0.3,
            th.tensor(rng.normal(size=(ROWS, 1)), dtype=th.float32),
            th.tensor(log_probs, dtype=th.float32),
        )
    last = th.tensor(rng.normal(size=(ROWS, 1)), dtype=th.float32)
    buffer.compute_returns_and_advantage(last, rng.random(ROWS) < 0.3)


@pytest.mark.parametrize("used", [False, True], ids=["as it was filled", "after its samples"])
@pytest.mark.parametrize("space", ACTIONS)
def test_every_rollout_is_what_stable_baselines3_keeps(space: str, used: bool) -> None:
    theirs, ours = (
        kind(STEPS, SEEN, ACTIONS[space], device="cpu", n_envs=ROWS)
        for kind in (RolloutBuffer, HybridRolloutBuffer)
    )
    for seed in range(3):
        for buffer in (theirs, ours):
            fill(buffer, seed)
            assert buffer.full
            if used:
                np.random.seed(seed)
                list(buffer.get(4))
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


def test_a_new_rollout_is_written_over_the_last_one() -> None:
    buffer = HybridRolloutBuffer(STEPS, SEEN, ACTIONS["choices"], device="cpu", n_envs=ROWS)
    fill(buffer, 0)
    before = buffer.observations
    buffer.reset()
    assert buffer.observations is before
    assert not buffer.full
    assert buffer.pos == 0


def test_log_probabilities_of_branches_come_out_with_their_samples() -> None:
    buffer = HybridRolloutBuffer(
        STEPS, SEEN, ACTIONS["choices"], device="cpu", n_envs=ROWS, branches=2
    )
    fill(buffer, 0, branches=2)
    kept = buffer.log_probs.copy()
    data = next(buffer.get(None))
    order = np.lexsort(kept.reshape(-1, 2).T)
    found = data.old_log_prob.numpy()
    np.testing.assert_array_equal(found[np.lexsort(found.T)], kept.reshape(-1, 2)[order])
