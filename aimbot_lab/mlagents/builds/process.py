"""The process of a build, from its start to its end."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from aimbot_lab.foundation.errors import ConfigurationError, reason
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.mlagents.builds.launch import environment

TAIL = 2000  # bytes of what it wrote last
MAX_LINE = 300  # characters of the last line that are shown


class BuildProcess:
    """A started build. Raises ConfigurationError where it can't be started.

    It is the leader of a process group of its own, so that Ctrl-C does not reach it and that what
    it started ends with it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the build runs
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
                env=environment(),
            )
        except OSError as error:
            self._errors.close()
            raise ConfigurationError(
                f"env.file_name: {command[0]} can't be started: {reason(error)}"
            ) from error

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def fate(self) -> str | None:
        """How it ended, and the last line that it wrote; None: it runs."""
        code = self._process.poll()
        if code is None:
            return None
        ended = f"ended with exit code {code}"
        if code < 0:
            with suppress(ValueError):
                ended = f"was killed by {signal.Signals(-code).name}"
        line = "" if code == -signal.SIGKILL else self._last_line()  # it could say nothing
        return f"{ended}; its last line: {line}" if line else ended

    def _last_line(self) -> str:
        size = os.fstat(self._errors.fileno()).st_size
        tail = os.pread(self._errors.fileno(), TAIL, max(0, size - TAIL))
        lines = tail.decode("utf-8", "replace").strip().splitlines()
        return shortened(one_line(lines[-1].strip()), MAX_LINE) if lines else ""

    def end(self, wait_s: float) -> None:
        """Wait so many seconds for its end, then kill it with all that it started."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()
