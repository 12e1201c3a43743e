"""Actors that hang are ended: with a lag they begin again, in step the run ends."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from blocks import ScriptedActors, block
from test_shared_training import plan

from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.actors.block import Order
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.training.actors.free_running import FreeRunning
from aimbot_lab.training.actors.group import Answer
from aimbot_lab.training.actors.in_step import InStep
from aimbot_lab.training.actors.patience import LONGEST_TIMES, PATIENCE_SECONDS, Patience
from aimbot_lab.training.actors.placing import actor_plans
from aimbot_lab.training.actors.settings import ActorSettings

FREE = ActorSettings(number=4, lag=2, correction="vtrace")


class Hanging(ScriptedActors):
    """Actors that play at once, but for the second block of actor 1, which never comes."""

    def __init__(self) -> None:
        super().__init__(lambda plan, order: block(plan.number, order.version))
        self._hanging, self._lost = False, 0

    def ask(self, actor: int, what: str, *given: Any) -> None:
        super().ask(actor, what, *given)
        mine = [number for number, _ in self.orders if number == 1]
        if actor == 1 and len(mine) == 2:
            self._asked.pop()
            self._hanging = True

    def answers(self, seconds: float) -> Sequence[Answer]:
        found = list(super().answers(seconds))
        if self._hanging and self.ended:
            self._hanging = False
            found.append(Answer(1, is_lost=True))
        return found


def clock_of(step: float) -> Callable[[], float]:
    """A clock that is `step` seconds later each time that it is read."""
    ticks = count()
    return lambda: step * next(ticks)


def order(version: int) -> Order:
    return Order(version, b"weights", 0, (), 1)


def test_nobody_hangs_before_a_block_was_made() -> None:
    patience = Patience(clock_of(1000.0))
    patience.ask(0)
    assert patience.hanging() == {}


@pytest.mark.parametrize(
    ("block_took", "limit"), [(1.0, PATIENCE_SECONDS), (60.0, LONGEST_TIMES * 60.0)]
)
def test_who_hangs_takes_far_longer_than_any_block_so_far(block_took: float, limit: float) -> None:
    now = [0.0]
    patience = Patience(lambda: now[0])
    patience.ask(0)
    patience.ask(1)
    now[0] = block_took
    patience.hear(0)
    patience.ask(0)
    now[0] = limit
    assert patience.hanging() == {}
    now[0] = limit + block_took
    assert patience.hanging() == {1: now[0]}
    patience.forget(1)
    now[0] += 1.0
    assert set(patience.hanging()) == {0}


def test_with_a_lag_an_actor_that_hangs_is_ended_and_begins_again() -> None:
    group, counts = Hanging(), ActorCounts()
    plans = actor_plans(plan(actors=FREE))
    for one in plans:
        group.start(one)
    running = FreeRunning(group, plans, FREE, counts, Patience(clock_of(40.0)))
    version = 0
    while counts.restarts == 0:
        assert version < 1000
        running.take(order(version), lambda: False)
        version += 1
    running.close()
    assert group.ended == [1]
    assert [life for number, life in group.lives if number == 1] == [0, 1]
    said = [one for one in counts.notices if "actor 1" in one]
    assert "has played nothing for" in said[0]
    assert "begins again" in said[1]


def test_in_step_an_actor_that_hangs_ends_the_run_with_a_way_on() -> None:
    supply = InStep(Hanging(), 4, ActorCounts(), Patience(clock_of(40.0)))
    for one in actor_plans(plan(actors=ActorSettings(number=4))):
        supply._group.start(one)
    assert supply.take(order(0), lambda: False) is not None
    with pytest.raises(RunFailedError, match=r"actor 1 has played nothing for \d+ s: resume"):
        supply.take(order(1), lambda: False)
