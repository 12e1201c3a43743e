"""Blocks, episodes and groups of actors for tests, without a world."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.training.actors.actor import ActorHost, Answer
from aimbot_lab.training.actors.block import ActorPlan, Block, BlockRequest
from aimbot_lab.training.callbacks.lesson_callback import packed_episodes
from aimbot_lab.training.checkpoint import pack, random_state, restore_random


def ended(
    orders: Sequence[int], running: Sequence[int], *, scenario: int = 1, seconds: float = 0.0
) -> EpisodeBatch:
    """Episodes of these ranks, won, beside which those of the ranks `running` go on."""
    count = len(orders)
    return EpisodeBatch(
        row=np.arange(count),
        agent=np.zeros(count, np.int64),
        order=np.array(orders, np.int64),
        scenario=np.full(count, scenario),
        cell=(Cell("goto", 1),) * count,
        outcome=np.ones(count, np.int8),
        length=np.full(count, 3),
        terms=np.zeros((count, 2)),
        running_order=np.array(running, np.int64),
        running_scenario=np.full(len(running), scenario),
        columns={"seconds": np.full(count, seconds)},
    )


def block(
    actor: int, version: int, steps: Sequence[EpisodeBatch] = (), running: int | None = None
) -> Block:
    """A block with these episodes and no samples."""
    return Block(
        actor=actor,
        version=version,
        columns={},
        shown=None,
        ends=None,
        episodes=packed_episodes(steps, 0),
        running=running,
        unsettled=2,
        notices=(),
        lost_episodes=0,
        unread=(),
    )


class ScriptedActors:
    """A group whose actors answer each order at once, as `play` says; None: one is lost."""

    def __init__(self, play: Callable[[ActorPlan, BlockRequest], Block | str | None]) -> None:
        self._play, self.plans = play, {}
        self.orders: list[tuple[int, BlockRequest]] = []
        self.lives: list[tuple[int, int]] = []
        self.ended: list[int] = []
        self._asked: list[tuple[int, BlockRequest]] = []

    def start(self, plan: ActorPlan) -> None:
        self.plans[plan.number] = plan
        self.lives.append((plan.number, plan.life))

    def ask(self, actor: int, what: str, *given: Any) -> None:
        assert what == "block"  # whoever plays has got ready
        self._asked.append((actor, *given))
        self.orders.append((actor, *given))

    def answers(self, seconds: float) -> Sequence[Answer]:
        del seconds
        asked, self._asked = self._asked, []
        return [self._answer(actor, order) for actor, order in asked]

    def _answer(self, actor: int, order: BlockRequest) -> Answer:
        found = self._play(self.plans[actor], order)
        if found is None:
            return Answer(actor, is_lost=True)
        if isinstance(found, str):
            return Answer(actor, fault=found)
        return Answer(actor, pack(found._asdict()))

    def end(self, actor: int) -> None:
        self.ended.append(actor)

    def close(self) -> None:
        self.plans = {}


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
