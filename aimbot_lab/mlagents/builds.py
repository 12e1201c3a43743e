"""The trainer's side: builds are started, spoken to, watched and ended.

A build greets; it is sent a seed; then it waits for a reset. Each of its messages is answered by
one. A build that is killed, hangs, goes or can't be understood raises UnityException in one line.
What agents observe and do is left to the caller, by `Behaviors`.
"""

import logging
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from aimbot_lab.foundation.errors import ConfigurationError, reason
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.mlagents.base_env import ActionSpec, BehaviorSpec
from aimbot_lab.mlagents.exception import (
    UnityCommunicationException,
    UnityCommunicatorStoppedException,
    UnityEnvironmentException,
    UnityTimeOutException,
)
from aimbot_lab.mlagents.grpc_link import BuildServer
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, observation_specs
from aimbot_lab.mlagents.messages import (
    OK,
    SHUT_DOWN,
    BuildMessage,
    TrainerMessage,
    WireError,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.session import ASKED, action_specs, check_build, trainers_answer

LOG = logging.getLogger(__name__)
SUFFIXES = (".x86_64", ".x86", ".exe", ".app")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
"""Variables that lead a build's call to this machine astray."""
EDITOR_PORT = 5004
LOOK = 0.2  # s between two looks whether a build that says nothing still runs
FAREWELL = 5.0  # s that a build has to end by itself
MAX_MESSAGE = 64 * 2**20  # bytes that a build may send
TAIL = 2000  # bytes of what it wrote last
MAX_LINE = 300  # characters of the last line that are shown
OVER = write_trainer_message(TrainerMessage(SHUT_DOWN, 0, {}, b"", b""))


@dataclass(frozen=True)
class Launch:
    """How builds of one program are started, and how long they are waited for."""

    file_name: str | None  # None: nothing is started, an editor calls
    arguments: Sequence[str] = ()  # of the program's own
    no_graphics: bool = True
    timeout_wait: float = 60.0  # s for every message
    base_port: int | None = None  # build i calls there + i; None: any that is free
    log_folder: str | None = None  # for Player-i.log

    def command(self, program: Path, port: int, number: int) -> list[str]:
        """What is executed, in ML-Agents' order."""
        graphics = ["-nographics", "-batchmode"] if self.no_graphics else []
        log = []
        if self.log_folder is not None:
            log = ["-logFile", str(Path(self.log_folder) / f"Player-{number}.log")]
        return [
            str(program),
            *graphics,
            *("--mlagents-port", str(port)),
            *log,
            *map(str, self.arguments),
        ]


def program_of(file_name: str) -> Path:
    """The program that `file_name` means, with or without its suffix.

    Raises ConfigurationError where there is none, and where it can't be executed.
    """
    named = Path(file_name).expanduser()
    plain = named.with_suffix("") if named.suffix in SUFFIXES else named
    candidates = [named, *(plain.with_name(plain.name + suffix) for suffix in SUFFIXES)]
    found = next((path for path in map(_inside, candidates) if path.is_file()), None)
    if found is None:
        raise ConfigurationError(
            f"env.file_name: there is no build {file_name} (nor with {', '.join(SUFFIXES)})"
        )
    if not os.access(found, os.X_OK):
        raise ConfigurationError(f"env.file_name: {found} can't be executed: chmod +x {found}")
    return found.absolute()


def _inside(path: Path) -> Path:
    """The program itself, where `path` is a bundle of macOS."""
    if path.suffix == ".app" and path.is_dir():
        return path / "Contents" / "MacOS" / path.stem
    return path


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
        self._hint = ""
        if program is None:
            self._hint = ": press Play in the Unity editor"
            LOG.warning("waiting on port %d%s", self._server.port, self._hint)
        else:
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
                    f"{self} sent nothing within {self._wait:g} s (env.timeout_wait){self._hint}"
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
                env=_environment(),
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
        """Wait `wait_s` seconds for its end, then kill it with all that it started."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()


def _environment() -> dict[str, str]:
    """This process's environment without proxies, in which a player of ours describes its world."""
    kept = {key: value for key, value in os.environ.items() if key.lower() not in PROXIES}
    return {**kept, ASKED: "1"}


class Behavior(NamedTuple):
    """A behavior that has shown an agent."""

    spec: BehaviorSpec
    infos: InfoCodec
    actions: ActionCodec


class Behaviors:
    """All behaviors of one build, as they come."""

    def __init__(self) -> None:
        self._actions: dict[str, ActionSpec] = {}
        self.known: dict[str, Behavior] = {}

    def of(self, message: BuildMessage) -> Mapping[str, Behavior]:
        """The behaviors of the agents in `message`. Raises WireError for one never introduced."""
        if message.initialization:
            self._actions |= action_specs(message.initialization)
        for name in sorted(message.infos.keys() - self.known.keys()):
            sensors = observation_specs(message.infos[name])
            if sensors is None:  # no agent yet
                continue
            if name not in self._actions:
                what = f"behavior {name!a:.60} has agents, but the build never described it"
                raise WireError(what)
            spec = BehaviorSpec(sensors, self._actions[name])
            self.known[name] = Behavior(spec, InfoCodec(spec), ActionCodec(spec.action_spec))
        return self.known
