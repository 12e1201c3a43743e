"""An actor that says in a line what it can't do."""

import socket
from contextlib import suppress
from typing import Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.training.actors.actor import Actor
from aimbot_lab.training.actors.block import ActorPlan
from aimbot_lab.version import code_hash


class Said(NamedTuple):
    """What came of a question."""

    value: Any = None
    fault: str | None = None  # why the actor can't play


class Player:
    """The actor of `plan`, made where it is first asked."""

    def __init__(self, plan: ActorPlan) -> None:
        self._plan = plan
        self._actor: Actor | None = None

    def say(self, what: str, given: tuple[Any, ...]) -> Said:
        """What the actor's method `what` gives."""
        try:
            if self._actor is None:
                _check_code(self._plan)
                self._actor = Actor(self._plan)
            return Said(getattr(self._actor, what)(*given))
        except LabError as error:
            return Said(fault=str(error))

    def close(self) -> None:
        """End the actor, if there is one, whatever it says to that."""
        if self._actor is not None:
            with suppress(LabError):
                self._actor.close()
        self._actor = None


def _check_code(plan: ActorPlan) -> None:
    """Raise ConfigurationError where the learner has other code than is here."""
    if plan.code != code_hash():
        raise ConfigurationError(
            f"machine {socket.gethostname()} has other code of aimbot-lab ({code_hash()}) than the "
            f"learner ({plan.code}): all need the same"
        )
