"""The library's own script, in the same environment with the same seeds, learns the same bits."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from tests.training.tiny_training import Sink

SEED, STEPS = 7, 300


class Reach(gymnasium.Env[Any, Any]):
    """A reward for actions that fit what is seen; episodes end by chance or after 20 steps."""

    observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.action_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen, {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(np.asarray(action)), action
        reward = -float(np.square(np.asarray(action, np.float64) - self._seen[0]).sum())
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen, reward, bool(self.np_random.random() < 0.05), False, {}


class Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Each episode of all rows begins from a seed of its own, as in our worlds."""

    def __init__(self, env: Any, next_seed: Callable[[], int]) -> None:
        super().__init__(env)
        self._next_seed = next_seed

    def reset(self, **_: Any) -> Any:
        return self.env.reset(seed=self._next_seed())


def plain(model: type[BaseAlgorithm], name: str, rows: int, **arguments: Any) -> BaseAlgorithm:
    """The library's own script."""
    start = derive_seed(SEED, "learner")
    seeds = iter(derive_seed(start, "episode", number) % 2**31 for number in range(10**6))
    th.set_num_threads(1)
    env = DummyVecEnv([lambda: Seeded(gymnasium.make(name), lambda: next(seeds))] * rows)
    made: Any = model
    return made("MlpPolicy", env, seed=start, device="cpu", **arguments).learn(STEPS)


def ours(name: str, rows: int, **train: Any) -> Training:
    plan = TrainingPlan(
        SEED,
        GymnasiumSettings(id=name, win=WinRule(return_above=1e9), num_envs=rows),
        (Lesson(name="one", targets={"task": 1.0}),),
        TrainSettings(total_steps=STEPS, reward_scale=1.0, **train),
    )
    training = Training(plan)
    training.learn(Sink(), SilentObserver(), lambda: False)
    return training


def assert_equal_bits(one: BaseAlgorithm, other: BaseAlgorithm) -> None:
    mine, theirs = one.get_parameters(), other.get_parameters()
    assert set(mine) == set(theirs)
    weights, wanted = mine["policy"], theirs["policy"]
    pairs = list(zip(weights.values(), wanted.values(), strict=True))
    assert pairs
    assert all(th.equal(a, b) for a, b in pairs)


def registered(monkeypatch: pytest.MonkeyPatch, space: spaces.Space[Any]) -> str:
    spec = EnvSpec("Reach-v0", lambda: Reach(space), max_episode_steps=20, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, "Reach-v0", spec)
    return "Reach-v0"


ROLLOUTS: dict[str, Any] = {
    **{"n_steps": 30, "batch_size": 32, "n_epochs": 3, "learning_rate": 3e-3, "ent_coef": 0.01}
}
BOX = spaces.Box(-2.0, 2.0, (3,), np.float32)
PLAIN = NetworkSettings(layers=(64, 64), scaling="none")


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize(
    "space",
    [
        None,
        BOX,
        spaces.Box(-2.0, 2.0, (), np.float32),
        spaces.Box(-2.0, 2.0, (2, 2), np.float32),
        spaces.Box(-0.7, 0.3, (2,), np.float64),
        spaces.Discrete(3),
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(3),
    ],
    ids=str,
)
def test_ppo_learns_what_its_own_script_learns(
    monkeypatch: pytest.MonkeyPatch, space: spaces.Space[Any] | None
) -> None:
    name = "Pendulum-v1" if space is None else registered(monkeypatch, space)
    wanted = plain(PPO, name, 2, **ROLLOUTS)
    training = ours(name, 2, algo="ppo", network=PLAIN, **ROLLOUTS)
    assert_equal_bits(training.model, wanted)
    assert training.model.action_space == (space or wanted.action_space)
