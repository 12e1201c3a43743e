"""Processes of one program that meet over gloo, and answer in lines of JSON."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.processes.place import ADDRESS, PORT, RANK, WORLD_SIZE

LOOPBACK = "127.0.0.1"
SECONDS_TO_END = 5.0


class Member:
    """One of the processes."""

    def __init__(self, module: str, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
        self._module, self._process, self._errors = module, process, errors

    def tell(self, line: str) -> None:
        """Write a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        """Its next answer. Raises LabError where it ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            said = self._errors.read().strip().rpartition("\n")[2]
            raise LabError(f"{self._module} failed: {said or 'it ended without an answer'}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def dismiss(self) -> None:
        """Close its input, with which it ends."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and not heard all
            self._process.stdin.close()

    def end(self) -> None:
        """Wait for its end, or end it."""
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


class Group:
    """All processes of a program."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def answers(self, line: str) -> list[dict[str, Any]]:
        """What each answers to `line`, in the order of ranks."""
        for member in self._members:
            with suppress(BrokenPipeError):  # that there is no answer says why
                member.tell(line)
        return [member.heard() for member in self._members]


@contextmanager
def started(module: str, arguments: Sequence[str], *, processes: int) -> Iterator[Group]:
    """So many processes of `module` on this machine; they end with the block."""
    with ExitStack() as stack:
        meeting = {ADDRESS: LOOPBACK, PORT: str(_free_port()), WORLD_SIZE: str(processes)}
        members: list[Member] = []
        for rank in range(processes):
            member = _started(module, arguments, {**meeting, RANK: str(rank)})
            stack.callback(member.end)
            members.append(member)
        for member in members:  # all are told before the first is waited for
            stack.callback(member.dismiss)
        yield Group(members)


def _started(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Member:
    errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # closed by `end`
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,  # Ctrl-C comes to us alone, and the processes end with their input
    )
    return Member(module, process, errors)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])
