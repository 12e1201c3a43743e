"""Actors in step: all play by the newest weights, and the learner waits for all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from aimbot_lab.foundation.errors import LabError, RunFailedError
from aimbot_lab.training.actors.block import Block, Order, Scenarios, unpacked_block
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.training.actors.group import ActorGroup, Answer
from aimbot_lab.training.actors.patience import Patience

LOOK_SECONDS = 0.2  # between two looks whether the training shall end


class InStep:
    """Blocks of so many `actors`, one of each, in the order of their rows.

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

    def take(self, order: Order, should_stop: Callable[[], bool]) -> list[Block] | None:
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
                f"actor {answer.actor} is gone, and its rows with it: resume the run, or let "
                "actors come back by train.actors.lag: 1"
            )
        yield answer.actor, answer.value


def _refuse(hanging: Mapping[int, float]) -> None:
    for actor, seconds in hanging.items():
        raise RunFailedError(
            f"actor {actor} has played nothing for {seconds:.0f} s: resume the run, or let actors "
            "that hang begin again by train.actors.lag: 1"
        )
