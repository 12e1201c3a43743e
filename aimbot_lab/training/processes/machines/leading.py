"""The rendezvous of torch's agent on the machine that leads: it decides who takes part."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from torch.distributed import HashStore, Store, TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousInfo
from torch.distributed.elastic.rendezvous.api import RendezvousStoreInfo

from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.training.processes.machines.meeting_point import MeetingPoint
from aimbot_lab.training.processes.machines.roster import Other, Roster
from aimbot_lab.training.processes.machines.task import Task
from aimbot_lab.training.processes.machines.team import Team
from aimbot_lab.training.processes.stop_signals import StoppedAtOnceError, StopSignals

LOOPBACK = "127.0.0.1"
LAST_CALL_SECONDS = 5.0  # for further machines, once enough are there to begin
SECONDS_TO_LEAVE = 10.0  # for the others to hear that all is over
TICK_SECONDS = 0.1


class TooFewError(RunFailedError):
    """Fewer machines came, or are left, than the training needs."""


class Leading(RendezvousHandler):
    """Begins a round of workers once the machines for it are there; see `Roster`."""

    def __init__(
        self,
        store: Store,
        team: Team,
        task: Task,
        *,
        point: MeetingPoint | None,
        signals: StopSignals,
    ) -> None:
        self._store, self._team, self._signals = store, team, signals
        self._report, self._progress = task.report, task.progress
        self._address = LOOPBACK if point is None else point.address
        self.roster = Roster(store, team, self._refuse)
        self._noticed: tuple[object] | None = None  # progress when somebody came to wait

    def _refuse(self, line: str) -> None:
        if self.roster.order.round <= 1 and not self.roster.order.world:
            raise ConfigurationError(line)  # nothing has begun: whoever is wrong, mend it
        self._report(f"{line}: it was turned away")

    def next_rendezvous(self) -> RendezvousInfo:
        """Call all machines and wait until enough are there.

        Raises StoppedAtOnceError where a user asks for the end, ConfigurationError where machines
        do not fit together, TooFewError after the patience.
        """
        self.roster.call()
        others = self._gathered()
        self._noticed = None
        self.roster.begin(others, port := _free_port(self._address))
        where = RendezvousStoreInfo(self._address, port)
        return RendezvousInfo(self._store, 0, 1 + len(others), where)

    def _gathered(self) -> list[Other]:
        began = changed = time.monotonic()
        known: list[Other] = []
        told = False
        while True:
            self.roster.look()
            if self._signals.number is not None or self.roster.stop_signal():
                raise StoppedAtOnceError
            others, now = self.roster.candidates(), time.monotonic()
            if others != known:
                known, changed = others, now
            if self._is_complete(others, now - changed):
                return others
            if not told and now - began > self._unsaid_s():
                told = True
                self._report(self._waiting(1 + len(others)))
            self._check_patience(1 + len(others), now - began)
            time.sleep(TICK_SECONDS)

    def _is_complete(self, others: list[Other], quiet_s: float) -> bool:
        there, team = 1 + len(others), self._team
        if there == team.most:
            return True
        if there < team.fewest or self.roster.busy():
            return False
        return self.roster.order.round > 1 or quiet_s > LAST_CALL_SECONDS

    def _unsaid_s(self) -> float:
        """How long nobody is told what is waited for: after a loss the others come at once."""
        return TICK_SECONDS if self.roster.order.round == 1 else LAST_CALL_SECONDS

    def _waiting(self, there: int) -> str:
        missing = self._team.fewest - there
        if missing <= 0:
            return "waiting a moment for further machines"
        return f"waiting for {missing} more {'machine' if missing == 1 else 'machines'}"

    def _check_patience(self, there: int, waited_s: float) -> None:
        if there < self._team.fewest and waited_s > self._team.patience_s:
            raise TooFewError(
                f"{there} of at least {self._team.fewest} machines are there after "
                f"{self._team.patience_s:g} s (--patience)"
            )

    def num_nodes_waiting(self) -> int:
        """How many machines are taken in now: once there is a checkpoint after they came."""
        waiting = self.roster.newcomers()
        if not waiting:
            self._noticed = None
            return 0
        progress = self._progress()
        if self._noticed is None:
            self._noticed = (progress,)
        if self._noticed == (progress,):
            return 0
        names = ", ".join(one.name for one in waiting)
        self._report(f"machine {names} joins; all go on from the newest checkpoint")
        return len(waiting)

    def end(self, code: int) -> None:
        """Have all machines end with `code`, and wait until they have heard it."""
        self.roster.end(code)
        until = time.monotonic() + min(SECONDS_TO_LEAVE, self._team.patience_s)
        self.roster.look()
        while not self.roster.all_left() and time.monotonic() < until:
            time.sleep(TICK_SECONDS)
            self.roster.look()

    @property
    def use_agent_store(self) -> bool:
        """Never: torch's would outlive a restart with addresses of the dead (pytorch#135712)."""
        return False

    def get_backend(self) -> str:
        """A name of this kind of rendezvous."""
        return "aimbot-lab"

    def get_run_id(self) -> str:
        """A name of what is trained, for workers to know that a launcher started them."""
        return self._address

    def is_closed(self) -> bool:
        """Whether all is over."""
        return self.roster.order.ended is not None

    def set_closed(self) -> None:
        """Nothing: `end` does it."""

    def shutdown(self) -> bool:
        """Nothing is left to do."""
        return True


def _free_port(address: str) -> int:
    with socket.create_server((address, 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def held_store(point: MeetingPoint | None, listener: socket.socket | None) -> Iterator[Store]:
    """The store at `point`, which listens by `listener`; one of this process alone without."""
    if point is None or listener is None:
        yield HashStore()
        return
    yield TCPStore(
        point.address,
        point.port,
        is_master=True,
        multi_tenant=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=SECONDS_TO_LEAVE),
        master_listen_fd=listener.detach(),
    )
