"""The rendezvous of torch's agent on a machine that follows: it waits for the leader's orders."""

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousInfo
from torch.distributed.elastic.rendezvous.api import RendezvousStoreInfo

from aimbot_lab.foundation.errors import ConfigurationError, LabError, RunFailedError
from aimbot_lab.training.processes.machines.meeting_point import MeetingPoint
from aimbot_lab.training.processes.machines.messages import (
    COUNT,
    FAILURES,
    ORDER,
    Hello,
    Order,
    Said,
    hello_key,
    order_of,
    put,
    said_key,
)
from aimbot_lab.training.processes.machines.team import Team
from aimbot_lab.training.processes.stop_signals import StoppedAtOnceError, StopSignals

SECONDS_TO_ANSWER = 15.0  # for who listens at the meeting point to prove a leader
SECONDS_TO_CONNECT = 1.0
TICK_SECONDS = 0.1
BEAT_SECONDS = 0.2


class LeaderLostError(RunFailedError):
    """The machine that leads does not answer any more."""


class EndedError(LabError):
    """All is over, with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the training ended with exit code {code}")
        self.exit_code = code


class Correspondence:
    """What this machine says, and the newest order; a thread carries both, which may hang."""

    def __init__(self, store: Store, hello: Hello) -> None:
        self.store = store
        self.number = int(store.add(COUNT, 1))
        self.order, self._said, self.heard = Order(), Said(), time.monotonic()
        self._broken = False
        put(store, hello_key(self.number), hello)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def say(self, **changes: Any) -> None:
        """Change what is said."""
        self._said = replace(self._said, **changes)

    def silence(self) -> float:
        """Seconds since the leader was last heard; infinite once the connection is broken."""
        return float("inf") if self._broken else time.monotonic() - self.heard

    def leave(self) -> None:
        """Say, if somebody still listens, that nobody is here any more."""
        self.say(left=True)
        self._left.set()
        self._thread.join(SECONDS_TO_CONNECT)

    def _carry(self) -> None:
        while True:
            last = self._left.is_set()
            try:
                self._said = replace(self._said, beat=self._said.beat + 1)
                put(self.store, said_key(self.number), self._said)
                if last:
                    return
                self.order = order_of(_order(self.store))
                self.heard = time.monotonic()
            except (*FAILURES, TypeError):
                self._broken = True
                return
            self._left.wait(BEAT_SECONDS)


def _order(store: Store) -> dict[str, Any]:
    return dict(json.loads(store.get(ORDER)))


class Following(RendezvousHandler):
    """Takes part in the rounds that the leader begins with this machine."""

    def __init__(
        self,
        talk: Correspondence,
        team: Team,
        point: MeetingPoint,
        *,
        signals: StopSignals,
        report: Callable[[str], None],
    ) -> None:
        self.talk, self._team, self._point = talk, team, point
        self._signals, self._report = signals, report
        self.taken = Order()  # of which our workers are
        self._joined = self._waits = False

    @property
    def order(self) -> Order:
        """The newest one. Raises EndedError, LeaderLostError, ConfigurationError, if refused."""
        order = self.talk.order
        if (reason := order.refused.get(str(self.talk.number))) is not None:
            raise ConfigurationError(f"--meet {self._point.shown}: this machine {reason}")
        if order.ended is not None:
            raise EndedError(order.ended)
        if self.talk.silence() > self._team.patience_s:
            raise LeaderLostError(f"{self._point.shown} does not answer")
        return order

    @property
    def first_rank(self) -> int:
        """Of this machine's workers."""
        return self.taken.ranks[str(self.talk.number)]

    def next_rendezvous(self) -> RendezvousInfo:
        """Wait for a round with this machine. Raises as `order`, and StoppedAtOnceError."""
        self.talk.say(round=0, ends=())
        while True:
            order = self.order
            if self._signals.number is not None:
                self._leave_or_ask()
            if (
                order.world
                and str(self.talk.number) in order.ranks
                and order.round > self.taken.round
            ):
                return self._taken_in(order)
            if order.world and not (self._waits or self._joined):
                self._waits = True
                self._report(_why_waiting(order))
            time.sleep(TICK_SECONDS)

    def _leave_or_ask(self) -> None:
        """The end, for all if this machine has taken part; at once if asked for twice."""
        if self._signals.again or not self._joined:
            raise StoppedAtOnceError
        self.talk.say(stop=self._signals.number)

    def _taken_in(self, order: Order) -> RendezvousInfo:
        self.taken = order
        self.talk.say(round=order.round)
        first, number = order.ranks[str(self.talk.number)], self._team.processes
        if not self._joined:
            self._joined = True
            ranks = f"rank {first}" if number == 1 else f"ranks {first} to {first + number - 1}"
            self._report(f"joined the training at {self._point.shown}, {ranks} of {order.world}")
        where = RendezvousStoreInfo(self._point.address, order.port)
        place = list(order.ranks).index(str(self.talk.number))
        return RendezvousInfo(self.talk.store, place, len(order.ranks), where)

    def num_nodes_waiting(self) -> int:
        """Not 0 once another round is called than that of our workers."""
        return int(self.order.round > self.taken.round)

    @property
    def use_agent_store(self) -> bool:
        """Never, as on the machine that leads."""
        return False

    def get_backend(self) -> str:
        """A name of this kind of rendezvous."""
        return "aimbot-lab"

    def get_run_id(self) -> str:
        """A name of what is trained, for workers to know that a launcher started them."""
        return self._point.shown

    def is_closed(self) -> bool:
        """Whether all is over."""
        return self.talk.order.ended is not None

    def set_closed(self) -> None:
        """Nothing: the leader does it."""

    def shutdown(self) -> bool:
        """Nothing is left to do."""
        return True


