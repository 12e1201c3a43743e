"""Actors of a training, which Ray places on the machines of its cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aimbot_lab.cluster.connection import connected
from aimbot_lab.training.actors.block import ActorPlan, Order
from aimbot_lab.training.actors.group import Answer, Player, Said
from aimbot_lab.training.processes.cores import one_thread


class RayPlayer:
    """A `Player` as an actor of Ray; the weights of an order come by themselves."""

    def __init__(self, plan: ActorPlan) -> None:
        one_thread()
        self._player = Player(plan)

    def say(self, what: str, given: tuple[Any, ...], weights: bytes | None) -> Said:
        """What the actor's method `what` gives."""
        if weights is not None:
            given = (given[0]._replace(weights=weights), *given[1:])
        return self._player.say(what, given)


class RayActors:
    """An actor of Ray for each plan, with a core of its own.

    Blocks lie in the object store of the machine where they were played until they are fetched. The
    weights of a version are put there once, and reach each machine once.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._kind = ray.remote(num_cpus=1)(RayPlayer)
        self._players: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}  # whose answer each reference is
        self._weights: tuple[int, Any] = -1, None  # the newest version, and where it lies

    def start(self, plan: ActorPlan) -> None:
        """Have Ray place the actor where there is room."""
        self._players[plan.number] = self._kind.remote(plan)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Send the question."""
        weights = None
        if given and isinstance(given[0], Order) and given[0].weights is not None:
            weights = self._put(given[0])
            given = (given[0]._replace(weights=None), *given[1:])
        self._asked[self._players[actor].say.remote(what, given, weights)] = actor

    def _put(self, order: Order) -> Any:
        """Where the weights of `order` lie."""
        if order.version != self._weights[0]:
            self._weights = order.version, self._ray.put(order.weights)
        return self._weights[1]

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What has been answered; an actor that Ray can't reach any more is lost."""
        if not self._asked:
            return []
        ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=seconds)
        return [self._answer(self._asked.pop(one), one) for one in ready]

    def _answer(self, actor: int, reference: Any) -> Answer:
        try:
            said = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            self._ray.kill(self._players.pop(actor))
            return Answer(actor, is_lost=True)
        return Answer(actor, said.value, said.fault)

    def end(self, actor: int) -> None:
        """Have Ray kill it."""
        self._ray.kill(self._players[actor])

    def close(self) -> None:
        """End all actors."""
        for player in self._players.values():
            self._ray.kill(player)
        self._players, self._asked = {}, {}


@contextmanager
def connected_actors(number: int) -> Iterator[RayActors]:
    """A group of so many, while Ray is connected.

    Raises ConfigurationError where Ray is not installed or no cluster answers.
    """
    with connected(number) as ray:
        yield RayActors(ray)
