"""The machines of a training as the one that leads sees them, and its orders for them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch.distributed import Store  # type: ignore[attr-defined]

from aimbot_lab.training.processes.machines.messages import (
    COUNT,
    FAILURES,
    ORDER,
    Hello,
    Order,
    Said,
    found,
    hello_key,
    put,
    said_key,
    said_of,
)
from aimbot_lab.training.processes.machines.team import Team

LEADER = 0  # number of the machine that leads
NOT_A_MESSAGE = (*FAILURES, TypeError, KeyError)


@dataclass
class Other:
    """A machine that follows, by what it last said."""

    number: int
    hello: Hello
    said: Said = field(default_factory=Said)
    heard: float = field(default_factory=time.monotonic)  # when it last said something new
    refused: bool = False

    @property
    def name(self) -> str:
        """For a person."""
        return f"{self.hello.name} ({self.hello.address})"


class Roster:
    """Who is there, who takes part, and the order that all follow.

    `refuse` is called with why a machine can't take part.
    """

    def __init__(self, store: Store, team: Team, refuse: Callable[[str], None]) -> None:
        self._store, self._team, self._refuse = store, team, refuse
        self._others: dict[int, Other] = {}
        self.order = Order()
        self._give(self.order)

    def _give(self, order: Order) -> None:
        self.order = order
        put(self._store, ORDER, order)

    def look(self) -> None:
        """Read what the others have said."""
        for number in range(1, self._store.add(COUNT, 0) + 1):
            try:
                if number not in self._others:
                    self._meet(number)
                elif (document := found(self._store, said_key(number))) is not None:
                    self._hear(self._others[number], document)
            except NOT_A_MESSAGE:
                continue  # it will be silent

    def _hear(self, other: Other, document: dict[str, Any]) -> None:
        said = said_of(document)
        if said.beat != other.said.beat:
            other.said, other.heard = said, time.monotonic()

    def _meet(self, number: int) -> None:
        document = found(self._store, hello_key(number))
        if document is None:
            return
        other = self._others[number] = Other(number, Hello(**document))
        if (reason := self._fault(other)) is not None:
            other.refused = True
            self._give(
                replace(self.order, refused={**self.order.refused, str(other.number): reason})
            )
            self._refuse(f"machine {other.name} {reason}")

    def _fault(self, other: Other) -> str | None:
        """Why the machine can't take part, if it can't."""
        for what in {**self._team.about, **other.hello.about}:
            own, theirs = self._team.about.get(what), other.hello.about.get(what)
            if own != theirs:
                return (
                    f"has another {what} than the one that leads: {theirs}, not {own}; all must "
                    "be given the same"
                )
        most = self._team.shards
        if most is not None and self._team.processes + other.hello.processes > most:
            return (
                f"has {other.hello.processes} processes, the one that leads "
                f"{self._team.processes}: there are only {most} shards to share out (train.shards)"
            )
        return None

    def silence(self, other: Other) -> float:
        """Seconds since the machine last said something."""
        return time.monotonic() - other.heard

    def _there(self) -> Iterator[Other]:
        """Machines that can take part, now or later."""
        return (other for other in self._listening() if not other.refused)

    def _listening(self) -> Iterator[Other]:
        """Machines that hear orders, also those that were turned away."""
        for other in self._others.values():
            if not (other.said.left or self.silence(other) > self._team.silence_s):
                yield other

    def members(self) -> list[Other]:
        """The machines of the present round, the leader left out."""
        return [self._others[int(one)] for one in self.order.ranks if int(one) != LEADER]

    def gone(self) -> list[str]:
        """Why members of the present round are no longer there, by machine."""
        return [
            f"machine {one.name} "
            + ("left" if one.said.left else f"has been silent for {self._team.silence_s:.0f} s")
            for one in self.members()
            if one.said.left or self.silence(one) > self._team.silence_s
        ]

    def candidates(self) -> list[Other]:
        """Machines with which the next round could begin now, as many as there is room for."""
        room, processes = self._team.most - 1, self._team.processes
        chosen: list[Other] = []
        for one in self._there():
            wanted = processes + one.hello.processes
            fits = self._team.shards is None or wanted <= self._team.shards
            if one.said.round == 0 and fits and len(chosen) < room:
                chosen.append(one)
                processes = wanted
        return chosen

    def busy(self) -> list[Other]:
        """Machines whose workers of an earlier round have not been ended yet."""
        return [one for one in self._there() if one.said.round]

    def newcomers(self) -> list[Other]:
        """Machines that wait although there is room for them in the present round."""
        room = self._team.most - len(self.order.ranks)
        members = self.members()
        total = self.order.world
        return [
            one
            for one in self._there()
            if one not in members
            and one.said.round == 0
            and (self._team.shards is None or total + one.hello.processes <= self._team.shards)
        ][:room]

    def stop_signal(self) -> int | None:
        """The signal by which the user of another machine asks for the end, if one does."""
        return next((one.said.stop for one in self._others.values() if one.said.stop), None)

    def call(self) -> None:
        """Have all end their workers and wait for the next round."""
        self._give(replace(self.order, round=self.order.round + 1, ranks={}, world=0, full=False))

    def begin(self, others: list[Other], port: int) -> None:
        """Begin the round that was called with these machines, whose workers meet at `port`."""
        ranks, world = {str(LEADER): 0}, self._team.processes
        for one in others:
            ranks[str(one.number)] = world
            world += one.hello.processes
        full = len(ranks) == self._team.most
        self._give(replace(self.order, ranks=ranks, world=world, port=port, full=full))

    def stop(self, number: int) -> None:
        """Have all pass the signal on to their workers: a user asks for the end."""
        if not self.order.stop:
            self._give(replace(self.order, stop=number))

    def end(self, code: int) -> None:
        """Have all end with this exit code."""
        self._give(replace(self.order, ended=code))

    def all_left(self) -> bool:
        """Whether nobody still has to hear that order."""
        return not list(self._listening())
