"""What the launchers of one training are told by their users, each by its own."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from aimbot_lab.training.processes.machines.meeting_point import MeetingPoint
from aimbot_lab.training.processes.machines.messages import Hello

SILENCE_SECONDS = 30.0  # of a launcher, after which its machine counts as lost


@dataclass(frozen=True)
class Team:
    """How many machines train, and what this one brings."""

    processes: int  # of this machine
    fewest: int = 1  # machines with which the training begins and goes on
    most: int = 1
    shards: int | None = None  # as many processes have something to do, in all
    patience_s: float = 120.0  # how long a silent process or machine is waited for
    about: Mapping[str, str] = field(default_factory=dict)
    """What must be the same on all machines, by what a person calls it."""

    @property
    def silence_s(self) -> float:
        """How long a launcher may be silent: it has nothing else to do than to speak."""
        return min(self.patience_s, SILENCE_SECONDS)

    def hello(self, point: MeetingPoint) -> Hello:
        """What this machine says first at `point`."""
        return Hello(socket.gethostname(), point.own_address, self.processes, self.about)
