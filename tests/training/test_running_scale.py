"""Running statistics of observations, and the running rating."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from tiny_training import ROWS, Sink, plan

from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.networks.encoders import RunningScale, ScaledFeatures, moments
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.self_play.pool import RunningRating, expected
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training

COLUMNS = 5
RUNNING = {"network": NetworkSettings(layers=(16,), scaling="running")}


def batches(count: int, columns: int = COLUMNS) -> list[np.ndarray]:
    """Rows [64, columns] whose columns differ in mean and spread; the last is constant."""
    rng = np.random.default_rng(0)
    spread = np.append(np.logspace(-2, 1, columns - 1), 0.0)
    means = np.linspace(-1.0, 2.0, columns)
    return [
        (means + spread * rng.normal(size=(64, columns)) * (k + 1)).astype(np.float32)
        for k in range(count)
    ]


def vec_normalize(columns: int) -> VecNormalize:
    import gymnasium

    class Still(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (columns,), np.float32)
        action_space = spaces.Discrete(2)

    return VecNormalize(DummyVecEnv([Still]), norm_reward=False)


def test_statistics_and_scaled_rows_are_those_of_vec_normalize() -> None:
    theirs, ours = vec_normalize(COLUMNS), RunningScale(COLUMNS)
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


def test_before_anything_was_seen_columns_are_scaled_by_their_ranges() -> None:
    space = spaces.Box(np.float32([0, -5]), np.float32([47, 5]))
    rows = th.as_tensor(np.float32([[0, -5], [47, 5], [12, 3]]))
    running = ScaledFeatures(space, scaling="running")
    np.testing.assert_allclose(running(rows), ScaledFeatures(space)(rows), rtol=1e-6)


def test_without_scaling_networks_see_raw_observations() -> None:
    rows = th.as_tensor(np.float32([[0, -5], [47, 5], [12, 3]]))
    space = spaces.Box(np.float32([0, -5]), np.float32([47, 5]))
    assert th.equal(ScaledFeatures(space, scaling="none")(rows), rows)


def test_loaded_statistics_are_used() -> None:
    first, second = RunningScale(COLUMNS), RunningScale(COLUMNS)
    for rows in batches(2):
        first.fold(moments(rows))
    assert {*first.state_dict()} == {"mean", "variance", "count"}
    second.load_state_dict(first.state_dict())
    rows = th.as_tensor(batches(3)[2])
    assert th.equal(first(rows), second(rows))
    assert not th.equal(first(rows), RunningScale(COLUMNS)(rows))


def learned(algo: str, **train: Any) -> tuple[Training, Sink, str]:
    training, sink = Training(plan(algo, **{**RUNNING, **train})), Sink()
    outcome = training.learn(sink, SilentObserver(), lambda: False)
    return training, sink, outcome.state_sha256


def statistics(training: Training) -> list[RunningScale]:
    modules = training.model.policy.modules()
    return [module for module in modules if isinstance(module, RunningScale)]


@pytest.mark.parametrize("algo", ["ppo", "recurrent_ppo", "qrdqn", "hybrid_ppo"])
def test_a_network_counts_all_rollouts_but_the_last_and_repeats_itself(
    algo: str,
) -> None:
    training, _, state = learned(algo, total_steps=1024)
    found = statistics(training)
    assert len(found) == (2 if algo in ("dqn", "qrdqn") else 1)
    for scale in found:
        # 2 rollouts, and no update is made with statistics that its rollout did not have.
        assert scale.count.item() == pytest.approx(32 * ROWS + 1e-4)
        assert scale.variance.min() >= 0.0
        assert th.equal(scale.mean, found[0].mean)
    assert learned(algo, total_steps=1024)[2] == state


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo"])
def test_the_first_gradient_step_finds_the_rollouts_own_probabilities(algo: str) -> None:
    """One minibatch of the whole rollout, so that nothing has changed before it is judged."""
    _, sink, _ = learned(algo, total_steps=1024, batch_size=32 * ROWS, n_epochs=1)
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
    training.learn(Sink(), SilentObserver(), lambda: False)
    rollout = np.concatenate(seen[:32])
    low, high = training.env.observation_space.low, training.env.observation_space.high
    scaled = (rollout - low) / (high - low) * 2.0 - 1.0
    (scale,) = statistics(training)
    np.testing.assert_allclose(scale.mean, scaled.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(scale.variance, scaled.var(axis=0), atol=1e-5)


def test_a_saved_agent_keeps_its_statistics_and_changes_them_no_more(tmp_path: Path) -> None:
    training, _, _ = learned("hybrid_ppo", total_steps=1024, masks=True, aim="hybrid")
    training.save_agents(tmp_path)
    loaded = load_agent(tmp_path / "last")
    shown = training.env.reset()
    expected, _ = training.model.predict(shown, deterministic=True)
    training.env.step_async(expected)
    raw = shown[:, : len(training.env.world.spec.observation_names)]
    masks = shown[:, raw.shape[1] :] > 0.5
    actions, _ = loaded.agent.choose(raw, temperature=LIKELIEST, branch_masks=masks)
    np.testing.assert_array_equal(actions, training.env._actions)
    kept = loaded.agent.policy.state_dict()
    for name, value in training.model.policy.state_dict().items():
        assert th.equal(kept[name], value)


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
        result = 0.5
        if final_reward > 0:
            result = 1.0
        elif final_reward < 0:
            result = 0.0
        change = self.compute_elo_rating_changes(self.policy_elos[-1], result)
        self.policy_elos[-1] += change

    def compute_elo_rating_changes(self, rating: float, result: float) -> float:
        opponent_rating = self.policy_elos[self.current_opponent]
        r1 = pow(10, rating / 400)
        r2 = pow(10, opponent_rating / 400)
        summed = r1 + r2
        e1 = r1 / summed
        change = result - e1
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


def test_it_goes_on_from_its_state() -> None:
    one, other = RunningRating(INITIAL), RunningRating(0.0)
    one.take("a")
    one.add("a", 1.0)
    one.add("greedy", 0.5)
    other.resume(one.state())
    one.add("a", 0.0)
    other.add("a", 0.0)
    assert other.state() == one.state()
    other.add("a", 1.0)
    assert other.state() != one.state()


@pytest.mark.parametrize("far", [1e6, -1e6])
def test_ratings_too_large_for_powers_of_ten_have_an_expectation(far: float) -> None:
    assert expected(far, far) == 0.5
    assert expected(far, far - 400.0) == pytest.approx(10 / 11)
    assert (expected(far, -far) > 0.5) == (far > 0)
