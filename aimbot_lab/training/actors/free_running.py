"""Actors that play on while the learner learns from the oldest blocks that are young enough."""

from collections.abc import Callable, Sequence
from threading import Condition, Thread

from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.actors.block import ActorPlan, Block, Order, Scenarios, unpacked_block
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.training.actors.group import ActorGroup, Answer
from aimbot_lab.training.actors.patience import Patience
from aimbot_lab.training.actors.pool import BlockPool
from aimbot_lab.training.settings import ActorSettings

LOOK_SECONDS = 0.2
MAX_FRUITLESS_LIVES = 3  # of an actor in a row, each lost before its first block


class FreeRunning:
    """Has each actor of `plans` play a block after the other, by the newest weights it can get.

    They have been started.
    A thread orders and receives. An actor that is lost begins anew, as does one that hangs. Raises
    RunFailedError where one can't play, or is lost again and again.
    """

    def __init__(
        self,
        group: ActorGroup,
        plans: Sequence[ActorPlan],
        settings: ActorSettings,
        counts: ActorCounts,
        patience: Patience,
    ) -> None:
        self._group, self._plans, self._counts = group, list(plans), counts
        self._patience = patience
        self._pool = BlockPool(settings, counts)
        self._unsettled = {plan.number: plan.rows for plan in plans}  # episodes, by actor
        self._changed = Condition()
        self._newest: Order | None = None
        self._scenario: Scenarios = ()  # the one in force
        self._idle = {plan.number for plan in plans}
        self._known = dict.fromkeys(self._idle, (-1, 0))  # version and scenario, by actor
        self._fruitless = dict.fromkeys(self._idle, 0)
        self._failure: BaseException | None = None
        self._closing = False
        self._thread: Thread | None = None

    def take(self, order: Order, should_stop: Callable[[], bool]) -> list[Block] | None:
        """As many blocks as there are actors; those to come are by `order`.

        None where `should_stop` says so.
        """
        with self._changed:
            self._newest = order
            self._scenario = order.scenarios[-1:] or self._scenario
            self._begin()
            self._changed.notify_all()
            while self._failure is None:
                blocks = self._pool.take(len(self._plans), order.version)
                if blocks is not None:
                    self._changed.notify_all()  # there is room
                    return blocks
                if should_stop():
                    return None
                self._changed.wait(LOOK_SECONDS)
        raise self._failure

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="actors", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._closing:
                if self._order_all():
                    self._look()
        except BaseException as error:  # noqa: BLE001 raised again by `take`
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _order_all(self) -> bool:
        """Give orders to those who have none, as far as the pool has room for their blocks.

        Whether anybody has one; else waits a while for room.
        """
        with self._changed:
            busy = len(self._plans) - len(self._idle)
            room = max(self._pool.room - busy, 0)
            chosen = sorted(self._idle, key=lambda actor: self._known[actor])[:room]
            orders = {actor: self._order_for(actor) for actor in chosen}
            self._idle -= orders.keys()
            if not busy and not orders:
                self._changed.wait(LOOK_SECONDS)
        for actor, order in orders.items():
            self._patience.asked(actor)
            self._group.ask(actor, "block", order)
        return bool(busy or orders)

    def _order_for(self, actor: int) -> Order:
        assert self._newest is not None
        version, scenario = self._known[actor]
        self._counts.orders += 1
        is_new = [one for one in self._scenario if one[0] > scenario]
        number = self._scenario[-1][0] if self._scenario else scenario
        self._known[actor] = self._newest.version, number
        weights = None if version == self._newest.version else self._newest.weights
        return self._newest._replace(
            step=self._counts.orders, weights=weights, scenarios=tuple(is_new)
        )

    def _look(self) -> None:
        """Hear what is answered within a while, and end those that hang."""
        self._hear_all(LOOK_SECONDS)
        if self._patience.hanging():
            while self._hear_all(0.0):  # whoever has answered does not hang
                pass
            self._end_hanging()

    def _hear_all(self, seconds: float) -> int:
        """Hear what has been answered, within `seconds`; how many."""
        answers = self._group.answers(seconds)
        for answer in answers:
            self._hear(answer)
        return len(answers)

    def _hear(self, answer: Answer) -> None:
        if answer.fault is not None:
            raise RunFailedError(f"actor {answer.actor}: {answer.fault}")
        if answer.is_lost:
            self._patience.forget(answer.actor)
            self._begin_again(answer.actor)
            return
        self._patience.answered(answer.actor)
        block = unpacked_block(answer.value)
        with self._changed:
            self._fruitless[answer.actor] = 0
            self._unsettled[answer.actor] = block.unsettled
            self._idle.add(answer.actor)
            self._pool.put(block)
            self._changed.notify_all()

    def _end_hanging(self) -> None:
        for actor, seconds in self._patience.hanging().items():
            self._counts.notices.append(f"actor {actor} has played nothing for {seconds:.0f} s")
            self._patience.forget(actor)
            self._group.end(actor)

    def _begin_again(self, actor: int) -> None:
        self._fruitless[actor] += 1

        if self._fruitless[actor] > MAX_FRUITLESS_LIVES:
            raise RunFailedError(f"actor {actor}: is lost each time before it has played a rollout")
        plan = self._plans[actor]
        self._plans[actor] = plan._replace(life=self._counts.new_life())
        self._group.start(self._plans[actor])
        with self._changed:
            self._counts.lose(actor, self._unsettled[actor])
            self._unsettled[actor] = plan.rows
            self._known[actor] = -1, 0
            self._idle.add(actor)

    def close(self) -> None:
        """End the thread and all actors."""
        self._closing = True
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._group.close()
