"""Actors of this process, one after the other."""

from collections.abc import Sequence
from typing import Any

from aimbot_lab.training.actors.actor import ActorHost, Answer
from aimbot_lab.training.actors.block import ActorPlan
from aimbot_lab.training.checkpoint import random_state, restore_random


class OwnActors:
    """Actors of this process, each asked when the answer is fetched."""

    def __init__(self) -> None:
        self._hosts: dict[int, ActorHost] = {}
        self._asked: list[tuple[int, str, tuple[Any, ...]]] = []

    def start(self, plan: ActorPlan) -> None:
        """Have a host for it."""
        self._hosts[plan.number] = ActorHost(plan)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Note the question."""
        self._asked.append((actor, what, given))

    def answers(self, seconds: float) -> Sequence[Answer]:
        """The answer to the oldest question."""
        del seconds
        return [self._answer(*self._asked.pop(0))] if self._asked else []

    def _answer(self, actor: int, what: str, given: tuple[Any, ...]) -> Answer:
        """What the actor says; the learner's random numbers stay as they are."""
        before = random_state(())
        answer = self._hosts[actor].answer(what, given)
        restore_random(before, ())
        return answer

    def end(self, actor: int) -> None:
        """Nothing: none of them hangs without this process."""

    def close(self) -> None:
        """End and forget them."""
        for host in self._hosts.values():
            host.close()
        self._hosts, self._asked = {}, []
