"""Blocks from all actors: in step with the learner, or as they come while it learns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Condition, Thread
from time import monotonic
from typing import Any

from aimbot_lab.foundation.errors import LabError, RunFailedError
from aimbot_lab.training.actors.actor import ActorGroup, Answer
from aimbot_lab.training.actors.block import (
    ActorCounts,
    ActorPlan,
    Block,
    BlockRequest,
    Scenarios,
    unpacked_block,
)
from aimbot_lab.training.settings import ActorSettings

LEAST_SECONDS = 120.0
TIMES_THE_SLOWEST = 10.0
TIMES_A_PROGRAM = 3.0
MAX_GAP_SECONDS = 5.0  # between two looks at the clock; what is beyond, all were suspended


class Patience:
    """Notes when actors are asked for blocks, and which of them hang.

    An actor hangs once it has taken longer than LEAST_SECONDS, TIMES_THE_SLOWEST as long as the
    slowest block so far, and TIMES_A_PROGRAM the `program_seconds` that its world waits for a
    program of its own. It is judged from its second block on: the first may wait for a machine, and
    compile. Of the time between two calls only MAX_GAP_SECONDS count, so `hanging` is to be called
    often while blocks are waited for: after a suspension (Ctrl-Z) no actor counts as hanging.
    """

    def __init__(
        self, *, program_seconds: float = 0.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._least = max(LEAST_SECONDS, TIMES_A_PROGRAM * program_seconds)
        self._clock = clock
        self._asked: dict[int, float] = {}  # when, by actor
        self._proven: set[int] = set()  # have given a block
        self._slowest = 0.0
        self._read, self._passed = clock(), 0.0

    def _now(self) -> float:
        read = self._clock()
        self._passed += min(read - self._read, MAX_GAP_SECONDS)
        self._read = read
        return self._passed

    def asked(self, actor: int) -> None:
        """`actor` is asked for a block now."""
        self._asked[actor] = self._now()

    def answered(self, actor: int) -> None:
        """`actor` has given its block."""
        then = self._asked.pop(actor, None)
        if then is not None:
            self._slowest = max(self._now() - then, self._slowest)
            self._proven.add(actor)

    def forget(self, actor: int) -> None:
        """Stop waiting for `actor`; its successor is judged anew."""
        self._asked.pop(actor, None)
        self._proven.discard(actor)

    def hanging(self) -> dict[int, float]:
        """For how many seconds each actor has taken that hangs."""
        now, limit = self._now(), max(self._least, TIMES_THE_SLOWEST * self._slowest)
        taken = {actor: now - then for actor, then in self._asked.items()}
        return {
            actor: seconds
            for actor, seconds in taken.items()
            if actor in self._proven and seconds > limit
        }


LOOK_SECONDS = 0.2  # between two looks whether the training shall end


class InStep:
    """Blocks of all `actors`, one of each, in the order of their rows.

    Raises RunFailedError where an actor is gone or hangs: its rows are a part of the training's
    state.
    """

    def __init__(
        self,
        group: ActorGroup,
        actors: int,
        counts: ActorCounts,
        patience: Patience,
    ) -> None:
        self._group, self._actors, self._counts = group, range(actors), counts
        self._patience = patience

    def resume(self, state: bytes) -> int:
        """The number of the scenario in force where the checkpoint's packed `state` was kept."""
        return int(answers_of_all(self._group, self._actors, "resume", state)[0])

    def states(self, scenarios: Scenarios) -> list[bytes]:
        """The packed state of every actor's rows, in their order, with the new `scenarios` set."""
        return answers_of_all(self._group, self._actors, "state", scenarios)

    def take(self, order: BlockRequest, should_stop: Callable[[], bool]) -> list[Block] | None:
        """The blocks that all play as `order` says; None where `should_stop` says so."""
        found = answers_of_all(
            self._group,
            self._actors,
            "block",
            order,
            should_stop=should_stop,
            patience=self._patience,
        )
        self._counts.made += len(found)
        return [unpacked_block(one) for one in found] or None

    def close(self) -> None:
        """End all actors."""
        self._group.close()


