"""Gymnasium environments made by id and by keywords, and what is refused of these."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from played_envs import GOTO

from aimbot_lab.adapters.gymnasium_env import WorldEnv
from aimbot_lab.adapters.registered_envs import RegisteredEnv, RegisteredVectorEnv, register_ids
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from tests.installed import said_by

register_ids()


def test_an_id_is_known_with_the_module_in_front_and_once_that_is_imported() -> None:
    code = """
import gymnasium
for module in ("aimbot_lab.envs:", ""):
    env = gymnasium.make(f"{module}aimbot_lab/Goto-v0")
    env.reset(seed=0)
    many = gymnasium.make_vec(f"{module}aimbot_lab/Mix-v0", num_envs=64, time_limit=1.0)
    many.reset(seed=0)
    for _ in range(10):
        many.step(many.action_space.sample())
    assert type(many).__name__ == "RegisteredVectorEnv", many
    print(env.step(env.action_space.sample())[0].shape, many.num_envs)
"""
    assert said_by("-c", code) == "(51,) 64\n" * 2


def test_the_package_itself_neither_loads_gymnasium_nor_changes_how_modules_are_found() -> None:
    code = """
import sys
before = list(sys.meta_path)
import aimbot_lab
print("gymnasium" in sys.modules, sys.meta_path == before)
"""
    assert said_by("-c", code) == "False True\n"


def test_a_spec_that_went_through_json_makes_the_same_environment() -> None:
    settings = ArenaSettings(time_limit=2.0, mouse_limit=2.5)
    env = gymnasium.make("aimbot_lab/Attack-v0", settings=settings, render_mode="rgb_array")
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.world.settings == env.unwrapped.world.settings
    np.testing.assert_array_equal(env.reset(seed=9)[0], again.reset(seed=9)[0])


def test_keywords_win_over_settings_and_the_scenario_over_the_ids() -> None:
    settings = ArenaSettings(num_envs=9, time_limit=2.0, mouse_limit=3.0)
    scenario = Scenario({"attack": 1.0}, {"attack": (0.0, 0.0, 1.0, 0.0, 0.0)})
    options = {"settings": settings, "mouse_limit": 4.0, "scenario": scenario}
    vector = gymnasium.make_vec("aimbot_lab/Goto-v0", num_envs=2, **options)
    chosen = vector.unwrapped.world.settings
    assert (chosen.num_envs, chosen.time_limit, chosen.mouse_limit) == (2, 2.0, 4.0)
    vector.reset(seed=0)
    assert vector.unwrapped.world.state.difficulty.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"mouse_limt": 2.0}, "mouse_limt"),
        ({"settings": {"time_limit": -1}}, "time_limit"),
        ({"action": "discrete"}, "bins or hybrid"),
        ({"aim_bins": (-9.0, 9.0)}, "mouse limit"),
        ({"aim_bins": "far"}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": (-1.0, 1.0), "action": "hybrid"}, "aim_bins: action=.hybrid."),
        ({"settings": 5}, "settings must be"),
        (
            {"settings": {"world": "mars"}},
            "world: must be arena, duel, gorge, gymnasium, pettingzoo or unity .got 'mars'.",
        ),
        ({"difficulty": {"goto": (1, 0, 0, 0, 0)}}, "difficulty: give it as scenario="),
        ({"scenario": "goto"}, "scenario must be"),
        ({"scenario": {"targets": "goto"}}, "scenario.targets: must be a mapping"),
        (
            {"scenario": {"target": {"goto": 1.0}}},
            r"scenario.target: .*\(nearest valid key: targets\)",
        ),
        ({"scenario": {**GOTO, "parameters": {"move_speed": {}}}}, "parameters.move_speed: "),
        ({"scenario": {"targets": {"defence": 1.0}}}, "defence"),
    ],
)
def test_what_the_arena_does_not_have_is_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        RegisteredEnv(**{"scenario": GOTO, **keywords})


def test_a_sampler_may_come_as_a_mapping_through_gymnasium() -> None:
    limits = {"min_value": 1, "max_value": 3.0}
    sampler = {"sampler_type": "uniform", "sampler_parameters": limits}
    parameters = {"move_speed": sampler, "gun_cooldown": np.float32(0.5)}
    scenario = {"targets": {"goto": np.float32(1)}, "parameters": parameters}
    for env in (
        gymnasium.make("aimbot_lab/Goto-v0", scenario=scenario).unwrapped,
        gymnasium.make_vec("aimbot_lab/Goto-v0", num_envs=50, scenario=scenario).unwrapped,
    ):
        env.reset(seed=0)
        drawn = env.world.state.parameters[:, env.world.spec.parameters.index("move_speed")]
        assert ((drawn > 1.0) & (drawn < 3.0)).all()
        assert len(np.unique(drawn)) == len(drawn)


def test_make_vec_says_why_another_autoreset_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="autoreset_mode: it is always SAME_STEP"):
        gymnasium.make_vec("aimbot_lab/Goto-v0", num_envs=2, autoreset_mode="NextStep")


def test_a_world_of_many_rows_is_no_single_environment() -> None:
    with pytest.raises(ConfigurationError, match="one row"):
        WorldEnv(Arena(ArenaSettings(num_envs=2)))


def test_another_world_is_made_from_keywords_too() -> None:
    options = {"world": "gymnasium", "id": "CartPole-v1", "win": {"return_above": 20}}
    env = RegisteredEnv({"targets": {"task": 1.0}}, **options)
    same = RegisteredEnv({"targets": {"task": 1.0}}, env.world.settings)
    first, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, same.reset(seed=3)[0])
    assert first.shape == (4,)
    many = RegisteredVectorEnv(3, {"targets": {"task": 1.0}}, **options)
    assert many.reset(seed=3)[0].shape == (3, 4)
