"""The processes of a training from their start until they have ended, or have to."""

import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aimbot_lab.cluster.growth import Growth
from aimbot_lab.cluster.head import Head
from aimbot_lab.cluster.places import Place, StoppedAtOnceError
from aimbot_lab.cluster.process_actor import Seen
from aimbot_lab.foundation.errors import LabError, RunFailedError, reason
from aimbot_lab.training.processes.judgement import Ended, Verdict, judged
from aimbot_lab.training.processes.stop_signals import StopSignals

LOOK_SECONDS = 0.5
SECONDS_TO_FOLLOW = 5.0  # for the others to end by themselves after one has
SECONDS_TO_SAVE = 30.0  # the same, once all were asked to stop, and for a leader after an error
SECONDS_TO_DIE = 10.0
PATIENCE = 120.0  # s that an actor may be silent


class Told(NamedTuple):
    """Whom the launcher tells what."""

    report: Callable[[str], None]  # a line about the processes
    say: Callable[[int, bytes], None]  # what the leader wrote to a descriptor
    progress: Callable[[], object]  # changes with every new checkpoint


class Life:
    """One start of all processes, which `places` have been told to begin."""

    def __init__(
        self,
        ray: Any,
        places: Sequence[Place],
        told: Told,
        *,
        signals: StopSignals,
        growth: Growth,
        head: Head,
    ) -> None:
        self._ray, self._places, self._told = ray, places, told
        self._signals, self._growth, self._head = signals, growth, head
        self._looks: dict[Any, tuple[int, float]] = {}  # under way: rank and beginning
        self._ends: dict[int, Ended] = {}
        self._first_end: float | None = None
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
        while self._looks and not self._is_too_late():
            self._pass_stop_on()
            ready, _ = self._ray.wait(list(self._looks), num_returns=1, timeout=LOOK_SECONDS)
            for reference in ready:
                self._take_in(reference)
            self._give_up_silent_ones()
            if not (self._ends or self._asked_to_stop) and self._growth.is_due:
                return Verdict(None)
        if self._head.is_gone:
            self.kill()
        self._head.check()
        return judged([*self._ends.values()], stopping=self._asked_to_stop)

    def kill(self) -> None:
        """End all processes that still run; their places stay."""
        left = [one for rank, one in enumerate(self._places) if rank not in self.places_lost]
        gone = [place.actor.kill.remote() for place in left]
        self._ray.wait(gone, num_returns=len(gone), timeout=SECONDS_TO_DIE)

    def _look(self, rank: int) -> None:
        reference = self._places[rank].actor.look.remote(LOOK_SECONDS)
        self._looks[reference] = rank, time.monotonic()

    def _take_in(self, reference: Any) -> None:
        rank, _ = self._looks.pop(reference)
        seen = self._seen(rank, reference)
        for descriptor, data in seen.said:
            self._told.say(descriptor, data)
        if seen.ended is None:
            self._look(rank)
            return
        self._ends[rank] = seen.ended
        if self._first_end is None and (rank == 0 or not seen.ended.well):
            self._first_end = time.monotonic()

    def _seen(self, rank: int, reference: Any) -> Seen:
        try:
            seen: Seen = self._ray.get(reference)
        except self._ray.exceptions.RayActorError:
            return self._lost(rank)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LabError):
                raise error.cause from error
            raise RunFailedError(f"rank {rank} can't be watched: {reason(error)}") from error
        return seen

    def _lost(self, rank: int) -> Seen:
        self.places_lost.add(rank)
        address = self._places[rank].machine.address
        return Seen((), Ended(rank, -9, f"rank {rank} was lost with its place on {address}"))

    def _give_up_silent_ones(self) -> None:
        for reference, (rank, begun) in [*self._looks.items()]:
            if time.monotonic() - begun > PATIENCE:
                del self._looks[reference]
                ended = self._lost(rank).ended
                assert ended is not None
                self._ends[rank] = ended
                self._first_end = self._first_end or time.monotonic()

    def _pass_stop_on(self) -> None:
        number = signal.SIGTERM if self._head.is_gone else self._signals.number
        if self._signals.again:
            raise StoppedAtOnceError
        if number is not None and not self._asked_to_stop:
            self._asked_to_stop = True
            for rank, place in enumerate(self._places):
                if rank not in self._ends:
                    place.actor.send_signal.remote(number)

    def _is_too_late(self) -> bool:
        # An error that all met: the leader may still be saving what the run needs.
        failed = any(one.failed for one in self._ends.values())
        seconds = SECONDS_TO_SAVE if self._asked_to_stop or failed else SECONDS_TO_FOLLOW
        return self._first_end is not None and time.monotonic() - self._first_end > seconds
