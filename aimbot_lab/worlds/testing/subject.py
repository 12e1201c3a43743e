"""A world to be checked, and how checks play it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import (
    BatchWorld,
    Scenario,
    StepBuffers,
    new_observations,
    step_buffers,
)
from aimbot_lab.foundation.world_type import RandomAgent, WorldType


@dataclass(frozen=True)
class Subject:
    """A world to be checked."""

    make: Callable[[int], BatchWorld]  # number of rows to a fresh world
    scenario: Scenario
    rows: int = 4
    steps: int = 300  # in which some episodes should end
    kind: WorldType | None = None  # of a world with replays that no package brings


@dataclass(frozen=True)
class Step:
    """What one step gave, copied."""

    rewards: np.ndarray  # [N]
    finished: np.ndarray  # [N]
    truncated: np.ndarray  # [N]
    observations: np.ndarray  # [N, D]
    final_observations: np.ndarray  # [N, D]
    episodes: EpisodeBatch
    running_order: np.ndarray  # [N]


def begun(subject: Subject, seed: int) -> BatchWorld:
    """A world with the scenario, reset to `seed`."""
    world = subject.make(subject.rows)
    world.set_scenario(subject.scenario)
    world.reset(seed, new_observations(world))
    return world


def random_actions(world: BatchWorld, seed: int = 0) -> RandomAgent:
    """A player that draws the same actions in every call."""
    return RandomAgent(world.spec, seed)


def play(
    world: BatchWorld, subject: Subject, steps: int | None = None, *, dirty: bool = False
) -> Iterator[Step]:
    """Steps with random actions that are the same in every call; `dirty` buffers hold rubbish."""
    act, seen = random_actions(world), new_observations(world)
    buffers = step_buffers(world)
    for _ in range(subject.steps if steps is None else steps):
        if dirty:
            buffers.finished[:] = buffers.truncated[:] = True
        episodes = world.step(act(seen), buffers)
        yield copied(buffers, episodes)


def copied(buffers: StepBuffers, episodes: EpisodeBatch) -> Step:
    """What a step gave, safe from the next one."""
    copies: Mapping[str, np.ndarray] = {
        name: array.copy() for name, array in buffers._asdict().items()
    }
    return Step(**copies, episodes=episodes, running_order=episodes.running_order.copy())


def assert_equal(one: Step, two: Step) -> None:
    """Raise AssertionError unless both steps gave the same bits."""
    for name in ("rewards", "finished", "truncated", "observations", "running_order"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("row", "agent", "order", "scenario", "outcome", "length", "terms"):
        pair = getattr(one.episodes, name), getattr(two.episodes, name)
        np.testing.assert_array_equal(*pair, err_msg=name)
    assert one.episodes.cell == two.episodes.cell


def assert_raises(kind: type[LabError], call: Callable[..., Any], *given: Any) -> None:
    """Raise AssertionError unless `call` raises `kind`."""
    try:
        call(*given)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised by {call.__name__}")
