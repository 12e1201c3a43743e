"""The processes of one training on this machine, as the launcher sees them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from aimbot_lab.foundation.errors import MAX_REASON
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.training.processes.judgement import Ended
from aimbot_lab.training.processes.place import RANK

SECONDS_TO_DIE = 30.0
TIED_START = Path(__file__).with_name("tied_start.py")


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
    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        code = self.code
        if code is None:
            return None
        ended = Ended(self.rank, code, "")
        return ended if ended.well else ended._replace(cause=self.cause())

    def kill(self) -> None:
        """End it and wait for that."""
        if self.code is None:
            self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS_TO_DIE)
        if self.errors is not None:
            self.errors.close()

    def cause(self) -> str:
        """How it ended, with the last line of its standard error where nobody has seen that."""
        code = self.code
        if code is not None and code < 0:
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
        [sys.executable, "-I", "-S", str(TIED_START), str(os.getpid()), *command],
        env={**os.environ, **environment},
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
