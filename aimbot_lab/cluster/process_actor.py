"""A process of a training, started and watched by an actor of Ray on the process's machine.

The training is a process of its own, not the actor: signals come to its main thread, what it
writes is its alone, and an error in it ends nothing of Ray. It is tied to the actor: where that
dies, the kernel ends the process too.
"""

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

import psutil

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.processes.judgement import Ended
from aimbot_lab.training.processes.workers import Worker, start_worker

INTERFACE = "GLOO_SOCKET_IFNAME"
STDOUT, STDERR = 1, 2
CHUNK = 65536  # bytes read at once

Said = tuple[tuple[int, bytes], ...]
"""What a process wrote, in the order in which it came: descriptor and bytes."""


class Machine(NamedTuple):
    """Where an actor is."""

    node: str  # Ray's id
    address: str


class Seen(NamedTuple):
    """What became of a process since the last look."""

    said: Said
    ended: Ended | None


class ProcessActor:
    """Starts a process of a training on its machine, and tells what becomes of it."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._streams = selectors.DefaultSelector()

    def machine(self, folder: str) -> Machine:
        """Where this is, with `folder` as the working directory.

        Raises ConfigurationError where there is no such folder.
        """
        import ray

        util: Any = ray.util
        address = str(util.get_node_ip_address())
        try:
            os.chdir(folder)
        except OSError as error:
            raise ConfigurationError(
                f"--on ray: machine {address}: {folder}: {error.strerror}; every machine needs the "
                "project's folder at the same path"
            ) from error
        return Machine(ray.get_runtime_context().get_node_id(), address)

    def free_port(self) -> int:
        """A port at which nobody listens."""
        with socket.socket() as found:
            found.bind(("", 0))
            port: int = found.getsockname()[1]
            return port

    def start(self, words: Sequence[str], environment: Mapping[str, str], *, address: str) -> None:
        """Start `aimbot-lab` with `words`; the others reach it at `address`."""
        own = dict(environment)
        if INTERFACE not in os.environ and (interface := interface_of(address)) is not None:
            own[INTERFACE] = interface
        command = [sys.executable, "-P", "-m", "aimbot_lab", *words]
        worker = start_worker(command, own, leader_output=subprocess.PIPE)
        self._worker = worker
        for descriptor, stream in _streams(worker):
            os.set_blocking(stream.fileno(), False)
            self._streams.register(stream, selectors.EVENT_READ, descriptor)

    def look(self, seconds: float) -> Seen:
        """What the process wrote, and whether it ended; waits for news at most so long."""
        assert self._worker is not None
        self._wait(seconds)
        code = self._worker.code  # before the last look at what it wrote
        said = self._read()
        if code is None:
            return Seen(said, None)
        return Seen(said, self._worker.ended)

    def send_signal(self, number: int) -> None:
        """Send the process a signal, if it still runs."""
        if self._worker is not None:
            self._worker.process.send_signal(number)

    def kill(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.kill()
            for _, stream in _streams(self._worker):
                with suppress(KeyError):  # closed before
                    self._streams.unregister(stream)
                stream.close()
            self._worker = None

    def _wait(self, seconds: float) -> None:
        assert self._worker is not None
        if self._streams.get_map():
            self._streams.select(seconds)
            return
        with suppress(subprocess.TimeoutExpired):
            self._worker.process.wait(seconds)

    def _read(self) -> Said:
        said = []
        while ready := self._streams.select(0):
            for key, _ in ready:
                if data := os.read(key.fd, CHUNK):
                    said.append((key.data, data))
                else:
                    self._streams.unregister(key.fileobj)
        return tuple(said)


def interface_of(address: str) -> str | None:
    """The name of this machine's interface with that address, if one has it."""
    interfaces = psutil.net_if_addrs().items()
    return next(
        (name for name, found in interfaces if address in {one.address for one in found}), None
    )


def _streams(worker: Worker) -> list[tuple[int, IO[bytes]]]:
    """What the leader writes to."""
    pipes = (STDOUT, worker.process.stdout), (STDERR, worker.process.stderr)
    return [(descriptor, stream) for descriptor, stream in pipes if stream is not None]
