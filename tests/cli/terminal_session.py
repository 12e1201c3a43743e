"""A command on a terminal of its own, as a person has it."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType
from typing import Self

# The terminal must be the controlling one, or its keys send no signals; and the tests may run
# under nohup.
LAUNCH = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
PATIENCE = 600.0  # seconds, for machines with much else to do


class TerminalSession:
    """Python with `arguments`: standard input and error on a terminal.

    `output` says whether the standard output is a pipe or on the screen.
    """

    def __init__(
        self,
        *arguments: str,
        columns: int = 60,
        lines: int = 24,
        output: str = "pipe",
        **options: object,
    ) -> None:
        self._keyboard, self._screen = pty.openpty()
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, size)
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *arguments],
            stdin=self._screen,
            stdout=subprocess.PIPE if output == "pipe" else self._screen,
            stderr=self._screen,
            text=True,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.close()

    def attributes(self) -> list[object]:
        return termios.tcgetattr(self._keyboard)

    def flags(self) -> int:
        """The terminal's local flags."""
        return termios.tcgetattr(self._keyboard)[3]

    def read_until(self, text: str) -> None:
        """Read the screen until it has shown `text`."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown: {self.shown[-500:]}"
            assert self._read(1.0), f"ended without {text!r}: {self.shown[-500:]}"

    def press(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    def close(self) -> None:
        for descriptor in {self._keyboard, self._screen} - {-1}:
            os.close(descriptor)
        self._keyboard = self._screen = -1

    def finish(self) -> tuple[int, str]:
        deadline = time.monotonic() + PATIENCE
        while self._keyboard >= 0 and self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-500:]
            self._read(0.1)
        output, _ = self.process.communicate(timeout=PATIENCE)
        if self._keyboard >= 0:
            while self._read(0.0):
                pass
        return self.process.returncode, output

    def _read(self, seconds: float) -> bool:
        """Whether there may be more to come."""
        if not select.select([self._keyboard], [], [], seconds)[0]:
            return seconds > 0 and self.process.poll() is None
        self.shown += os.read(self._keyboard, 65536).decode(errors="replace")
        return True
