"""Where the processes of a training meet: rank 0 holds a store there, the others come to it."""

import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import NamedTuple

from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.processes.machines.meeting_point import is_own
from aimbot_lab.training.processes.place import LostError, Place

ADDRESS = "MASTER_ADDR"
PORT = "MASTER_PORT"
RUN_ID = "TORCHELASTIC_RUN_ID"
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
RESTART = "TORCHELASTIC_RESTART_COUNT"
INTERFACE = "GLOO_SOCKET_IFNAME"


class Meeting(NamedTuple):
    """A host and a port, and who listens there."""

    host: str
    port: int
    by_agent: bool  # the port was chosen by an elastic agent
    held_by_agent: bool  # which also listens there
    attempt: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Meeting":
        """What torchrun, or whatever started this process, wrote into the environment.

        Raises ConfigurationError where it is missing or no port.
        """
        host, port = environment.get(ADDRESS, ""), environment.get(PORT, "")
        if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ConfigurationError(
                f"environment: {ADDRESS}={host} {PORT}={port}: a host's name or address and a port "
                "from 1 to 65535 are needed for more than one process"
            )
        return cls(
            host,
            int(port),
            by_agent=RUN_ID in environment,
            held_by_agent=environment.get(AGENT_STORE) == "True",
            attempt=environment.get(RESTART, "0"),
        )

    @property
    def is_loopback(self) -> bool:
        """Whether all processes are on this machine."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).version == 4 and ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def _is_own_address(self) -> bool:
        try:
            ip_address(self.host)
        except ValueError:  # a name may mean the loopback interface on this machine alone
            return False
        return is_own(self.host)

    def store(self, place: Place, patience_s: float) -> Store:
        """The store, once all are there; on one machine nobody else can reach it."""
        if self.is_loopback:
            os.environ.setdefault(INTERFACE, loopback_interface())
        holds = place.leads and not self.held_by_agent
        store = TCPStore(
            self.host,
            self.port,
            place.count,
            is_master=holds,
            timeout=timedelta(seconds=patience_s),
            wait_for_workers=not self.held_by_agent,
            multi_tenant=True,
            master_listen_fd=self._listener() if holds else None,
        )
        return PrefixStore(f"aimbot-lab/{self.attempt}", store)

    def _listener(self) -> int:
        """A socket that listens at the port, on the interface with the address where there is one.

        Raises LostError for a port in use that an agent chose (it will choose another one), and
        ConfigurationError for one that the user chose.
        """
        host = self.host if self.is_loopback or self._is_own_address else ""
        try:
            return socket.create_server((host, self.port)).detach()
        except OSError as error:
            kind = LostError if self.by_agent else ConfigurationError
            raise kind(
                f"rank 0 can't listen at {self.host}:{self.port}: {error.strerror}"
            ) from error


def loopback_interface() -> str:
    """The name of the interface that only this machine reaches."""
    names = {name for _, name in socket.if_nameindex()}
    return "lo" if "lo" in names else "lo0"
