"""Wrappers, stacked frames and Atari against plain Gymnasium and stable-baselines3's own."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
from corridor import TASK, corridors, register
from gymnasium import spaces
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from aimbot_lab.experiment.analysis.recording import RecordingRequest, _begun, _demonstrated
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario, closing, new_step_buffers, step_buffers
from aimbot_lab.foundation.world_type import RandomAgent
from aimbot_lab.replay.episode import as_replay, recorded_episodes, replay_steps
from aimbot_lab.worlds.gymnasium.settings import (
    GymnasiumSettings,
    ObservationParts,
    WrapperSettings,
)
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from aimbot_lab.worlds.gymnasium.wrapping import new_environment
from aimbot_lab.worlds.registry import make_world

STEPS = int(os.environ.get("AIMBOT_LAB_EQUALITY_STEPS", "300"))  # `make equality` takes 2,000
CLIPPED = WrapperSettings(wrapper="ClipReward", kwargs={"min_reward": -1, "max_reward": -0.5})


class Camera(gymnasium.Env[Any, Any]):
    """Pictures and numbers, drawn anew each step; an episode lasts seven."""

    action_space = spaces.Discrete(2)

    def __init__(self, layout: str = "hwc", speed: float = 1.0) -> None:
        shape = {"hwc": (7, 9, 3), "chw": (3, 8, 9), "hw": (8, 9)}[layout]
        self.speed = speed
        self.observation_space = spaces.Dict(
            {
                "eye": spaces.Box(0, 255, shape, np.uint8),
                "place": spaces.Box(-1, 1, (2,), np.float32),
                "word": spaces.Discrete(3),
            }
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.observation_space.sample(), self.speed, self.steps == 7, False, {}


class Named(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Has a number of its own."""

    bonus = 0.0

    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return observation, float(reward) + self.bonus, *rest


@pytest.fixture(autouse=True)
def camera(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Camera)


