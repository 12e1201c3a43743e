"""The place that `--meet HOST:PORT` names, and the interface of this machine that leads there."""

import errno
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

import psutil

from aimbot_lab.foundation.errors import ConfigurationError

HOST_AND_PORT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):([0-9]{1,5})")
MAX_PORT = 65535
LOCALHOST = "localhost"


@dataclass(frozen=True)
class MeetingPoint:
    """An address and a port that all machines of a training can reach."""

    shown: str  # as the user wrote it
    address: str  # IPv4
    port: int
    own_address: str  # of this machine, as the others reach it
    interface: str  # that has it
    held: bool  # by this machine

    @property
    def is_loopback(self) -> bool:
        """Whether no other machine can reach it."""
        return ip_address(self.address).is_loopback


def split_meeting_point(text: str) -> tuple[str, int]:
    """Host and port. Raises ConfigurationError where `text` is not HOST:PORT."""
    match = HOST_AND_PORT.fullmatch(text)
    if match is None or not 0 < int(match[2]) <= MAX_PORT:
        raise ConfigurationError(
            f"--meet {text!r}: must be HOST:PORT, a name or an IPv4 address of the machine that "
            "leads and a port from 1 to 65535 that is free there, for example node1:29400"
        )
    return match[1], int(match[2])


def find_meeting_point(text: str) -> MeetingPoint:
    """What `text`, HOST:PORT, means on this machine.

    Raises ConfigurationError where the name has no address, no interface leads there, or it means
    this machine in a way that others can't reach.
    """
    host, port = split_meeting_point(text)
    address = _resolved(text, host)
    if ip_address(address).is_unspecified or ip_address(address).is_multicast:
        raise ConfigurationError(f"--meet {text}: {address} is no machine's address")
    held = is_own(address)
    if held and ip_address(address).is_loopback and host not in (LOCALHOST, address):
        raise ConfigurationError(
            f"--meet {text}: {host} is {address} here, which no other machine reaches; give this "
            "machine's address in the network"
        )
    own = address if held else _own_address(text, address, port)
    return MeetingPoint(text, address, port, own, _interface(text, own), held)


def _resolved(text: str, host: str) -> str:
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigurationError(
            f"--meet {text}: {host} has no IPv4 address here ({error.strerror}); give a name that "
            "every machine knows, or an address"
        ) from error
    addresses = [str(one[4][0]) for one in found]
    return next(filter(is_own, addresses), addresses[0])


def is_own(address: str) -> bool:
    """Whether an interface of this machine has `address`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _own_address(text: str, address: str, port: int) -> str:
    """Of the interface that leads to `address`; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, port))
        except OSError as error:
            raise ConfigurationError(
                f"--meet {text}: no interface of this machine leads to {address} ({error.strerror})"
            ) from error
        return str(probe.getsockname()[0])


def _interface(text: str, own: str) -> str:
    """The name of the interface with the address `own`; any loopback address has one."""
    loopback = ip_address(own).is_loopback
    for name, addresses in psutil.net_if_addrs().items():
        for one in addresses:
            if one.family != socket.AF_INET:
                continue
            if one.address == own or (loopback and ip_address(one.address).is_loopback):
                return name
    raise ConfigurationError(f"--meet {text}: no interface of this machine has the address {own}")


def listen(point: MeetingPoint) -> socket.socket | None:
    """A socket that listens at `point`, on this machine; None where the port is in use."""
    try:
        return socket.create_server((point.address, point.port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return None
        raise ConfigurationError(f"--meet {point.shown}: {error.strerror}") from error
