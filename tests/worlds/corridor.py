"""A small Gymnasium environment whose every step is known, and worlds of it."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.foundation.world_type import RandomAgent
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld

TASK = Scenario({"task": 1.0})
BY_END = WinRule(terminated="win")


class Corridor(gymnasium.Env):
    """Goes right by one each step; at `goal` it is terminated, with the info is_success."""

    observation_space = gymnasium.spaces.Dict(
        {
            "place": gymnasium.spaces.Box(0, 1, (1,), np.float32),
            "kind": gymnasium.spaces.Discrete(3, start=1),
        }
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def __init__(self, length: int = 10, luck: bool = True) -> None:
        self.goal, self.luck = length, luck
        self.place = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        self.goal = (options or {}).get("goal", self.goal)
        return self.seen(), {}

    def seen(self):
        return {"place": np.array([self.place / 100], np.float32), "kind": np.int64(2)}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place += 1
        over = self.place >= self.goal
        info = {"is_success": self.luck} if over else {}
        return self.seen(), float(self.place), over, False, info

    def action_masks(self):
        return [np.array([True, False]), np.array([True, True, True])]


gymnasium.register("Corridor-v0", Corridor, max_episode_steps=20)


def register(monkeypatch: pytest.MonkeyPatch, *kinds: Any, **given: Any) -> None:
    """Have Gymnasium know the class `Kind` as Kind-v0 in this test."""
    for kind in kinds:
        name = f"{kind.__name__}-v0"
        spec = EnvSpec(name, kind, **{"disable_env_checker": True, **given})
        monkeypatch.setitem(gymnasium.registry, name, spec)


def corridors(
    kind: str = "Corridor", rows: int = 2, win: WinRule = BY_END, **given: Any
) -> GymnasiumWorld:
    """Environments that count as won by their end, where nothing else is said."""
    settings = GymnasiumSettings(id=f"{kind}-v0", win=win, num_envs=rows, **given)
    world = GymnasiumWorld(settings)
    world.set_scenario(TASK)
    return world


def begun(kind: str = "Corridor", rows: int = 2, **given: Any) -> GymnasiumWorld:
    """The same after a reset."""
    world = corridors(kind, rows, **given)
    world.reset(1, step_buffers(world).observations)
    return world


class Ended(NamedTuple):
    """One episode."""

    won: bool
    steps: int
    total: float


def results(world: GymnasiumWorld, steps: int = 60) -> list[Ended]:
    buffers = step_buffers(world)
    world.reset(1, buffers.observations)
    act = RandomAgent(world.spec, 0)
    found = []
    for _ in range(steps):
        batch = world.step(act(buffers.observations), buffers)
        columns = batch.won.tolist(), batch.length.tolist(), batch.returns.tolist()
        found += [Ended(*values) for values in zip(*columns, strict=True)]
    return found
