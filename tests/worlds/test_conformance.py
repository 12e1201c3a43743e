"""Every world obeys the laws of worlds, by itself and through each adapter."""

import warnings
from dataclasses import replace
from functools import partial

import gymnasium
import numpy as np
import pytest
from corridor import BY_END, TASK
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_sb3

from aimbot_lab.adapters.gymnasium_env import WorldEnv, WorldVectorEnv
from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import Uniform, UniformParameters
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.gorge.gorge import Gorge
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from aimbot_lab.worlds.testing import CHECKS, Subject
from aimbot_lab.worlds.testing.laws import begun, parts_play_as_the_whole, play
from tests.worlds.race import RIGHT, Race
from tests.worlds.tank import tanks
from tests.worlds.walkers import walkers

with warnings.catch_warnings():  # its import ends the process where warnings are errors
    warnings.simplefilter("ignore")
    import Box2D  # noqa: F401


def environment(name: str, win: WinRule = BY_END, longest: int = 12) -> Subject:
    """Environments of Gymnasium whose episodes end within `longest` steps."""
    settings = GymnasiumSettings(id=name, max_episode_steps=longest, win=win)
    make = lambda rows: GymnasiumWorld(replace(settings, num_envs=rows))  # noqa: E731
    return Subject(make, TASK, steps=5 * longest // 2)


ARENA = Subject(
    lambda rows: Arena(ArenaSettings(num_envs=rows, time_limit=4.0)),
    Scenario({"goto": 1.0, "attack": 1.0, "free": 1.0}),
)
GORGE = Subject(
    lambda rows: Gorge(GorgeSettings(num_envs=rows, max_steps=140, random_start=True)),
    Scenario({"walk": 1.0, "collect": 1.0, "score": 1.0}),
)
DUEL = Subject(
    lambda rows: Duel(DuelSettings(num_envs=rows, time_limit=4.0)), Scenario({"duel": 1.0})
)
OPPOSED = Subject(
    lambda rows: OpposedWorld(DuelSettings(num_envs=rows, time_limit=4.0, learner="home")),
    Scenario({"still": 1.0, "random": 1.0, "greedy": 1.0, "aimbot": 1.0}),
)
SAMPLED = {  # a parameter of each world, and an interval that it is drawn from
    "arena": ("time_limit", 1.0, 4.0),
    "duel": ("time_limit", 1.0, 4.0),
    "gorge": ("max_steps", 132.0, 140.0),
}
TOGETHER = Subject(lambda rows: Race(rows, agents=2), RIGHT, steps=100)
OF_SEVERAL = {"race of two", "duel", "PettingZoo"}
SUBJECTS = {
    "arena": ARENA,
    "duel": DUEL,
    "duel against scripts": OPPOSED,
    "gorge": GORGE,
    "race alone": Subject(Race, RIGHT, steps=100),
    "race of two": TOGETHER,
    "tank": tanks(),
    "PettingZoo": Subject(
        partial(
            walkers,
            win={"info": "is_success"},
            kwargs={"masks": "info", "render_mode": "rgb_array"},
            masks={"info": "action_mask"},
        ),
        TASK,
        steps=30,
    ),
    "CartPole-v1": environment("CartPole-v1", longest=25),
    "Pendulum-v1": environment("Pendulum-v1", WinRule(return_above=-100)),
    "BipedalWalker-v3": environment("BipedalWalker-v3", WinRule(return_above=300)),
    "Acrobot-v1": environment("Acrobot-v1"),
}


@pytest.mark.parametrize("name", ["arena", "duel", "gorge"])
@pytest.mark.parametrize("seeded", [None, 5])
def test_parts_draw_parameters_as_the_whole(name: str, seeded: int | None) -> None:
    key, low, high = SAMPLED[name]
    interval = UniformParameters(min_value=low, max_value=high, seed=seeded)
    sampler = Uniform(sampler_parameters=interval)
    subject = SUBJECTS[name]
    scenario = replace(subject.scenario, parameters={key: sampler})
    parts_play_as_the_whole(replace(subject, scenario=scenario, rows=7))


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_world_obeys_the_laws_of_worlds(check, name: str) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("name", sorted(SUBJECTS.keys() - OF_SEVERAL))
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # of checkers about what they prefer
def test_a_world_passes_gymnasiums_and_stable_baselines3s_own_checks(name: str) -> None:
    world = SUBJECTS[name].make(1)
    world.set_scenario(SUBJECTS[name].scenario)
    env = WorldEnv(world)
    check_env(env, skip_render_check=True)
    check_sb3(env)


@pytest.mark.parametrize("name", SUBJECTS)
def test_both_batch_adapters_tell_the_same_of_a_world(name: str) -> None:
    subject = SUBJECTS[name]
    worlds = [subject.make(3) for _ in range(2)]
    for world in worlds:
        world.set_scenario(subject.scenario)
    ours, theirs = WorldVecEnv(worlds[0]), WorldVectorEnv(worlds[1])
    assert isinstance(theirs, gymnasium.vector.VectorEnv)
    ours.seed(5)
    seen, (other, _) = ours.reset(), theirs.reset(seed=5)
    np.testing.assert_array_equal(seen, other)
    random = np.random.default_rng(0)
    seats = ours.num_envs
    sizes = np.asarray(ours.action_space.nvec)  # type: ignore[attr-defined]
    cut_off = 0
    for _ in range(subject.steps):
        actions = random.integers(0, sizes, (seats, len(sizes)))
        seen, rewards, done, infos = ours.step(actions)
        given = actions.reshape(theirs.action_space.shape)
        other, raw, terminated, truncated, _ = theirs.step(given)
        np.testing.assert_array_equal(seen, other)
        np.testing.assert_array_equal(rewards, raw)
        np.testing.assert_array_equal(done, terminated | truncated)
        told = [infos[seat].get("TimeLimit.truncated", False) for seat in range(seats)]
        np.testing.assert_array_equal(told, truncated)
        cut_off += truncated.sum()
    if name in ("race alone", "race of two", "Pendulum-v1", "Acrobot-v1"):
        assert cut_off > 0


def test_an_adapter_for_one_agent_refuses_a_world_of_several() -> None:
    with pytest.raises(ConfigurationError, match="one row and one agent"):
        WorldEnv(TOGETHER.make(1))


def test_a_race_of_two_has_wins_losses_and_draws() -> None:
    world = begun(TOGETHER, 0)
    ends = [step.episodes for step in play(world, TOGETHER) if step.episodes]
    pairs = {(int(one.outcome[0]), int(one.outcome[len(one.row) // 2])) for one in ends}
    assert pairs == {(WIN, LOSS), (LOSS, WIN), (DRAW, DRAW)}