def answers_of_all(
    group: ActorGroup,
    actors: Sequence[int],
    what: str,
    *given: Any,
    should_stop: Callable[[], bool] = lambda: False,
    kind: type[LabError] = RunFailedError,
    patience: Patience | None = None,
) -> list[Any]:
    """What each of `actors` answers to `what`, in their order; nothing where `should_stop` says so.

    Raises an error of `kind` for what one of them can't do, and RunFailedError where one is lost,
    or hangs by the measure of `patience`; without one it is waited for.
    """
    for actor in actors:
        if patience is not None:
            patience.asked(actor)
        group.ask(actor, what, *given)
    found: dict[int, Any] = {}
    while len(found) < len(actors):
        answers = group.answers(LOOK_SECONDS)
        found.update(_values(answers, kind))
        if patience is not None:
            for one in answers:
                patience.answered(one.actor)
            if not answers:
                _refuse(patience.hanging())
        if should_stop():
            return []
    return [found[actor] for actor in actors]


def _values(answers: Sequence[Answer], kind: type[LabError]) -> Iterator[tuple[int, Any]]:
    for answer in answers:
        if answer.fault is not None:
            raise kind(f"actor {answer.actor}: {answer.fault}")
        if answer.is_lost:
            raise RunFailedError(
                f"actor {answer.actor} is gone, and its rows with it: resume the run, or "
                "set train.actors.lag: 1, with which lost actors restart"
            )
        yield answer.actor, answer.value


def _refuse(hanging: Mapping[int, float]) -> None:
    for actor, seconds in hanging.items():
        raise RunFailedError(
            f"actor {actor} has played nothing for {seconds:.0f} s: resume the run, or set "
            "train.actors.lag: 1, with which hanging actors restart"
        )


class BlockPool:
    """Holds blocks up to a number; gives the oldest ones, and drops those that are too old.

    Blocks that wait grow old. So where the learner finds all that it needs, there is room for one
    less next time, down to those of one update; once it has to wait, for those of one more update,
    up to the size that the settings name.
    """

    def __init__(self, settings: ActorSettings, counts: ActorCounts) -> None:
        self._counts = counts
        self._lag, self._size = settings.lag, settings.room
        self._wanted = settings.preload or 0  # before the first are given
        self._allowed = self._size
        self._is_awaited = False
        self._blocks: list[Block] = []

    @property
    def room(self) -> int:
        """How many more may come."""
        return max(self._allowed - len(self._blocks), 0)

    def put(self, block: Block) -> None:
        """Keep `block`. Raises ValueError where as many as the settings name wait already."""
        if len(self._blocks) == self._size:
            raise ValueError(f"the pool is full: {self._size} blocks")
        self._blocks.append(block)
        self._counts.made += 1

    def take(self, count: int, version: int) -> list[Block] | None:
        """The `count` oldest blocks for the update number `version`; None where there are fewer.

        What is older than the lag allows is dropped.
        """
        young = [one for one in self._blocks if version - one.version <= self._lag]
        self._counts.dropped += len(self._blocks) - len(young)
        self._blocks = sorted(young, key=lambda one: one.version)
        if len(self._blocks) < max(count, self._wanted):
            if not self._is_awaited:  # others may play on while one hangs
                self._allowed = min(self._allowed + count, self._size)
            self._is_awaited = True
            return None
        self._wanted = 0
        if not self._is_awaited:
            self._allowed = max(self._allowed - 1, count)
        self._is_awaited = False
        taken, self._blocks = self._blocks[:count], self._blocks[count:]
        return taken


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
        self._newest: BlockRequest | None = None
        self._scenario: Scenarios = ()  # the one in force
        self._idle = {plan.number for plan in plans}
        self._known = dict.fromkeys(self._idle, (-1, 0))  # version and scenario, by actor
        self._fruitless = dict.fromkeys(self._idle, 0)
        self._failure: BaseException | None = None
        self._closing = False
        self._thread: Thread | None = None

    def take(self, order: BlockRequest, should_stop: Callable[[], bool]) -> list[Block] | None:
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
        """Request blocks of idle actors, as far as the pool has room for them.

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

    def _order_for(self, actor: int) -> BlockRequest:
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
            while self._hear_all(0.0):  # an actor that has answered does not hang
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
