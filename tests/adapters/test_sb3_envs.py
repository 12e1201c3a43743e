"""A vectorised arena that is ready to learn."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3 import PPO

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.adapters.sb3_envs import make_vec_env
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings

PAGE = Path(__file__).parents[2] / "aimbot_lab" / "worlds" / "arena" / "README.md"


def test_a_world_without_a_target_is_refused_before_anyone_learns_from_it() -> None:
    env = WorldVecEnv(Arena(ArenaSettings(num_envs=8)))
    with pytest.raises(ConfigurationError, match=r"no target.*make_vec_env.*are free, goto,"):
        PPO("MlpPolicy", env, n_steps=16, batch_size=64).learn(256)


def test_episodes_of_a_made_environment_end() -> None:
    env = make_vec_env("goto", num_envs=8, difficulty=2, time_limit=1.0)
    env.reset()
    ended = [env.step(np.zeros((8, 4), np.int64))[2] for _ in range(12)]
    assert np.sum(ended) == 8


def test_one_difficulty_is_a_weight_for_that_alone() -> None:
    one = make_vec_env("attack", num_envs=16, difficulty=3, seed=5)
    weights = make_vec_env({"attack": 2.0}, num_envs=16, difficulty=(0, 0, 7, 0, 0), seed=5)
    np.testing.assert_array_equal(one.reset(), weights.reset())
    other = make_vec_env("attack", num_envs=16, difficulty=4, seed=5)
    assert not np.array_equal(one.reset(), other.reset())


def test_another_world_is_ready_to_learn_as_well() -> None:
    env = make_vec_env(
        "task", num_envs=4, world="gymnasium", id="CartPole-v1", win={"return_above": 20}
    )
    PPO("MlpPolicy", env, n_steps=32, batch_size=64).learn(128)
    assert env.world.spec.targets.keys() == {"task"}


@pytest.mark.parametrize(
    ("target", "difficulty", "reason"),
    [
        ("gotoo", None, "no target 'gotoo'"),
        ("goto", 6, r"difficulty: must be 1 to 5 \(got 6\)"),
        ("free", 2, "free has no difficulties"),
    ],
)
def test_what_the_arena_has_not_is_refused(target: str, difficulty: int, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        make_vec_env(target, num_envs=2, difficulty=difficulty)


def test_the_example_of_the_arenas_page_learns(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("`make_vec_env` gives a `VecEnv`")
    block = re.search(r"```python\n(.*?)```", rest, re.DOTALL)
    assert block
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # evaluate_policy wants a Monitor, which is for single environments
        warnings.simplefilter("ignore", UserWarning)
        exec(block.group(1), names)
    model = names["model"]
    assert isinstance(model, PPO)
    assert model.ep_info_buffer
    assert "nan" not in capsys.readouterr().out
