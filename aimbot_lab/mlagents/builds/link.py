"""One build, and the messages to and from it in their order.

The build greets; it is told a seed; then it waits for a reset. Each of its messages is answered by
one. A build that is killed, hangs, goes or can't be understood raises UnityException in one line.
"""

import time
from collections.abc import Mapping
from typing import Protocol

from aimbot_lab.mlagents.builds.launch import Launch, program_of
from aimbot_lab.mlagents.builds.process import BuildProcess
from aimbot_lab.mlagents.builds.server import BuildServer
from aimbot_lab.mlagents.exception import (
    UnityCommunicationException,
    UnityCommunicatorStoppedException,
    UnityEnvironmentException,
    UnityTimeOutException,
)
from aimbot_lab.mlagents.handshake import check_build, trainers_answer
from aimbot_lab.mlagents.wire.exchange import (
    OK,
    SHUT_DOWN,
    BuildMessage,
    TrainerMessage,
    read_build_message,
    write_trainer_message,
)

EDITOR_PORT = 5004
LOOK = 0.2  # s between two looks whether a build that says nothing still runs
FAREWELL = 5.0  # s that a build has to end by itself
MAX_MESSAGE = 64 * 2**20  # bytes that a build may send
OVER = write_trainer_message(TrainerMessage(SHUT_DOWN, 0, {}, b"", b""))


class BuildLink(Protocol):
    """What a world needs of a build."""

    def greet(self, seed: int) -> None:
        """Take the build's greeting and tell it the seed; a reset is due then."""

    def send(self, command: int, actions: Mapping[str, bytes], channels: bytes) -> None:
        """Answer the build's last message."""

    def receive(self) -> BuildMessage:
        """The build's next message. Raises UnityException where none comes."""

    def close(self, *, at_once: bool = False) -> None:
        """End the build; `at_once` without waiting for it."""


class Build:
    """Build number `number`, which starts when this is made.

    Raises ConfigurationError where it can't be started, or its port is taken.
    """

    def __init__(self, launch: Launch, number: int) -> None:
        self._launch, self.number, self._wait = launch, number, launch.timeout_wait
        program = None if launch.file_name is None else program_of(launch.file_name)
        base = launch.base_port
        if program is None and base is None:
            base = EDITOR_PORT
        self._server = BuildServer(None if base is None else base + number)
        self._process: BuildProcess | None = None
        self._closed = False
        if program is not None:
            try:
                command = launch.command(program, self._server.port, number)
                self._process = BuildProcess(command)
            except BaseException:
                self._server.close(OVER, wait_s=0.0)
                raise

    @property
    def pid(self) -> int | None:
        """The process's number; None for an editor."""
        return None if self._process is None else self._process.pid

    def greet(self, seed: int) -> None:
        """Take the build's greeting and tell it the seed; a reset is due then."""
        check_build(self.receive().initialization)
        initialization = trainers_answer(seed)
        self._server.answer(write_trainer_message(TrainerMessage(OK, 0, {}, b"", initialization)))
        self.receive()

    def send(self, command: int, actions: Mapping[str, bytes], channels: bytes) -> None:
        """Answer the build's last message."""
        message = TrainerMessage(OK, command, dict(actions), channels, b"")
        self._server.answer(write_trainer_message(message))

    def receive(self) -> BuildMessage:
        """The build's next message."""
        data = self.receive_bytes()
        if len(data) > MAX_MESSAGE:
            raise UnityCommunicationException(
                f"{self} sent a message of {len(data) / 2**20:.1f} MiB, and {MAX_MESSAGE // 2**20} "
                "are taken: let it have fewer agents, or smaller pictures"
            )
        message = read_build_message(data)
        if message.status != OK:
            raise UnityCommunicatorStoppedException(f"{self} said that it goes")
        return message

    def receive_bytes(self) -> bytes:
        """The build's next message as it came."""
        until = time.monotonic() + self._wait
        while True:
            fate = None if self._process is None else self._process.fate()
            message = self._server.message(0.0 if fate else LOOK)
            if message is not None:
                return message
            if fate is not None:
                raise UnityEnvironmentException(f"{self} {fate}")
            if time.monotonic() > until:
                raise UnityTimeOutException(
                    f"{self} sent nothing within {self._wait:g} s (env.timeout_wait)"
                )

    def __str__(self) -> str:
        name = self._launch.file_name
        return f"build {self.number} ({'the editor' if name is None else name})"

    def close(self, *, at_once: bool = False) -> None:
        """Tell the build that it is over, and see that it ends."""
        if self._closed:
            return
        self._closed = True
        if at_once and self._process is not None:
            self._process.end(0.0)
        self._server.close(OVER, wait_s=0.0 if at_once else FAREWELL)
        if self._process is not None and not at_once:
            self._process.end(FAREWELL)
