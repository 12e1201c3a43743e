"""One command in several processes of this machine: all begin together, go on together, and end.

Only a loss is mended by a new beginning: a signal, or LostError's exit code. Any other error would
be met again, so it ends the run. Once the process that leads has ended well, the run has its end,
whatever the others do. `cluster` judges its processes by the same rules. Nothing heavy is loaded.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import IO, NamedTuple

from aimbot_lab.foundation import tied_start
from aimbot_lab.foundation.errors import MAX_REASON
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.training.processes.exchange import (
    ADDRESS,
    AGENT_STORE,
    PORT,
    RANK,
    RUN_ID,
    WORLD_SIZE,
    LostError,
)

MAX_RESTARTS = 3  # with no new checkpoint between
STOPPED = 130
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_FOLLOW = 5.0  # for the others to end by themselves after one has
SECONDS_TO_SAVE = 30.0  # the same, once all were asked to stop, and for a leader after an error
SECONDS_TO_DIE = 30.0
LOOPBACK = "127.0.0.1"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def supervise(
    command: Sequence[str],
    processes: int,
    *,
    environment: Mapping[str, str],
    report: Callable[[str], None],
    progress: Callable[[], object],
) -> int:
    """The exit code of `command`, run in `processes` processes with `environment` beside ours.

    Each finds its place in the variables that torchrun sets; only rank 0 writes to our standard
    output and error. After a loss all are started anew, at most three times with no change of what
    `progress` gives between, then the code is 1. Any other error ends all with its code. SIGINT,
    SIGTERM and SIGHUP are passed on once, which gives 130; a second one kills all. `report` gets
    each loss, and a follower's error, in a line. To be called in the main thread.
    """
    restarts = Restarts(progress)
    with StopSignals() as signals:
        while signals.number is None:
            meeting = meeting_variables(processes, LOOPBACK, free_port(LOOPBACK))
            workers: list[Worker] = []
            try:
                for rank in map(str, range(processes)):
                    local = {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": str(processes), RANK: rank}
                    workers.append(start_worker(command, {**environment, **meeting, **local}))
                verdict = _watched(workers, signals)
            except StoppedAtOnceError:
                return STOPPED
            finally:  # what counts is in the checkpoint
                for worker in workers:
                    worker.process.kill()
                for worker in workers:
                    worker.kill()
            if verdict.error:
                report(verdict.error)
            if verdict.code is not None:
                return verdict.code
            assert verdict.loss is not None
            again, line = restarts.after(verdict.loss)
            report(line)
            if not again:
                return 1
    return STOPPED


def _watched(workers: Sequence["Worker"], signals: "StopSignals") -> "Verdict":
    """What comes next, once all have ended or one is too late.

    Raises StoppedAtOnceError where the user asks to stop twice.
    """
    ends, stopping = ProcessEnds(), False
    while True:
        if signals.again:
            raise StoppedAtOnceError
        if signals.number is not None and not stopping:
            stopping = True
            for worker in workers:
                worker.process.send_signal(signals.number)
        for worker in workers:
            if worker.rank not in ends.by_rank and (ended := worker.ended) is not None:
                ends.add(ended)
        if len(ends.by_rank) == len(workers) or ends.is_too_late_for_others(stopping=stopping):
            return judged([*ends.by_rank.values()], stopping=stopping)
        time.sleep(SECONDS_BETWEEN_LOOKS)


def meeting_variables(processes: int, host: str, port: int) -> dict[str, str]:
    """Where `processes` meet, in the variables that torchrun sets."""
    return {
        WORLD_SIZE: str(processes),
        ADDRESS: host,
        PORT: str(port),
        RUN_ID: "aimbot-lab",  # a launcher chose the port: that it was taken meanwhile is a loss
        AGENT_STORE: "False",
    }


def free_port(host: str = "") -> int:
    """A free port."""
    with socket.create_server((host, 0)) as found:
        return int(found.getsockname()[1])


class ProcessEnd(NamedTuple):
    """How a process ended."""

    rank: int
    code: int  # its exit code, negative for a signal
    cause: str  # in words, where it did not end well

    @property
    def was_lost(self) -> bool:
        """Whether all may begin again from a checkpoint after that."""
        return self.code < 0 or self.code == LostError.exit_code

    @property
    def well(self) -> bool:
        """Whether it did what it should."""
        return self.code in (0, STOPPED)

    @property
    def failed(self) -> bool:
        """Whether it met an error that it would meet again."""
        return not (self.well or self.was_lost)


class Verdict(NamedTuple):
    """What comes next: the end of the run with `code`, or, after a loss, a new beginning."""

    code: int | None
    loss: ProcessEnd | None = None
    error: str = ""  # of a process whose messages were not shown


def judged(ends: Sequence[ProcessEnd], *, stopping: bool) -> Verdict:
    """What the ends of all processes mean; `stopping`: they were asked to."""
    if (led := next((one for one in ends if one.rank == 0 and one.well), None)) is not None:
        return Verdict(led.code)
    failed = [one for one in ends if one.failed]
    lost = [one for one in ends if one.was_lost]
    if failed:
        first = min(failed)
        return Verdict(first.code, error=first.cause if first.rank else "")  # the leader said so
    if lost and not stopping:
        # A signal is the cause; that the others lost that process is its effect.
        return Verdict(None, loss=min(lost, key=lambda one: one.code))
    return Verdict(STOPPED)


class ProcessEnds:
    """How processes that begin together have ended so far."""

    def __init__(self) -> None:
        self.by_rank: dict[int, ProcessEnd] = {}
        self._first: float | None = None  # when one ended that ends it for all

    def add(self, ended: ProcessEnd) -> None:
        """Note the end of one more."""
        self.by_rank[ended.rank] = ended
        if self._first is None and (ended.rank == 0 or not ended.well):
            self._first = time.monotonic()

    def is_too_late_for_others(self, *, stopping: bool) -> bool:
        """Whether those that still run had time enough to end by themselves."""
        # An error that all met: the leader may still be saving what the run needs.
        saves = stopping or any(one.failed for one in self.by_rank.values())
        seconds = SECONDS_TO_SAVE if saves else SECONDS_TO_FOLLOW
        return self._first is not None and time.monotonic() - self._first > seconds


class Restarts:
    """How often all may begin again: at most `MAX_RESTARTS` times with the same progress."""

    def __init__(self, progress: Callable[[], object]) -> None:
        self._progress = progress
        self._reached = progress()
        self._used = 0

    def after(self, loss: ProcessEnd) -> tuple[bool, str]:
        """Whether all begin again after `loss`, and the line that says so."""
        reached = self._progress()
        if reached != self._reached:
            self._reached, self._used = reached, 0
        if self._used == MAX_RESTARTS:
            return False, f"{loss.cause}; gave up after {MAX_RESTARTS} restarts"
        self._used += 1
        return True, f"{loss.cause}; all restart (restart {self._used} of {MAX_RESTARTS})"


@dataclass
class Worker:
    """One process; what a follower writes is kept from the user unless it fails."""

    rank: int
    process: subprocess.Popen[bytes]
    errors: IO[bytes] | None  # what a follower wrote to its standard error

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    @property
    def ended(self) -> ProcessEnd | None:
        """How it ended; None while it runs."""
        code = self.code
        if code is None:
            return None
        ended = ProcessEnd(self.rank, code, "")
        return ended if ended.well else ended._replace(cause=self._cause(code))

    def kill(self) -> None:
        """End it and wait for that."""
        if self.code is None:
            self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS_TO_DIE)
        if self.errors is not None:
            self.errors.close()

    def _cause(self, code: int) -> str:
        """How it ended, with the last line of its standard error where it was not shown."""
        if code < 0:
            return f"rank {self.rank} was ended by {_signal_name(-code)}"
        last = self._last_line()
        return f"rank {self.rank} ended with exit code {code}{f': {last}' if last else ''}"

    def _last_line(self) -> str:
        if self.errors is None or self.errors.closed:
            return ""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return shortened(one_line(lines[-1]), MAX_REASON) if lines else ""


def start_worker(
    command: Sequence[str], environment: Mapping[str, str], *, leader_output: int | None = None
) -> Worker:
    """A worker that runs `command`; the leader has our own standard output and error.

    With `leader_output`, of `subprocess.Popen`, it has those.
    """
    rank = int(environment[RANK])
    errors = tempfile.TemporaryFile() if rank else None  # noqa: SIM115  # closed by `kill`
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", tied_start.__file__, str(os.getpid()), *command],
        # Torch warns about sockets of processes that are gone, of which we say what counts.
        env={"TORCH_CPP_LOG_LEVEL": "ERROR", **os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if rank else leader_output,
        stderr=errors if rank else leader_output,
        start_new_session=True,  # Ctrl-C comes to the launcher alone, which passes it on
    )
    return Worker(rank, process, errors)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class StoppedAtOnceError(Exception):
    """The user asked to stop before the processes were there, or twice."""


class StopSignals:
    """Notes SIGINT, SIGTERM and SIGHUP while the block runs.

    A SIGHUP that is ignored stays so, as `nohup` asks for.
    """

    def __init__(self) -> None:
        self.number: int | None = None  # of the first one
        self.again = False
        self._before = {
            number: signal.getsignal(number)
            for number in SIGNALS
            if not (number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN)
        }

    def __enter__(self) -> "StopSignals":
        self.listen()
        return self

    def listen(self) -> None:
        """Take the signals; to be called again once a library has taken them."""
        for number in self._before:
            signal.signal(number, self._receive)

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
        elif number != signal.SIGHUP:  # a closing terminal hangs up more than once
            self.again = True
