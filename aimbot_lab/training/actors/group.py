"""Where actors run; those of this process, one after the other, for tests."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from aimbot_lab.training.actors.block import ActorPlan
from aimbot_lab.training.actors.player import Player
from aimbot_lab.training.checkpoint.random_state import random_state, restore_random


class Answer(NamedTuple):
    """What came of a question to an actor."""

    actor: int
    value: Any = None
    fault: str | None = None  # why it can't play, in a line
    is_lost: bool = False  # whether it is gone, and the question with it


class ActorGroup(Protocol):
    """Actors by number; each is asked one thing at a time."""

    def start(self, plan: ActorPlan) -> None:
        """Have the actor `plan.number`, in place of a lost one of that number."""
        ...

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Have `actor` call its method `what`; one that is gone answers so."""
        ...

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What has been answered; waits at most so long for the first."""
        ...

    def end(self, actor: int) -> None:
        """End `actor`, whose answer is then that it is lost."""
        ...

    def close(self) -> None:
        """End all actors."""
        ...


class OwnActors:
    """Actors of this process, each asked when the answer is fetched."""

    def __init__(self) -> None:
        self._players: dict[int, Player] = {}
        self._asked: list[tuple[int, str, tuple[Any, ...]]] = []

    def start(self, plan: ActorPlan) -> None:
        """Have a player for it."""
        self._players[plan.number] = Player(plan)

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
        said = self._players[actor].say(what, given)
        restore_random(before, ())
        return Answer(actor, said.value, said.fault)

    def end(self, actor: int) -> None:
        """Nothing: none of them hangs without this process."""

    def close(self) -> None:
        """End and forget them."""
        for player in self._players.values():
            player.close()
        self._players, self._asked = {}, []
