"""Actors that hang are ended: with a lag they begin again, in step the run ends."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from blocks import ScriptedActors, block
from test_shared_training import plan

from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.actors.block import BlockRequest
from aimbot_lab.training.actors.group import Answer
from aimbot_lab.training.actors.rollouts import actor_plans, patience_with
from aimbot_lab.training.actors.supply import (
    LEAST_SECONDS,
    TIMES_THE_SLOWEST,
    FreeRunning,
    InStep,
    Patience,
)
from aimbot_lab.training.actors.world import ActorCounts
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.unity.settings import UnitySettings

FREE = ActorSettings(number=4, lag=2, correction="vtrace")


class Hanging(ScriptedActors):
    """Actors that play at once, but for the second block of actor 1, which never comes."""

    def __init__(self) -> None:
        super().__init__(lambda plan, order: block(plan.number, order.version))
        self._hanging = False

    def ask(self, actor: int, what: str, *given: Any) -> None:
        super().ask(actor, what, *given)
        mine = [number for number, _ in self.orders if number == 1]
        if actor == 1 and len(mine) == 2:
            self._asked.pop()
            self._hanging = True

    def answers(self, seconds: float) -> Sequence[Answer]:
        if self._hanging and self.ended:
            self._hanging = False
            return [Answer(1, is_lost=True)]
        return super().answers(seconds)


def clock_of(step: float) -> Callable[[], float]:
    """A clock that is `step` seconds later each time that it is read."""
    ticks = count()
    return lambda: step * next(ticks)


def order(version: int) -> BlockRequest:
    return BlockRequest(version, b"weights", 0, (), 1)


class Clock:
    """A clock that is set; `patience` looks at it each second."""

    def __init__(self, **given: Any) -> None:
        self.seconds = 0.0
        self.patience = Patience(clock=lambda: self.seconds, **given)

    def go_on(self, seconds: float) -> dict[int, float]:
        """Who hangs after so many."""
        for _ in range(round(seconds)):
            self.seconds += 1.0
            hanging = self.patience.hanging()
        return hanging


def test_nobody_hangs_in_a_first_block_and_who_is_forgotten_begins_anew() -> None:
    clock = Clock()
    patience = clock.patience
    patience.asked(0)
    assert clock.go_on(1000) == {}
    patience.answered(0)
    patience.forget(0)
    patience.asked(0)
    assert clock.go_on(20_000) == {}
    patience.forget(0)
    patience.answered(0)  # a late one


@pytest.mark.parametrize(
    ("block_took", "program", "limit"),
    [
        (1.0, 0.0, LEAST_SECONDS),
        (60.0, 0.0, TIMES_THE_SLOWEST * 60.0),
        (1.0, 300.0, 900.0),
    ],
)
def test_who_hangs_takes_far_longer_than_any_block_so_far(
    block_took: float, program: float, limit: float
) -> None:
    clock = Clock(program_seconds=program)
    patience = clock.patience
    for actor in range(2):
        patience.asked(actor)
    clock.go_on(block_took)
    for actor in range(2):
        patience.answered(actor)
    patience.asked(1)
    assert clock.go_on(limit) == {}
    patience.asked(0)
    assert clock.go_on(1.0) == {1: limit + 1.0}


def test_who_was_suspended_finds_nobody_hanging() -> None:
    clock = Clock()
    for _ in range(2):
        clock.patience.asked(0)
        clock.patience.answered(0)
    clock.patience.asked(0)
    clock.seconds += 10_000.0
    assert clock.go_on(1.0) == {}


def test_a_build_that_may_be_silent_makes_more_patient() -> None:
    unity, arena = UnitySettings(num_envs=4, timeout_wait=300.0), ArenaSettings(num_envs=4)
    assert patience_with(unity)._least == 900.0
    assert patience_with(arena)._least == LEAST_SECONDS


def test_with_a_lag_an_actor_that_hangs_is_ended_and_begins_again() -> None:
    group, counts = Hanging(), ActorCounts()
    plans = actor_plans(plan(actors=FREE))
    for one in plans:
        group.start(one)
    running = FreeRunning(group, plans, FREE, counts, Patience(clock=clock_of(1.0)))
    version = 0
    while counts.restarts == 0:
        assert version < 10_000
        running.take(order(version), lambda: counts.restarts > 0)
        version += 1
    running.close()
    assert group.ended == [1]
    assert [life for number, life in group.lives if number == 1] == [0, 1]
    said = [one for one in counts.notices if "actor 1" in one]
    assert "has played nothing for" in said[0]
    assert "begins again" in said[1]


def test_who_hangs_is_found_though_others_answer_at_every_look() -> None:
    group, patience = Hanging(), Patience(clock=clock_of(4.0))
    plans = actor_plans(plan(actors=FREE))
    for one in plans:
        group.start(one)
    running = FreeRunning(group, plans, FREE, ActorCounts(), patience)
    patience.asked(1)
    patience.answered(1)
    patience.asked(1)
    for _ in range(100):
        patience.asked(0)
        group.ask(0, "block", order(0))
        running._pool.take(0, 99)  # makes room
        running._look()
    assert group.ended == [1]


def test_in_step_an_actor_that_hangs_ends_the_run_with_a_way_on() -> None:
    supply = InStep(Hanging(), 4, ActorCounts(), Patience(clock=clock_of(1.0)))
    for one in actor_plans(plan(actors=ActorSettings(number=4))):
        supply._group.start(one)
    assert supply.take(order(0), lambda: False) is not None
    with pytest.raises(RunFailedError, match=r"actor 1 has played nothing for \d+ s: resume"):
        supply.take(order(1), lambda: False)