def _why_waiting(order: Order) -> str:
    there = f"{len(order.ranks)} machine{'' if len(order.ranks) == 1 else 's'}"
    if order.full:
        return f"waiting: the training has {there} already, as many as are wanted"
    return f"waiting: the training has {there}, and takes this one in at its next checkpoint"


def reached(point: MeetingPoint, until: float, signals: StopSignals) -> Store:
    """The leader's store, tried until that time.

    Raises StoppedAtOnceError, LeaderLostError where nobody listens, ConfigurationError where
    somebody else does.
    """
    while True:
        if signals.number is not None:
            raise StoppedAtOnceError
        try:
            socket.create_connection((point.address, point.port), SECONDS_TO_CONNECT).close()
            break
        except OSError as error:
            if time.monotonic() > until:
                why = error.strerror or str(error)
                raise LeaderLostError(
                    f"--meet {point.shown}: no machine leads there ({why}); begin there too, where "
                    "a run has begun with --resume"
                ) from error
            time.sleep(TICK_SECONDS)
    return leaders_store(point)


def leaders_store(point: MeetingPoint) -> Store:
    """The store of the leader that listens at `point`. Raises ConfigurationError if it is none."""
    answers: list[Store] = []
    # Torch's store waits without end for another program's answer.
    asking = threading.Thread(target=_ask, args=(point, answers), daemon=True)
    asking.start()
    asking.join(SECONDS_TO_ANSWER)
    if not answers:
        raise ConfigurationError(
            f"--meet {point.shown}: port {point.port} is in use by another program; give another "
            "port"
        )
    return answers[0]


def _ask(point: MeetingPoint, answers: list[Store]) -> None:
    with suppress(*FAILURES, TypeError):
        store = TCPStore(
            point.address,
            point.port,
            is_master=False,
            multi_tenant=True,
            wait_for_workers=False,
            timeout=timedelta(seconds=SECONDS_TO_ANSWER),
        )
        order_of(_order(store))
        answers.append(store)
