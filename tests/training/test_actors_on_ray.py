"""Actors that Ray places: the bits of one process in step, and another life for each that dies."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest
from test_shared_training import ROLLOUT, learned, plan
from tiny_training import learn

from aimbot_lab.cluster.connection import connected
from aimbot_lab.cluster.places import RayActors, RayHost
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.training.training import Training

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with connected(2) as module:
        yield module


def kill_one() -> bool:
    """Kill an actor's process that has begun; whether there was one."""
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # zombies are among these
            if f"ray::{RayHost.__name__}" in "".join(one.cmdline()[:1]):
                one.kill()
                return True
    return False


def test_actors_on_ray_in_step_end_in_the_bits_of_one_process(ray: Any) -> None:
    made = plan(actors=ActorSettings(number=2))
    ended = learn(Training(made, group=RayActors(ray)))
    assert {ended.state_sha256} == learned(plan(), 1)[0].sha256


@pytest.mark.parametrize("by", ["a stranger", "its group"])
def test_an_actor_on_ray_that_is_killed_begins_again(ray: Any, by: str) -> None:
    killed: list[bool] = []
    group = RayActors(ray)

    def kill() -> bool:
        if by == "a stranger":
            return kill_one()
        group.end(0)
        return True

    def should_stop() -> bool:
        counts = training.env.world.counts  # type: ignore[attr-defined]
        if not killed and counts.taken >= 4 and kill():
            killed.append(True)
        return counts.restarts == 1 and counts.taken >= 40

    actors = ActorSettings(number=2, lag=2, correction="vtrace")
    training = Training(plan(actors=actors, total_steps=10**4 * ROLLOUT), group=group)
    ended = learn(training, should_stop=should_stop)
    assert ended.stopped
    assert training.env.world.counts.restarts == 1  # type: ignore[attr-defined]


def test_an_actor_on_ray_that_is_lost_in_step_ends_the_run_in_a_line(ray: Any) -> None:
    training = Training(plan(actors=ActorSettings(number=2)), group=RayActors(ray))
    with pytest.raises(RunFailedError, match=r"actor \d is gone"):
        learn(training, should_stop=lambda: kill_one() and False)
