"""The duel in PettingZoo: its own tests of the interface, and that it is the world's match."""

import warnings

import numpy as np
import pytest

from aimbot_lab.adapters import duel_v0
from aimbot_lab.foundation.errors import ConfigurationError

with warnings.catch_warnings():  # its tests import an example of theirs, which is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

SHORT = {"time_limit": 3.0}


@pytest.mark.parametrize("action", ["bins", "hybrid"])
def test_pettingzoo_finds_no_fault_with_the_parallel_environment(action: str) -> None:
    parallel_api_test(duel_v0.parallel_env(action=action, **SHORT), num_cycles=1000)
    parallel_seed_test(lambda: duel_v0.parallel_env(action=action, **SHORT), num_cycles=60)


# It advises plain spaces, where these are branches and a mouse, and names with numbers.
@pytest.mark.filterwarnings("ignore:We recommend agents to be named:UserWarning")
@pytest.mark.filterwarnings("ignore:Action space for each agent probably should be:UserWarning")
@pytest.mark.parametrize("action", ["bins", "hybrid"])
def test_pettingzoo_finds_no_fault_with_the_agents_one_after_the_other(action: str) -> None:
    api_test(duel_v0.env(action=action, **SHORT), num_cycles=200)
    seed_test(lambda: duel_v0.env(action=action, **SHORT), num_cycles=60)


def test_an_opponent_of_the_world_leaves_home_as_the_only_agent() -> None:
    made = duel_v0.parallel_env(opponent="greedy", action="hybrid", **SHORT)
    assert made.possible_agents == ["home"]
    parallel_api_test(made, num_cycles=60)
    won = set()
    for seed in range(3):
        _, infos = made.reset(seed=seed)
        while made.agents:
            action = made.action_space("home").sample(mask=infos["home"]["action_mask"])
            _, _, _, _, infos = made.step({"home": action})
        won.add(infos["home"]["is_success"])
        assert infos["home"]["is_success"] == (infos["home"]["outcome"] == 1)
    assert won == {False}


def test_masks_are_shown_in_the_observation_where_that_is_asked_for() -> None:
    made = duel_v0.parallel_env(masks=True, **SHORT)
    parallel_api_test(made, num_cycles=60)
    seen, infos = made.reset(seed=1)
    for agent in made.agents:
        assert made.observation_space(agent).contains(seen[agent])
        action = made.action_space(agent).sample(mask=infos[agent]["action_mask"])
        assert made.action_space(agent).contains(action)


def test_both_agents_leave_together_and_their_rewards_are_exact_negatives() -> None:
    made = duel_v0.parallel_env(difficulty=1, time_limit=1.0, render_mode="rgb_array")
    made.reset(seed=5)
    random, steps = np.random.default_rng(2), 0
    while made.agents:
        actions = {agent: random.integers(0, (3, 3, 2, 11)) for agent in made.agents}
        _, rewards, ended, cut_off, infos = made.step(actions)
        assert rewards["home"] == -rewards["away"]
        assert ended["home"] == ended["away"]
        assert not any(cut_off.values())
        steps += 1
    assert steps == 10
    assert infos["home"]["outcome"] == -infos["away"]["outcome"]
    assert made.render().shape == (480, 480, 3)
    assert made.step({}) == ({}, {}, {}, {}, {})


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"difficulty": 6}, "difficulty must be one of 1 to 5"),
        ({"opponent": "ghost"}, "opponent must be one of still, random, greedy, aimbot"),
        ({"num_envs": 4}, "num_envs: is fixed here"),
        ({"helth": 4}, "helth"),
        ({"render_mode": "human"}, "render_mode must be rgb_array"),
    ],
)
def test_what_the_duel_does_not_have_is_refused_in_one_line(settings: dict, fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault) as refused:
        duel_v0.parallel_env(**settings)
    assert "\n" not in str(refused.value)
