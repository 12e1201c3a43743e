"""Running statistics of observations, and the running rating."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from tiny_training import ROWS, Sink, learn, plan

from aimbot_lab.training.networks.encoders import RunningScale, ScaledFeatures, moments
from aimbot_lab.training.self_play.pool import RunningRating, expected
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training

COLUMNS = 5
RUNNING = {"network": NetworkSettings(layers=(16,), scaling="running")}


def batches(count: int) -> list[np.ndarray]:
    """Rows [64, COLUMNS] whose columns differ in mean and spread; the last is constant."""
    rng = np.random.default_rng(0)
    spread = np.append(np.logspace(-2, 1, COLUMNS - 1), 0.0)
    means = np.linspace(-1.0, 2.0, COLUMNS)
    return [
        (means + spread * rng.normal(size=(64, COLUMNS)) * (k + 1)).astype(np.float32)
        for k in range(count)
    ]


class Still(gymnasium.Env[Any, Any]):
    observation_space = spaces.Box(-1, 1, (COLUMNS,), np.float32)
    action_space = spaces.Discrete(2)


def test_statistics_and_scaled_rows_are_those_of_vec_normalize() -> None:
    theirs, ours = VecNormalize(DummyVecEnv([Still]), norm_reward=False), RunningScale(COLUMNS)
    for rows in batches(6):
        theirs.obs_rms.update(rows.astype(np.float64))
        ours.fold(moments(rows))
        np.testing.assert_allclose(ours.mean, theirs.obs_rms.mean, rtol=1e-13)
        np.testing.assert_allclose(ours.variance, theirs.obs_rms.var, rtol=1e-12)
        assert ours.count.item() == theirs.obs_rms.count
        wanted = theirs.normalize_obs(rows)
        np.testing.assert_allclose(ours(th.as_tensor(rows)), wanted, rtol=1e-4, atol=1e-4)
    far = np.full((1, COLUMNS), 1e6, np.float32)
    np.testing.assert_array_equal(ours(th.as_tensor(far)), theirs.normalize_obs(far))
    assert theirs.normalize_obs(far).max() == 10.0


def test_before_anything_was_seen_columns_are_scaled_by_ranges_and_without_scaling_not_at_all() -> (
    None
):
    space = spaces.Box(np.float32([0, -5]), np.float32([47, 5]))
    rows = th.as_tensor(np.float32([[0, -5], [47, 5], [12, 3]]))
    running = ScaledFeatures(space, scaling="running")
    np.testing.assert_allclose(running(rows), ScaledFeatures(space)(rows), rtol=1e-6)
    assert th.equal(ScaledFeatures(space, scaling="none")(rows), rows)


def learned(algo: str, **train: Any) -> tuple[Training, Sink, str]:
    training, sink = Training(plan(algo, total_steps=1024, **RUNNING, **train)), Sink()
    return training, sink, learn(training, sink).state_sha256


def statistics(training: Training) -> list[RunningScale]:
    modules = training.model.policy.modules()
    return [module for module in modules if isinstance(module, RunningScale)]


@pytest.mark.parametrize("algo", ["ppo", "recurrent_ppo", "qrdqn", "hybrid_ppo"])
def test_a_network_counts_all_rollouts_but_the_last_and_repeats_itself(algo: str) -> None:
    training, _, state = learned(algo)
    found = statistics(training)
    assert len(found) == (2 if algo in ("dqn", "qrdqn") else 1)
    for scale in found:
        # 2 rollouts, and no update is made with statistics that its rollout did not have.
        assert scale.count.item() == pytest.approx(32 * ROWS + 1e-4)
        assert scale.variance.min() >= 0.0
        assert th.equal(scale.mean, found[0].mean)
    assert learned(algo)[2] == state


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo"])
def test_the_first_gradient_step_finds_the_rollouts_own_probabilities(algo: str) -> None:
    """One minibatch of the whole rollout, so that nothing has changed before it is judged."""
    _, sink, _ = learned(algo, batch_size=32 * ROWS, n_epochs=1)
    for _, metrics in sink.logged:
        assert abs(metrics["train/approx_kl"]) < 1e-6
        assert metrics["train/clip_fraction"] == 0.0


def test_the_statistics_are_those_of_what_was_seen() -> None:
    training = Training(plan("ppo", total_steps=1024, **RUNNING))
    seen, step = [], training.env.step_wait

    def watched() -> Any:
        stepped = step()
        seen.append(stepped[0].copy())
        return stepped

    reset = training.env.reset
    training.env.reset = lambda: seen.append(reset().copy()) or seen[-1]  # type: ignore[method-assign]
    training.env.step_wait = watched  # type: ignore[method-assign]
    learn(training)
    rollout = np.concatenate(seen[:32])
    low, high = training.env.observation_space.low, training.env.observation_space.high
    scaled = (rollout - low) / (high - low) * 2.0 - 1.0
    (scale,) = statistics(training)
    np.testing.assert_allclose(scale.mean, scaled.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(scale.variance, scaled.var(axis=0), atol=1e-5)


INITIAL, WINDOW, CURRENT = 1200.0, 4, -1


class GhostTrainer:
    """What ML-Agents keeps, in its own terms: one rating for each slot of the window, and one more
    for the current policy."""

    def __init__(self) -> None:
        self.policy_elos = [INITIAL] * (WINDOW + 1)
        self.snapshot_counter = 0
        self.current_opponent = CURRENT

    def save_snapshot(self) -> None:
        self.policy_elos[self.snapshot_counter] = self.policy_elos[-1]
        self.snapshot_counter = (self.snapshot_counter + 1) % WINDOW

    def end_episode(self, final_reward: float) -> None:
        result = 1.0 if final_reward > 0 else 0.0 if final_reward < 0 else 0.5
        self.policy_elos[-1] += self.compute_elo_rating_changes(self.policy_elos[-1], result)

    def compute_elo_rating_changes(self, rating: float, result: float) -> float:
        r1 = pow(10, rating / 400)
        r2 = pow(10, self.policy_elos[self.current_opponent] / 400)
        change = result - r1 / (r1 + r2)
        self.policy_elos[self.current_opponent] -= change
        return change


def test_the_running_rating_is_that_of_a_transcription_to_the_last_digit() -> None:
    rng = np.random.default_rng(1)
    theirs, ours = GhostTrainer(), RunningRating(INITIAL)
    names: list[str] = []
    for game in range(2_000):
        if game % 100 == 0:
            theirs.save_snapshot()
            names.append(f"snapshot-{len(names):06d}")
            ours.take(names[-1])
        place = int(rng.integers(max(0, len(names) - WINDOW), len(names)))
        theirs.current_opponent = place % WINDOW
        result = float(rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.2, 0.6]))
        theirs.end_episode(result)
        ours.add(names[place], (result + 1) / 2)
        assert ours.learner == theirs.policy_elos[-1]
    assert ours.learner > INITIAL + 50
    for place in range(len(names) - WINDOW, len(names)):
        opponents = ours.state()["opponents"]
        assert opponents[names[place]] == theirs.policy_elos[place % WINDOW]


def test_a_rating_goes_on_from_its_state_and_has_an_expectation_however_large_it_is() -> None:
    one, other = RunningRating(INITIAL), RunningRating(0.0)
    one.take("a")
    one.add("a", 1.0)
    one.add("greedy", 0.5)
    other.resume(one.state())
    for rating in (one, other):
        rating.add("a", 0.0)
    assert other.state() == one.state()
    other.add("a", 1.0)
    assert other.state() != one.state()
    for far in (1e6, -1e6):
        assert expected(far, far) == 0.5
        assert expected(far, far - 400.0) == pytest.approx(10 / 11)
        assert (expected(far, -far) > 0.5) == (far > 0)
