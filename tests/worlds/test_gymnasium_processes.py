"""Environments in several processes: the bits of one, and what becomes of a process that fails."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import gymnasium
import numpy as np
import pytest
from corridor import TASK
from pole_curriculum import trained as learned

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import ForeignCodeError
from aimbot_lab.foundation.named_code import EVERYTHING, TRUST
from aimbot_lab.foundation.world import step_buffers
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.checkpoint import state_sha256
from aimbot_lab.training.checks import with_scaling
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.worlds.gymnasium.copies_in_processes import CopiesInProcesses
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, MaskRule, WinRule
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld

ENVIRONMENTS = '''
import gymnasium, numpy as np, random, time
from gymnasium import spaces

class Odd(gymnasium.Env):
    """Pictures, numbers and masks; draws from what is not its own; ends at random."""
    action_space = spaces.Discrete(3)
    def __init__(self, fault="none"):
        self.fault = fault
        eye = spaces.Box(0, 255, (6, 5, 3), np.uint8)
        at = spaces.Box(-9, 9, (2,), np.float32)
        self.observation_space = spaces.Dict({"eye": eye, "at": at})
    def shown(self):
        eye = self.np_random.integers(0, 256, (6, 5, 3), dtype=np.uint8)
        first = random.random() + (99 if self.fault == "far" else 0)
        return {"eye": eye, "at": np.array([first, np.random.rand()], np.float32)}
    def mask(self):
        return {"mask": [True, bool(self.np_random.integers(2)), True]}
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.shown(), self.mask()
    def step(self, action):
        self.steps += 1
        if self.steps == 5:
            if self.fault == "raises": raise RuntimeError("no more")
            if self.fault == "hangs": time.sleep(600)
        return self.shown(), float(action), bool(self.np_random.random() < 0.2), False, self.mask()

class Reach(gymnasium.Env):
    """What is done moves a number, by choices that have masks or by numbers; HER may set goals."""
    def __init__(self, choices=True, goals=False):
        box = spaces.Box(-9, 9, (1,), np.float32)
        self.action_space = spaces.Discrete(3) if choices else spaces.Box(-1, 1, (1,), np.float32)
        named = dict.fromkeys(("observation", "achieved_goal", "desired_goal"), box)
        self.observation_space = spaces.Dict(named) if goals else box
        self.choices, self.goals = choices, goals
        if choices:
            self.action_masks = lambda: np.array([self.at < 4, True, self.at > -4])
    def shown(self):
        at = np.array([self.at], np.float32)
        goal = np.array([self.goal], np.float32)
        named = {"observation": at - goal, "achieved_goal": at, "desired_goal": goal}
        return named if self.goals else at - goal
    def compute_reward(self, achieved, desired, info):
        return -(np.abs(achieved - desired).max(axis=-1) > 0.5).astype(np.float32)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.goal = 0.0, self.np_random.uniform(-3, 3)
        return self.shown(), {}
    def step(self, action):
        self.at = np.clip(self.at + (1 - action if self.choices else action[0]), -4, 4)
        reward = float(abs(self.at - self.goal) <= 0.5) - 1.0
        return self.shown(), reward, bool(self.np_random.random() < 0.1), False, {}

gymnasium.register("Odd-v0", Odd)
gymnasium.register("Reach-v0", Reach)
'''
SMALL = NetworkSettings(layers=(16, 16))


@pytest.fixture(autouse=True)
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_environments.py").write_text(ENVIRONMENTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(TRUST, EVERYTHING)
    monkeypatch.delitem(sys.modules, "odd_environments", raising=False)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))


def begun(processes: int, *, fault: str = "none", rows: int = 5, **given: Any) -> GymnasiumWorld:
    settings = GymnasiumSettings(
        id="odd_environments:Odd-v0",
        kwargs={"fault": fault},
        masks=MaskRule(info="mask"),
        win=WinRule(return_above=4),
        num_envs=rows,
        processes=processes,
        **given,
    )
    world = GymnasiumWorld(settings)
    world.set_scenario(TASK)
    world.reset(3, step_buffers(world).observations)
    return world


def played(world: GymnasiumWorld, steps: int, *, seed: int = 0) -> list[bytes]:
    """All that `world` shows in these steps of a random player."""
    buffers, random = step_buffers(world), np.random.default_rng(seed)
    masks, shown = np.zeros((world.num_envs, 3), np.bool_), []
    for _ in range(steps):
        actions = random.integers(0, 3, (world.num_envs, 1)).astype(np.float32)
        batch = world.step(actions, buffers)
        world.action_masks(masks)
        shown += [one.tobytes() for one in (*buffers[:-1], masks, batch.order, batch.won)]
        shown += [buffers.final_observations[buffers.finished].tobytes(), batch.terms.tobytes()]
    return shown


def test_several_processes_have_the_bits_of_one() -> None:
    worlds = [begun(processes) for processes in (1, 2)]
    one, two = (played(world, 200) for world in worlds)
    assert one == two
    kept, other = (world.snapshot() for world in worlds)
    assert all(np.array_equal(other[name], kept[name]) for name in kept)
    resumed = [begun(processes) for processes in (3, 1)]
    for world in resumed:
        world.restore(kept)
        assert not world.resume_episodes(step_buffers(world).observations).any()
    ends = [played(world, 60, seed=1) for world in (*worlds, *resumed)]
    assert all(end == ends[0] for end in ends)
    for world in (*worlds, *resumed):
        world.close()


def test_what_environments_do_is_reported_once() -> None:
    world = begun(2, fault="far")
    played(world, 10)
    notices = world.take_notices()
    assert len(notices) == 3  # two are the global generators
    assert sum("at_0 as 99." in one for one in notices) == 1
    played(world, 10)
    assert not world.take_notices()
    world.close()


BY_CHOICES = "hybrid_ppo", "maskable_ppo", "dqn", "qrdqn"
HER = "dqn", "qrdqn", "sac", "td3", "ddpg", "tqc"
EVERY = [(name, False) for name, one in ALGORITHMS.items() if one.table is None]
CHEAP = ("ppo", False), ("dqn", True)


def trained(algo: str, processes: int, *, her: bool) -> str:
    """The hash of what `algo` has learned in four copies."""
    kind: Any = ALGORITHMS[algo].settings
    options: dict[str, Any] = {"replay_buffer": "her"} if her else {}
    given: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "network": SMALL}
    given = {name: value for name, value in given.items() if name in ALGORITHMS[algo].takes}
    settings = kind(algo=algo, total_steps=512, options=options, **given)
    env = GymnasiumSettings(
        id="odd_environments:Reach-v0",
        kwargs={"choices": algo in BY_CHOICES, "goals": her},
        win=WinRule(return_above=0),
        num_envs=1 if algo == "ars" else 4,
        processes=processes,
    )
    lesson = Lesson(name="one", targets={"task": 1.0})
    train = with_scaling(settings, bounds_are_ranges=False)
    training = learned(TrainingPlan(3, env, (lesson,), train))
    assert training.model.num_timesteps >= 512
    return state_sha256(training.model, training.progress.state())


@pytest.mark.parametrize(
    ("algo", "her"),
    [
        pytest.param(*one, marks=() if one in CHEAP else pytest.mark.campaign)
        for one in (*EVERY, *((name, True) for name in HER))
    ],
)
def test_every_algorithm_learns_the_same_in_any_number_of_processes(algo: str, her: bool) -> None:
    numbers = (1, 2) if (algo, her) in CHEAP else (1, 2, 4)
    assert len({trained(algo, processes, her=her) for processes in numbers}) == 1


@pytest.mark.parametrize(
    ("fault", "given", "says"),
    [
        ("raises", {}, r"its step raised RuntimeError: no more \(.*odd_environments.py:\d+\)"),
        ("hangs", {"timeout_wait": 0.5}, r"copies \d to \d gave no answer to step for 0\.5 s"),
        ("killed", {}, r"the copies 3 to 4 ended by signal 9 in step"),
    ],
)
def test_a_process_that_raises_hangs_or_is_killed_is_a_line(
    fault: str, given: dict[str, float], says: str
) -> None:
    world = begun(2, **given) if fault == "killed" else begun(2, fault=fault, **given)
    pids = pids_of(world)
    if fault == "killed":
        os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(ForeignCodeError, match=says):
        played(world, 50)
    if fault != "raises":  # it is not waited for again, and no other answer is taken for its own
        with pytest.raises(ForeignCodeError, match=says):
            world.snapshot()
    world.close()
    assert all_end(pids)


def test_no_process_outlives_one_that_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import time
        from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings
        from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
        world = GymnasiumWorld(GymnasiumSettings(id="CartPole-v1", num_envs=2, processes=2))
        print(*[part._process.pid for part in world._copies._parts], flush=True)
        time.sleep(600)
    """)
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 2
    assert all_end(pids)


def pids_of(world: GymnasiumWorld) -> list[int]:
    assert isinstance(world._copies, CopiesInProcesses)
    return [part._process.pid for part in world._copies._parts]


def all_end(pids: list[int]) -> bool:
    """Whether all processes are gone within some seconds."""
    until = monotonic() + 20
    while monotonic() < until:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        sleep(0.05)
    return False
