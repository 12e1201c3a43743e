"""Players of an agent: whose random numbers they use."""

import numpy as np
import pytest
import torch as th

from aimbot_lab.evaluation.temperature import LIKELIEST, SAMPLED, Temperature
from aimbot_lab.foundation.world import BatchWorld, Float32Array, Scenario, new_step_buffers
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.settings import NetworkSettings, TrainSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import make_world

TRAIN = TrainSettings(network=NetworkSettings(layers=(8,)))


@pytest.fixture(scope="module")
def world() -> BatchWorld:
    world = make_world(ArenaSettings(num_envs=8))
    world.set_scenario(Scenario({"free": 1.0}))
    return world


@pytest.fixture(scope="module")
def agent(world: BatchWorld) -> Agent:
    th.manual_seed(1)
    return Agent(new_policy(TRAIN, world.spec), world.spec, TRAIN)


def actions(
    agent: Agent, world: BatchWorld, *, seed: int, temperature: Temperature
) -> Float32Array:
    player = agent.player(world, temperature=temperature, seed=seed)
    buffers = new_step_buffers(world.num_envs, len(world.spec.observation_names))
    world.reset(5, buffers.observations)
    taken = []
    starts = np.ones(world.num_envs, np.bool_)
    for _ in range(5):
        taken.append(player(buffers.observations, starts))
        world.step(taken[-1], buffers)
        starts = buffers.finished.copy()
    return np.stack(taken)


def test_sampled_actions_follow_from_the_players_seed(agent: Agent, world: BatchWorld) -> None:
    one, again, other = (actions(agent, world, seed=s, temperature=SAMPLED) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert len(np.unique(one[:, 0], axis=0)) > 1  # each step draws anew
    assert not np.array_equal(one, other)


def test_the_likeliest_actions_know_no_seed(agent: Agent, world: BatchWorld) -> None:
    one, other = (actions(agent, world, seed=s, temperature=LIKELIEST) for s in (1, 2))
    np.testing.assert_array_equal(one, other)


def test_a_player_leaves_torchs_random_numbers_to_the_training(
    agent: Agent, world: BatchWorld
) -> None:
    th.manual_seed(3)
    undisturbed = th.rand(4)
    th.manual_seed(3)
    actions(agent, world, seed=1, temperature=SAMPLED)
    assert th.equal(th.rand(4), undisturbed)
