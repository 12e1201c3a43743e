"""Every algorithm that a curriculum can name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sb3_contrib import QRDQN, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from tiny_training import ROWS, Sink, plan

from aimbot_lab.evaluation.temperature import LIKELIEST, SAMPLED
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.checks import HYPER_PARAMETERS
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import AIM_BINS, FEW_AIM_BINS
from aimbot_lab.training.settings import TrainSettings as Train
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import make_world

CLASSES = {
    **{"ppo": PPO, "maskable_ppo": MaskablePPO, "recurrent_ppo": RecurrentPPO, "trpo": TRPO},
    **{"dqn": DQN, "a2c": A2C, "qrdqn": QRDQN, "hybrid_ppo": HybridPPO},
}


@pytest.mark.parametrize("algo", CLASSES)
def test_an_algorithm_trains_reports_and_its_saved_agent_acts_the_same(
    algo: str, tmp_path: Path
) -> None:
    training, sink = Training(plan(algo, total_steps=1024)), Sink()
    training.learn(sink, SilentObserver(), lambda: False)
    assert type(training.model) is CLASSES[algo]
    assert training.model.num_timesteps == 1024
    step, metrics = sink.logged[-1]
    assert step == 1024
    assert any(name.startswith("train/") for name in metrics), sorted(metrics)
    assert set(training.save_agents(tmp_path)) == {"last", "best"}
    loaded = load_agent(tmp_path / "last")
    observations = training.env.reset()
    expected, _ = training.model.predict(observations, deterministic=True)
    training.env.step_async(expected)
    np.testing.assert_array_equal(
        loaded.agent.act(observations, temperature=LIKELIEST), training.env._actions
    )
    assert loaded.train == training.plan.train


def test_every_hyper_parameter_means_something_to_some_algorithm() -> None:
    taken = {key for one in ALGORITHMS.values() for key in {*one.shared, *one.derived}}
    assert taken == HYPER_PARAMETERS


def test_a_replay_buffer_holds_the_training_if_that_fits() -> None:
    space = Training(plan("dqn")).env.observation_space
    arguments = ALGORITHMS["dqn"].model_arguments(plan("dqn").train, space, ROWS)
    assert arguments["buffer_size"] == 3072
    assert arguments["train_freq"] == 32
    assert arguments["gradient_steps"] == 32 * ROWS // 128
    long = plan("dqn", total_steps=10**9).train
    size = ALGORITHMS["dqn"].model_arguments(long, space, ROWS)["buffer_size"]
    assert size * 2 * space.shape[0] * 4 <= 256 * 2**20
    own = plan("dqn", options={"buffer_size": 77}).train
    assert ALGORITHMS["dqn"].model_arguments(own, space, ROWS)["buffer_size"] == 77


def test_one_choice_of_all_gets_fewer_aim_bins_unless_told() -> None:
    assert Train(algo="dqn").aim_bins == FEW_AIM_BINS
    assert Train(algo="dqn", aim_bins=list(AIM_BINS)).aim_bins == AIM_BINS
    assert Train(algo="ppo").aim_bins == AIM_BINS


def test_what_a_class_refuses_is_a_fault_of_configuration() -> None:
    broken = plan("recurrent_ppo", options={"shared_lstm": True})
    with pytest.raises(ConfigurationError, match="recurrent_ppo refuses this: You must choose"):
        Training(broken)


def test_a_masked_player_never_takes_what_the_world_masks() -> None:
    training = Training(plan("maskable_ppo"))
    settings = replace(training.plan.env, num_envs=64)
    world = make_world(settings)
    world.set_scenario(Scenario({"attack": 1.0}))
    player = Agent(training.model.policy, world.spec, training.plan.train).player(
        world, temperature=SAMPLED
    )
    buffers = new_step_buffers(64, len(world.spec.observation_names))
    masks = np.ones((64, 8), np.bool_)
    world.reset(3, buffers.observations)
    masked, starts = 0, np.ones(64, np.bool_)
    for _ in range(60):
        actions = player(buffers.observations, starts)
        world.action_masks(masks)
        masked += int((~masks).sum())
        for branch, first in enumerate((0, 3, 6)):
            assert masks[np.arange(64), first + actions[:, branch].astype(int)].all()
        world.step(actions, buffers)
        starts = buffers.finished.copy()
    assert masked > 100


def test_a_player_forgets_where_an_episode_begins() -> None:
    training = Training(plan("recurrent_ppo"))
    world = make_world(training.plan.env)
    world.set_scenario(Scenario({"goto": 1.0}))
    agent = Agent(training.model.policy, world.spec, training.plan.train)
    player = agent.player(world, temperature=LIKELIEST)
    buffers = new_step_buffers(ROWS, len(world.spec.observation_names))
    world.reset(3, buffers.observations)
    starts = np.ones(ROWS, np.bool_)
    while not buffers.finished.any():
        world.step(player(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
    seen = buffers.observations.copy()
    began = buffers.finished.copy()
    player(seen, began)
    state = player._state[0]
    fresh = agent.choose(seen, temperature=LIKELIEST)[1][0]
    np.testing.assert_array_equal(state[:, began], fresh[:, began])
    assert not np.allclose(state[:, ~began], fresh[:, ~began])


def test_a_switched_agent_plays_as_it_was_trained(tmp_path: Path) -> None:
    switches = {"aim": "hybrid", "masks": True, "objective": "per_branch", "dual_clip": 3.0}
    training = Training(plan("hybrid_ppo", total_steps=1024, **switches))
    training.learn(Sink(), SilentObserver(), lambda: False)
    training.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    shown = training.env.reset()
    expected, _ = training.model.predict(shown, deterministic=True)
    training.env.step_async(expected)
    masks = np.ones((ROWS, 8), np.bool_)
    training.env.world.action_masks(masks)
    raw = shown[:, : len(training.env.world.spec.observation_names)]
    actions, _ = agent.choose(raw, branch_masks=masks, temperature=LIKELIEST)
    np.testing.assert_allclose(actions, training.env._actions, rtol=1e-6)
    assert agent.act(raw).shape == (ROWS, 4)


def test_masks_shown_are_the_worlds() -> None:
    training = Training(plan("hybrid_ppo", masks=True))
    adapter = training.env
    adapter.world.set_scenario(Scenario({"attack": 1.0}))
    masks = np.ones((ROWS, 8), np.bool_)
    shown, masked = adapter.reset(), 0
    for _ in range(40):
        adapter.world.action_masks(masks)
        np.testing.assert_array_equal(shown[:, -8:], masks)
        shown, _, finished, infos = adapter.step(np.tile([1, 0, 1, 5], (ROWS, 1)))
        masked += int((shown[:, -1] == 0.0).sum())
        for row in np.flatnonzero(finished):
            assert infos[row]["terminal_observation"].shape == shown[row].shape
    assert masked > ROWS


def test_hybrid_ppo_with_nothing_switched_on_is_ppo() -> None:
    states = {
        Training(plan(algo, total_steps=1024, **more))
        .learn(Sink(), SilentObserver(), lambda: False)
        .state_sha256
        for algo, more in (("ppo", {}), ("hybrid_ppo", {"engine": "torch"}))
    }
    assert len(states) == 1


def test_every_number_of_ppo_reaches_its_class() -> None:
    names = "n_steps batch_size n_epochs learning_rate gamma gae_lambda clip_range ent_coef vf_coef"
    train = plan("ppo").train
    wanted = [*names.split(), "max_grad_norm", "normalize_advantage"]
    given = ALGORITHMS["ppo"].model_arguments(train, None, ROWS)
    assert given == {name: getattr(train, name) for name in wanted}
