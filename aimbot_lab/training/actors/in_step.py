"""Actors in step: all play by the newest weights, and the learner waits for all."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.actors.block import ActorPlan, Block, Order, Scenarios, unpacked_block
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.training.actors.group import ActorGroup

LOOK_SECONDS = 0.2  # between two looks whether the training shall end


class InStep:
    """Blocks of `plans`, one of each, in the order of their rows.

    Raises RunFailedError where an actor is gone: its rows are a part of the training's state.
    """

    def __init__(self, group: ActorGroup, plans: Sequence[ActorPlan], counts: ActorCounts) -> None:
        self._group, self._plans, self._counts = group, plans, counts
        self._has_started = False

    def resume(self, state: bytes) -> int:
        """The number of the scenario in force where the checkpoint's packed `state` was kept."""
        self._start()
        return int(self._of_all("resume", state, should_stop=lambda: False)[0])

    def states(self, scenarios: Scenarios) -> list[bytes]:
        """The packed state of every actor's rows, in their order, with the new `scenarios` set."""
        self._start()
        return list(self._of_all("state", scenarios, should_stop=lambda: False))

    def take(self, order: Order, should_stop: Callable[[], bool]) -> list[Block] | None:
        """The blocks that all play as `order` says; None where `should_stop` says so."""
        self._start()
        found = self._of_all("block", order, should_stop=should_stop)
        self._counts.made += len(found)
        return [unpacked_block(one) for one in found] or None

    def _start(self) -> None:
        if not self._has_started:
            for plan in self._plans:
                self._group.start(plan)
            self._has_started = True

    def _of_all(self, what: str, *given: Any, should_stop: Callable[[], bool]) -> list[Any]:
        """What every actor answers; nothing where `should_stop` says so."""
        for plan in self._plans:
            self._group.ask(plan.number, what, *given)
        found: dict[int, Any] = {}
        while len(found) < len(self._plans):
            found.update(self._heard())
            if should_stop():
                return []
        return [found[plan.number] for plan in self._plans]

    def _heard(self) -> Iterator[tuple[int, Any]]:
        for answer in self._group.answers(LOOK_SECONDS):
            if answer.fault is not None:
                raise RunFailedError(f"actor {answer.actor}: {answer.fault}")
            if answer.is_lost:
                raise RunFailedError(
                    f"actor {answer.actor} is gone, and its rows with it: resume the run, or let "
                    "actors come back by train.actors.lag: 1"
                )
            yield answer.actor, answer.value

    def close(self) -> None:
        """End all actors."""
        self._group.close()