def played(env: Any) -> list[Any]:
    """Everything that `env` shows of random actions, in episodes seeded by their number."""
    shown, episode, random = [env.reset(seed=0)[0]], 0, np.random.default_rng(0)
    for _ in range(STEPS):
        action = random.uniform(-2, 2, 1).astype(np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        shown += [observation, reward]
        if terminated or truncated:
            episode += 1
            shown.append(env.reset(seed=episode)[0])
    return shown


def test_wrappers_are_put_on_in_their_order() -> None:
    settings = GymnasiumSettings(id="Pendulum-v1", wrappers=(CLIPPED, "TimeAwareObservation"))
    clipped = gymnasium.wrappers.ClipReward(gymnasium.make("Pendulum-v1"), -1, -0.5)
    plain = gymnasium.wrappers.TimeAwareObservation(clipped)
    for mine, other in zip(played(new_environment(settings)), played(plain), strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize(
    ("wrapper", "says"),
    [
        (
            "RescaleActoin",
            "env.wrappers: gymnasium.wrappers has no RescaleActoin (nearest valid name: ",
        ),
        ("RescaleAction", "env.wrappers.0: RescaleAction can't be used: TypeError"),
        ("nowhere:Wrapper", "env.wrappers: there is no module nowhere: install its package"),
        (f"{__name__}:Nothing", "env.wrappers.0: "),
        (f"{__name__}:camera", "env.wrappers.0: "),
    ],
)
def test_a_wrapper_that_is_none_is_refused_in_a_line(wrapper: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^env\.wrappers") as refused:
        new_environment(GymnasiumSettings(id="Pendulum-v1", wrappers=(wrapper,)))
    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)


def test_a_parameter_of_a_lesson_reaches_a_wrapper() -> None:
    world = GymnasiumWorld(
        GymnasiumSettings(id="CartPole-v1", wrappers=(f"{__name__}:Named",), num_envs=2)
    )
    world.set_scenario(Scenario({"task": 1.0}, parameters={"bonus": 2.5, "length": 0.75}))
    buffers = step_buffers(world)
    world.reset(0, buffers.observations)
    world.step(np.zeros((2, 1), np.float32), buffers)
    assert buffers.rewards.tolist() == [3.5, 3.5]
    with pytest.raises(ConfigurationError, match=r"no number of that name.*bonus.*length"):
        world.set_scenario(Scenario({"task": 1.0}, parameters={"bonuss": 1.0}))


@pytest.mark.parametrize(
    ("id", "given", "flat"),
    [
        ("CartPole-v1", {}, ()),
        ("Camera-v0", {"layout": "hwc"}, ()),
        ("Camera-v0", {"layout": "chw"}, ()),
        ("Camera-v0", {"layout": "hwc"}, ("eye",)),
    ],
)
def test_stacked_frames_are_those_of_stable_baselines3(
    id: str, given: dict[str, Any], flat: tuple[str, ...]
) -> None:
    parts = ObservationParts(drop=("word",) if given else (), flatten=flat)
    ours = new_environment(GymnasiumSettings(id=id, kwargs=given, frame_stack=4, observation=parts))
    plain = gymnasium.make(id, **given, disable_env_checker=True)
    if given:
        plain = gymnasium.wrappers.FilterObservation(plain, ["eye", "place"])
    theirs = VecFrameStack(DummyVecEnv([lambda: plain]), 4)
    theirs.seed(0)
    random = np.random.default_rng(0)
    mine, other = ours.reset(seed=0)[0], theirs.reset()
    for step in range(STEPS):
        for name in other if isinstance(other, dict) else (None,):
            shown, wanted = (mine, other) if name is None else (mine[name], other[name])
            assert np.array_equal(shown, wanted[0]), (step, name)
        choice = int(random.integers(2))
        other, rewards, finished, _ = theirs.step(np.array([choice]))
        mine, reward, terminated, truncated, _ = ours.step(choice)
        assert reward == rewards[0]
        assert (terminated or truncated) == finished[0]
        if finished[0]:
            mine = ours.reset()[0]


def test_stacked_pictures_keep_their_layout_and_one_without_channels_gets_them() -> None:
    parts: Any = {"frame_stack": 3, "observation": ObservationParts(drop=("word",))}
    for layout, shape in (("hwc", (7, 9, 9)), ("chw", (8, 9, 9)), ("hw", (8, 9, 3))):
        blocks = corridors("Camera", kwargs={"layout": layout}, **parts).spec.blocks
        assert [block.shape for block in blocks if block.kind == "image"] == [shape]


def test_what_has_no_frames_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match=r"the entry word is Discrete.*drop: \[word\]"):
        new_environment(GymnasiumSettings(id="Camera-v0", frame_stack=2))


@pytest.mark.parametrize(
    ("name", "lives", "steps"),
    [("ALE/Breakout-v5", 5, 700), pytest.param("ALE/Pong-v5", 1, 1300, marks=pytest.mark.campaign)],
)
def test_atari_is_shown_as_by_stable_baselines3_and_an_episode_is_a_game(
    name: str, lives: int, steps: int
) -> None:
    assert ale_py
    ours = GymnasiumWorld(GymnasiumSettings(id=name, atari=True, num_envs=1))
    ours.set_scenario(TASK)
    buffers = new_step_buffers(1, ours.spec.observation_dtype)
    for seed in (4, 5):  # the second while a game runs
        ours.reset(seed, buffers.observations)
    given = {"frameskip": 1, "repeat_action_probability": 0.0}

    def begun() -> Any:
        plain = AtariWrapper(gymnasium.make(name, **given))
        theirs = VecFrameStack(DummyVecEnv([lambda: plain]), 4)
        theirs.seed(ours._copies.running([0])[0].seed)
        return plain, theirs, theirs.reset()

    plain, theirs, other = begun()
    random, score, ends, games = np.random.default_rng(0), 0.0, 0, list[tuple[float, float]]()
    block = ours.spec.blocks[0].name
    for _ in range(steps):
        assert np.array_equal(buffers.observations[block], other)
        frames = plain.unwrapped.ale.getFrameNumber()
        choice = int(random.integers(4))
        batch = ours.step(np.array([[choice]], np.float32), buffers)
        other, rewards, finished, _ = theirs.step(np.array([choice]))
        score += float(rewards[0])  # a brick of the lowest rows is worth 1, clipped or not
        assert buffers.rewards[0] == rewards[0]
        assert buffers.finished[0] == finished[0]
        if not finished[0]:
            assert plain.unwrapped.ale.getFrameNumber() - frames == 4
        ends += int(finished[0])
        if len(batch.row):
            games.append((score, float(batch.returns[0])))
            assert ends == lives
            score, ends = 0.0, 0
            plain, theirs, other = begun()
        else:
            assert batch.untold == ((0,) if finished[0] else ())
    assert all(total >= score for score, total in games)
    assert any(score for score, _ in games)


GAME_AT_THE_END = """
from aimbot_lab.foundation.garbage import collect_seldom
collect_seldom()
import ale_py
game = {"made": ale_py.ALEInterface()}
game["itself"] = game
"""


def test_a_program_with_a_game_ends_without_a_list_of_leaks() -> None:
    words = [sys.executable, "-c", GAME_AT_THE_END]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "leaked" not in ended.stderr + ended.stdout


def test_a_game_with_lives_is_one_episode_of_a_replay_and_of_a_demonstration() -> None:
    shown = {"render_mode": "rgb_array"}
    env = GymnasiumSettings(id="ALE/Breakout-v5", atari=True, num_envs=1, kwargs=shown)

    def player(world: Any, **_: Any) -> Any:
        random = RandomAgent(world.spec, 1)
        return lambda observations, _starts: random(observations)

    lesson, judged = SimpleNamespace(parameters={}), SimpleNamespace(max_steps=None)
    agent: Any = SimpleNamespace(
        config=SimpleNamespace(env=env, lessons=[lesson], evaluation=judged),
        saved=SimpleNamespace(agent=SimpleNamespace(player=player)),
    )
    given = agent, RecordingRequest(episodes=1, seed=1, max_steps=1000), Cell("task", 0)
    with closing(make_world(env, 1)) as world:
        (demonstrated,) = _demonstrated(*given, world, episodes=1)
    with closing(make_world(env, 1)) as world:
        buffers = step_buffers(world)
        steps = _begun(*given, world, episodes=1, buffers=buffers)
        ((_, episode),) = recorded_episodes(world, steps, buffers.observations)
    np.testing.assert_array_equal(episode.actions, demonstrated.actions)
    *moments, last = replay_steps(as_replay(episode, {}).episode)
    assert [one.rewards[0] for one in [*moments[1:], last]] == demonstrated.rewards.tolist()
    assert last.scene.terms.sum() == demonstrated.rewards.sum() > 0
    assert len(demonstrated.observations) == len(moments) + 1
