"""Q-learning with a table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_training import Keeper, Sink, learn

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.registry import Q_LEARNING
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checks import known_options
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.settings import TrainingPlan, TrainSettings
from aimbot_lab.training.tabular.core.q_values import (
    choose_actions,
    learn_step,
    write_best,
    write_states,
)
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gorge.settings import GorgeRewardWeights, GorgeSettings
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.registry import make_world, spec_of, type_of

FEATURES = ("position", "list_treasure")
GORGE = GorgeSettings(
    num_envs=16,
    max_steps=140,
    features=FEATURES,
    treasure_pool=(0, 1, 5),
    rewards=GorgeRewardWeights(distance=1.0),
)
LAKE = GymnasiumSettings(
    id="FrozenLake-v1", kwargs={"is_slippery": False}, win=WinRule(return_above=0.5), num_envs=8
)
HOLES, GOAL = {5, 7, 11, 12}, 15
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))  # of the lake's actions: left, down, right, up


def plan(env: Any = GORGE, target: str = "walk", **train: Any) -> TrainingPlan:
    settings = TrainSettings(**{"algo": "q_learning", "total_steps": 2048, "n_steps": 16, **train})
    return TrainingPlan(1, env, (Lesson(name="one", targets={target: 1.0}),), settings)


def learned(training: Training, keeper: Any = None) -> str:
    links = RunLinks(checkpoints=keeper)
    return learn(training, links=links).state_sha256


def after(cell: int, action: int) -> int:
    row, column = divmod(cell, 4)
    down, right = MOVES[action]
    return 4 * min(max(row + down, 0), 3) + min(max(column + right, 0), 3)


def best_lake_values(gamma: float) -> np.ndarray:
    """[16, 4] by value iteration; 0 where the game is over."""
    values = np.zeros((16, 4))
    for _ in range(50):
        for cell in set(range(16)) - HOLES - {GOAL}:
            for action in range(4):
                there = after(cell, action)
                values[cell, action] = there == GOAL or gamma * values[there].max()
    return values


def test_a_table_of_a_frozen_lake_converges_to_value_iterations() -> None:
    given = {"gamma": 0.9, "learning_rate": 1.0, "reward_scale": 1.0, "total_steps": 10_000}
    training = Training(plan(LAKE, "task", **given, options={"exploration_final_eps": 1.0}))
    learned(training)
    np.testing.assert_allclose(training.model.policy.values, best_lake_values(0.9), atol=1e-6)


def test_a_value_moves_by_the_learning_rate_to_reward_and_discounted_best_value() -> None:
    values = np.array([[1.0, 2.0], [5.0, 3.0]], np.float32)
    states, actions = np.array([0, 0]), np.array([1, 0])
    rewards = np.array([10.0, 4.0], np.float32)
    moved = states, actions, rewards, np.array([1, 1]), np.array([False, True])
    error = learn_step(values, moved, 0.5, 0.8)
    np.testing.assert_allclose(values, [[2.5, 8.0], [5.0, 3.0]])
    assert error == pytest.approx((12.0**2 + 3.0**2) / 2)


def test_what_is_cut_off_is_bootstrapped_and_what_ended_is_not() -> None:
    training = Training(plan())
    model = training.model
    learn(training, should_stop=lambda: True)
    last = model._last_obs[3].copy()
    finished = np.zeros(16, np.bool_)
    finished[[3, 7]] = True
    infos: list[dict[str, Any]] = [{} for _ in range(16)]
    for row in (3, 7):
        infos[row] = {"TimeLimit.truncated": row == 3, "terminal_observation": last}
    terminated = model._without_cut_off(finished, infos)
    assert np.flatnonzero(terminated).tolist() == [7]
    number = np.zeros(1, np.int64)
    model.policy.state_numbers(last[None], number)
    assert model._rows.next_states[3] == number[0]


def test_exploration_takes_any_action_alike_and_ties_are_broken_alike() -> None:
    count = 40_000
    states, actions = np.zeros(count, np.int64), np.zeros(count, np.int64)
    best = np.array([[0.0, 1.0, 0.0, 1.0]], np.float32)
    choose_actions(best, states, 0.2, (np.uint64(7), 0), actions)
    shares = np.bincount(actions, minlength=4) / count
    np.testing.assert_allclose(shares, [0.05, 0.45, 0.05, 0.45], atol=0.01)
    again = np.zeros(count, np.int64)
    choose_actions(best, states, 0.2, (np.uint64(7), 1), again)
    assert (again != actions).mean() > 0.4
    write_best(best, states, actions)
    assert (actions == 1).all()


def test_exploration_falls_in_a_line_over_its_share_of_the_steps() -> None:
    options = {"exploration_fraction": 0.5, "exploration_final_eps": 0.1}
    training, sink = Training(plan(options=options)), Sink()
    learn(training, sink)
    told = {step: metrics["train/exploration_rate"] for step, metrics in sink.logged if step}
    wanted = {step: max(0.1, 1.0 - 0.9 * (step - 16) / 1024) for step in told}
    assert told == pytest.approx(wanted)
    assert len(told) == 8


def test_every_cell_and_set_of_treasures_has_a_state_of_its_own_and_nothing_leaves_the_table() -> (
    None
):
    features = ("pos_row", "treasure", "pos_col", "steps_left")
    world: Any = make_world(replace(GORGE, features=features, max_steps=2000, num_envs=64))
    states = world.spec.states
    assert states.size == int((~world.maps[0].walls).sum()) * 8
    world.set_scenario(Scenario({"collect": 1.0, "walk": 1.0}))
    buffers, random = step_buffers(world), np.random.default_rng(1)
    world.reset(1, buffers.observations)
    numbers, met = np.zeros(64, np.int64), {}
    for _ in range(400):
        world.step(random.integers(0, 4, (64, 1)).astype(np.float32), buffers)
        write_states(buffers.observations, states, numbers)
        seen = zip(numbers.tolist(), world.state.x, world.state.z, world.state.left, strict=True)
        for number, *place in seen:
            assert met.setdefault(number, tuple(place)) == tuple(place)
            assert 0 <= number < states.size
    assert len(set(met.values())) == len(met) > 200
    states, numbers = spec_of(GORGE).states, np.full(500, -1)
    assert states is not None
    wild = random.uniform(-1e6, 1e6, (500, 12)).astype(np.float32)
    write_states(wild, states, numbers)
    assert ((numbers >= 0) & (numbers < states.size)).all()


def test_from_any_checkpoint_the_table_ends_as_the_unbroken_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    keeper = Keeper()
    unbroken = learned(Training(plan()), keeper)
    assert [one.step for one in keeper.checkpoints] == list(range(0, 2049, 256))
    for checkpoint in (keeper.checkpoints[0], keeper.checkpoints[5]):
        training = Training(plan())
        training.resume(checkpoint.state)
        np.random.seed(99)
        assert learned(training) == unbroken
    assert learned(Training(replace(plan(), seed=2))) != unbroken


def test_a_saved_table_plays_as_it_was_learned_and_is_checked(tmp_path: Path) -> None:
    training = Training(plan())
    learned(training)
    kept = training._best.weights
    assert kept is not None
    before = kept["table"].clone()
    training.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    observations = training.env.reset()
    chosen, _ = training.model.predict(observations, deterministic=True)
    np.testing.assert_array_equal(agent.act(observations, temperature=LIKELIEST)[:, 0], chosen)
    assert len(set(chosen.tolist())) > 1
    training.model.policy.values[:] = 7.0  # the best table is not the one that goes on learning
    assert (kept["table"] == before).all()
    file = tmp_path / "last" / "agent.safetensors"
    save_file({"table": load_file(file)["table"][:-1]}, file)
    with pytest.raises(LabError, match="larger than the weights in the file"):
        load_agent(tmp_path / "last")


CURRICULUM = """name: table
env: {{{env}}}
lessons: [{{name: one, targets: {{{target}: 1}}}}]
train: {{algo: q_learning{train}}}
"""


def faults(tmp_path: Path, env: str, *, target: str = "score", train: str = "") -> list[str]:
    path = tmp_path / "table.yaml"
    path.write_text(CURRICULUM.format(env=env, target=target, train=train), encoding="utf-8")
    try:
        load_curriculum(path)
    except ConfigurationError as error:
        return list(error.faults)
    return []


def test_a_world_without_numbered_states_is_refused_in_a_line(tmp_path: Path) -> None:
    known = "features: [position, list_treasure]"
    for env, target, what in (
        (
            f"gorge, map: {{generate: {{count: 2}}}}, {known}",
            "score",
            "one map (env.map generates 2)",
        ),
        (
            "gorge, features: [pos_row, list_treasure]",
            "score",
            "the features position and list_treasure",
        ),
        ("arena", "goto", "a world whose states are numbered (arena has none)"),
    ):
        (line,) = faults(tmp_path, f"world: {env}", target=target)
        assert line.endswith(f"q_learning needs {what}")
    assert type_of(LAKE).states_fault(LAKE) is None
    with pytest.raises(ConfigurationError, match="numbered"):
        Training(plan(replace(GORGE, features=("position",))))


def test_options_are_those_of_exploration_alone() -> None:
    names = {"exploration_fraction", "exploration_initial_eps", "exploration_final_eps"}
    assert set(known_options(Q_LEARNING)) - {"tensorboard_log"} == names
    for options in ({"exploration_fraction": 0.0}, {"exploration_final_eps": 2.0}):
        with pytest.raises(ConfigurationError, match="q_learning refuses this: exploration"):
            Training(plan(options=options))


def test_a_table_moves_by_half_where_no_learning_rate_is_given() -> None:
    assert plan().train.learning_rate == 0.5
    assert plan(learning_rate=0.001).train.learning_rate == 0.001
    assert TrainSettings(algo="ppo").learning_rate == 0.001


def test_settings_of_networks_are_refused(tmp_path: Path) -> None:
    env = "world: gorge, features: [position, list_treasure]"
    lines = faults(tmp_path, env, train=", batch_size: 64, network: {layers: [8]}")
    assert [line.partition("train.")[2] for line in lines] == [
        f"{key}: has no effect with q_learning: leave it out" for key in ("batch_size", "network")
    ]
    assert faults(tmp_path, env) == []
