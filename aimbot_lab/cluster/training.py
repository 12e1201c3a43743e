"""One training whose processes Ray places: started, watched, and begun again after a loss.

The loop is ours and not Ray Train's, which begins anew after any error, counts losses over the
whole run, aborts at Ctrl-C, and runs the training in a thread, where no signal arrives.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from aimbot_lab.cluster.connection import ADDRESS, HeadLostError, connected
from aimbot_lab.cluster.places import PlacedRank, Places, ProcessStatus, machines_asked_for
from aimbot_lab.foundation.errors import ConfigurationError, LabError, RunFailedError, reason
from aimbot_lab.training.processes.supervisor import (
    LOOPBACK,
    STOPPED,
    ProcessEnd,
    ProcessEnds,
    Restarts,
    StoppedAtOnceError,
    StopSignals,
    Verdict,
    judged,
    meeting_variables,
)

SECONDS_BETWEEN_LOOKS = 0.5  # at the processes
SECONDS_BETWEEN_COUNTS = 20.0  # of free processors
SECONDS_BETWEEN_CALLS = 2.0  # to the head
SECONDS_TO_DIE = 10.0
PATIENCE = 120.0  # s that an actor may be silent
HEAD_PATIENCE = 20.0  # s; Ray itself ends our process, with a page of its own, after a minute


class LaunchCallbacks(NamedTuple):
    """What the launcher calls."""

    report: Callable[[str], None]  # a line about the processes
    say: Callable[[int, bytes], None]  # what the leader wrote to a descriptor
    progress: Callable[[], object]  # changes with every new checkpoint


class RayLaunch(NamedTuple):
    """What all processes run."""

    words: Sequence[str]  # of aimbot-lab
    environment: Mapping[str, str]
    leader_environment: Mapping[str, str]  # also
    span: tuple[int, int]  # least and greatest number of processes


def launch_on_ray(asked: RayLaunch, told: LaunchCallbacks) -> int:
    """The exit code of `aimbot-lab` with words, in processes that Ray places.

    As `supervisor.supervise`: after a loss all begin again, an error of the training
    ends all with its code, and a signal is passed on once. After a loss there may be fewer
    processes, and more where there is room for them.
    Raises ConfigurationError where there is no Ray or a machine can't take part, and HeadLostError,
    after which only this process's end is left: Ray would not let go of it for a minute.
    """
    if (address := os.environ.get(ADDRESS, "")).startswith("ray://"):
        raise ConfigurationError(
            f"--on ray: {ADDRESS}={address}: begin a training on a machine of the cluster, with "
            "HOST:PORT or auto"
        )
    with StopSignals() as signals, connected(asked.span[1]) as ray:
        signals.listen()  # Ray takes SIGTERM
        try:
            with machines_asked_for(asked.span):
                return _Launch(ray, asked, told, signals).run()
        except StoppedAtOnceError:
            return STOPPED


class _Launch:
    """The processes, in all their lives."""

    def __init__(
        self, ray: Any, asked: RayLaunch, told: LaunchCallbacks, signals: StopSignals
    ) -> None:
        self._asked, self._told, self._signals = asked, told, signals
        self._restarts = Restarts(told.progress)
        self._places = Places(
            ray, asked.span, os.getcwd(), check_stop=self._check_stop, report=told.report
        )
        self._ray = ray
        self._head = RayHead(ray.get_runtime_context().gcs_address)

    def run(self) -> int:
        """The exit code."""
        lost: set[int] = set()
        try:
            while True:
                life = self._begun(lost)
                verdict = life.watched()
                lost = life.places_lost
                if verdict.error:
                    self._told.report(verdict.error)
                code = verdict.code
                if verdict.loss is not None:
                    again, line = self._restarts.after(verdict.loss)
                    self._told.report(line)
                    code = code if again else 1
                if code is not None:
                    self._places.drop()
                    return code
                life.kill()
                if verdict.loss is None:
                    self._told.report("there is room for more processes: all restart")
                    self._places.drop()
        except HeadLostError:
            raise  # which Ray would wait for
        except BaseException:
            self._places.drop()
            raise

    def _check_stop(self) -> None:
        self._head.check()
        if self._signals.number is not None:
            raise StoppedAtOnceError

    def _begun(self, lost: set[int]) -> "Life":
        """The processes, started anew; `lost` are the places that are gone."""
        self._check_stop()
        number, (least, most) = len(self._places.all), self._asked.span
        self._places.fill(lost)
        places = self._places.all
        if least < most and len(places) != number:
            self._told.report(f"processes: {len(places)} ({least} to {most})")
        is_one_machine = len({place.address for place in places}) == 1
        address = LOOPBACK if is_one_machine else places[0].address
        port = self._ray.get(places[0].actor.free_port.remote())
        meeting = meeting_variables(len(places), address, port)
        common = {**self._asked.environment, **meeting}
        for rank, place in enumerate(places):
            own = {**(self._asked.leader_environment if rank == 0 else {}), "RANK": str(rank)}
            place.actor.start.remote(
                self._asked.words,
                {**common, **own},
                address=LOOPBACK if is_one_machine else place.address,
            )
        missing = self._asked.span[1] - len(places)
        growth = Growth(self._places.room, missing, self._told.progress)
        return Life(
            self._ray, places, self._told, signals=self._signals, growth=growth, head=self._head
        )


class Life:
    """One start of all processes, which `places` have been told to begin."""

    def __init__(
        self,
        ray: Any,
        places: Sequence[PlacedRank],
        told: LaunchCallbacks,
        *,
        signals: StopSignals,
        growth: "Growth",
        head: "RayHead",
    ) -> None:
        self._ray, self._places, self._told = ray, places, told
        self._signals, self._growth, self._head = signals, growth, head
        self._looks: dict[Any, tuple[int, float]] = {}  # under way: rank and beginning
        self._ends = ProcessEnds()
        self._asked_to_stop = False
        self.places_lost: set[int] = set()
        """Ranks whose place is gone, not only their process."""

    def watched(self) -> Verdict:
        """What comes next, once all have ended, one is too late, or there is room for more.

        Raises StoppedAtOnceError where the user asks to stop twice, HeadLostError, once all had
        time to save, and what a place raises.
        """
        for rank in range(len(self._places)):
            self._look(rank)
        while self._looks and not self._ends.is_too_late_for_others(stopping=self._asked_to_stop):
            self._pass_stop_on()
            ready, _ = self._ray.wait(
                list(self._looks), num_returns=1, timeout=SECONDS_BETWEEN_LOOKS
            )
            for reference in ready:
                self._take_in(reference)
            self._give_up_silent_ones()
            if not (self._ends.by_rank or self._asked_to_stop) and self._growth.is_due:
                return Verdict(None)
        if self._head.is_gone:
            self.kill()
        self._head.check()
        return judged([*self._ends.by_rank.values()], stopping=self._asked_to_stop)

    def kill(self) -> None:
        """End all processes that still run; their places stay."""
        left = [one for rank, one in enumerate(self._places) if rank not in self.places_lost]
        gone = [place.actor.kill.remote() for place in left]
        self._ray.wait(gone, num_returns=len(gone), timeout=SECONDS_TO_DIE)

    def _look(self, rank: int) -> None:
        reference = self._places[rank].actor.look.remote(SECONDS_BETWEEN_LOOKS)
        self._looks[reference] = rank, time.monotonic()

    def _take_in(self, reference: Any) -> None:
        rank, _ = self._looks.pop(reference)
        seen = self._seen(rank, reference)
        for descriptor, data in seen.said:
            self._told.say(descriptor, data)
        if seen.ended is None:
            self._look(rank)
        else:
            self._ends.add(seen.ended)

    def _seen(self, rank: int, reference: Any) -> ProcessStatus:
        try:
            seen: ProcessStatus = self._ray.get(reference)
        except self._ray.exceptions.RayActorError:
            return ProcessStatus((), self._lost(rank))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LabError):
                raise error.cause from error
            raise RunFailedError(f"rank {rank} can't be watched: {reason(error)}") from error
        return seen

    def _lost(self, rank: int) -> ProcessEnd:
        self.places_lost.add(rank)
        address = self._places[rank].address
        return ProcessEnd(rank, -9, f"rank {rank} was lost with its place on {address}")

    def _give_up_silent_ones(self) -> None:
        for reference, (rank, begun) in [*self._looks.items()]:
            if time.monotonic() - begun > PATIENCE:
                del self._looks[reference]
                self._ends.add(self._lost(rank))

    def _pass_stop_on(self) -> None:
        number = signal.SIGTERM if self._head.is_gone else self._signals.number
        if self._signals.again:
            raise StoppedAtOnceError
        if number is not None and not self._asked_to_stop:
            self._asked_to_stop = True
            for rank, place in enumerate(self._places):
                if rank not in self._ends.by_rank:
                    place.actor.send_signal.remote(number)


class Growth:
    """When a training with fewer processes than it may have is to begin again with more."""

    def __init__(
        self,
        room: Callable[[], int],
        missing: int,
        progress: Callable[[], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room, self._missing, self._progress, self._clock = room, missing, progress, clock
        self._looked = clock()
        self._found = False
        self._reached: object = None

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint was written since there is room: what is lost is then little."""
        if not self._missing:
            return False
        if self._clock() - self._looked >= SECONDS_BETWEEN_COUNTS and not self._found:
            self._looked = self._clock()
            self._found, self._reached = self._room() > 0, self._progress()
        return self._found and self._progress() != self._reached


class RayHead:
    """The head at HOST:PORT; where no address is known, it never counts as gone."""

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.address, self._clock = address, clock
        self._looked = self._answered = clock()

    @property
    def is_gone(self) -> bool:
        """Whether nothing has listened there for `HEAD_PATIENCE`."""
        now = self._clock()
        if self.address and now - self._looked >= SECONDS_BETWEEN_CALLS:
            self._looked = now
            if _answers(self.address):
                self._answered = now
        return self._looked - self._answered >= HEAD_PATIENCE

    def check(self) -> None:
        """Raise HeadLostError if it is gone."""
        if self.is_gone:
            raise HeadLostError(
                f"Ray's head at {self.address} is gone; aimbot-lab resume continues from the "
                "newest checkpoint"
            )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError):
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_BETWEEN_CALLS).close()
        return True
    return False
