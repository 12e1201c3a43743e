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

from aimbot_lab.foundation.errors import ForeignCodeError
from aimbot_lab.foundation.world import Scenario, step_buffers
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

gymnasium.register("Odd-v0", Odd)
'''
TASK = Scenario({"task": 1.0}, parameters={})


@pytest.fixture(autouse=True)
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_environments.py").write_text(ENVIRONMENTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
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
    worlds = [begun(processes) for processes in (1, 2, 4)]
    for world in worlds:
        world.reset(3, step_buffers(world).observations)
    first, *others = (played(world, 200) for world in worlds)
    assert all(other == first for other in others)
    kept = [world.snapshot() for world in worlds]
    for other in kept[1:]:
        assert all(np.array_equal(other[name], kept[0][name]) for name in kept[0])
    resumed = [begun(processes) for processes in (4, 1)]
    for world in resumed:
        world.restore(kept[0])
        assert not world.resume_episodes(step_buffers(world).observations).any()
    ends = [played(world, 60, seed=1) for world in (*worlds, *resumed)]
    assert all(end == ends[0] for end in ends)
    for world in (*worlds, *resumed):
        world.close()


def test_what_environments_do_is_reported_once() -> None:
    world = begun(2, fault="far")
    world.reset(3, step_buffers(world).observations)
    played(world, 10)
    notices = world.take_notices()
    assert len(notices) == 3  # two are the global generators
    assert sum("at_0 as 99." in one for one in notices) == 1
    played(world, 10)
    assert not world.take_notices()
    world.close()


@pytest.mark.parametrize(
    ("fault", "given", "says"),
    [
        ("raises", {}, r"its step raised RuntimeError: no more \(.*odd_environments.py:\d+\)"),
        ("hangs", {"timeout_wait": 0.5}, r"copies \d to \d gave no answer to step for 0\.5 s"),
    ],
)
def test_a_process_that_raises_or_hangs_is_a_line(
    fault: str, given: dict[str, float], says: str
) -> None:
    world = begun(2, fault=fault, **given)
    pids = pids_of(world)
    world.reset(3, step_buffers(world).observations)
    with pytest.raises(ForeignCodeError, match=says):
        played(world, 50)
    if fault == "hangs":  # it is not waited for again, and no other answer is taken for its own
        with pytest.raises(ForeignCodeError, match=says):
            world.snapshot()
    world.close()
    assert all_end(pids)


def test_a_process_that_is_killed_is_a_line() -> None:
    world = begun(2)
    pids = pids_of(world)
    world.reset(3, step_buffers(world).observations)
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(ForeignCodeError, match=r"the copies 3 to 4 ended by signal 9 in step"):
        played(world, 1)
    with pytest.raises(ForeignCodeError, match=r"the copies 3 to 4 ended by signal 9 in step"):
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
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    process.kill()
    process.wait()
    process.stdout.close()
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
