"""A server in a process of its own, which does not outlive the command that started it."""

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from aimbot_lab.cli.processes.stopping import handled_signals
from aimbot_lab.cli.processes.tied_process import tied

LINES_KEPT = 20  # of what the server says
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 5.0  # before it is asked no longer


@contextmanager
def running_server(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> Iterator["RunningServer"]:
    """A server that ends with the block, and is asked to by SIGINT, SIGTERM and SIGHUP."""
    request = EndRequest()
    with handled_signals(request.receive):
        # A group of its own, because the server starts processes that must end with it.
        process = subprocess.Popen(
            tied(arguments),
            env=dict(environment),
            stdin=subprocess.PIPE,  # closed with this process, which ends the server
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        server = RunningServer(process, request)
        try:
            yield server
        finally:
            server.end()


class EndRequest:
    """Whether a signal has asked for the end."""

    def __init__(self) -> None:
        self.made = False

    def receive(self, _number: int, _frame: FrameType | None) -> None:
        """Note the signal."""
        self.made = True


class RunningServer:
    """A server's process and all that it started; what it says is kept back."""

    def __init__(self, process: subprocess.Popen[str], request: EndRequest) -> None:
        self._process = process
        self._request = request
        self._said: deque[str] = deque(maxlen=LINES_KEPT)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        if self._process.stdout is not None:
            self._said.extend(self._process.stdout)

    def wait_until(self, ready: Callable[[], bool]) -> bool:
        """Whether `ready` came true before the server ended or was asked to."""
        while self._goes_on():
            if ready():
                return True
        return False

    def wait(self) -> int | None:
        """The exit code of a server that ended by itself; None where it was asked to."""
        while self._goes_on():
            pass
        return self._process.returncode

    def _goes_on(self) -> bool:
        try:
            self._process.wait(SECONDS_BETWEEN_LOOKS)
        except subprocess.TimeoutExpired:
            return not self._request.made
        return False

    def end(self) -> None:
        """End the server and all that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal_all(number)
            self._listener.join(SECONDS_TO_END)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None and not self._listener.is_alive():
            self._process.stdout.close()

    def _signal_all(self, number: signal.Signals) -> None:
        # Its output ends when the last of them has ended.
        if self._listener.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    @property
    def last_words(self) -> str:
        """The last lines that the server said, once it has ended."""
        return "".join(self._said)
