"""Actors of a training, which Ray places on the machines of its cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aimbot_lab.cluster.connection import connected
from aimbot_lab.training.actors.actor import ActorHost, Answer
from aimbot_lab.training.actors.block import ActorPlan, BlockRequest
from aimbot_lab.training.processes.cores import one_thread


class RayHost:
    """An `ActorHost` as an actor of Ray; the weights of a request come by themselves."""

    def __init__(self, plan: ActorPlan) -> None:
        one_thread()
        self._host = ActorHost(plan)

    def answer(self, what: str, given: tuple[Any, ...], weights: bytes | None) -> Answer:
        """What the actor's method `what` gives."""
        if weights is not None:
            given = (given[0]._replace(weights=weights), *given[1:])
        return self._host.answer(what, given)


class RayActors:
    """An actor of Ray for each plan, with a core of its own.

    Blocks lie in the object store of the machine where they were played until they are fetched. The
    weights of a version are put there once, and reach each machine once.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._kind = ray.remote(num_cpus=1)(RayHost)
        self._hosts: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}  # whose answer each reference is
        self._weights: tuple[int, Any] = -1, None  # the newest version, and where it lies

    def start(self, plan: ActorPlan) -> None:
        """Have Ray place the actor where there is room."""
        self._hosts[plan.number] = self._kind.remote(plan)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Send the question."""
        weights = None
        if given and isinstance(given[0], BlockRequest) and given[0].weights is not None:
            weights = self._put(given[0])
            given = (given[0]._replace(weights=None), *given[1:])
        self._asked[self._hosts[actor].answer.remote(what, given, weights)] = actor

    def _put(self, request: BlockRequest) -> Any:
        """Where the weights of `request` lie."""
        if request.version != self._weights[0]:
            self._weights = request.version, self._ray.put(request.weights)
        return self._weights[1]

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What has been answered; an actor that Ray can't reach any more is lost."""
        if not self._asked:
            return []
        ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=seconds)
        return [self._answer(self._asked.pop(one), one) for one in ready]

    def _answer(self, actor: int, reference: Any) -> Answer:
        try:
            answer: Answer = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            self._ray.kill(self._hosts.pop(actor))
            return Answer(actor, is_lost=True)
        return answer

    def end(self, actor: int) -> None:
        """Have Ray kill it."""
        self._ray.kill(self._hosts[actor])

    def close(self) -> None:
        """End all actors."""
        for host in self._hosts.values():
            self._ray.kill(host)
        self._hosts, self._asked = {}, {}


@contextmanager
def connected_actors(number: int) -> Iterator[RayActors]:
    """A group of that number, while Ray is connected.

    Raises ConfigurationError where Ray is not installed or no cluster answers.
    """
    with connected(number) as ray:
        yield RayActors(ray)
