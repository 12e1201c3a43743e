"""`--machines N --meet HOST:PORT`: this machine as one of several that train one run."""

import socket
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from aimbot_lab.cli.machine_options import Spread

if TYPE_CHECKING:
    from aimbot_lab.training.processes.machines.meeting_point import MeetingPoint
    from aimbot_lab.training.processes.machines.team import Team
    from aimbot_lab.training.processes.sharing import Shareable

OPEN = (
    "the ports of this training are open to the network, and what is sent is neither encrypted nor "
    "authenticated: use a network that you trust"
)


class Meeting(NamedTuple):
    """Where the machines meet, and by which socket this one listens there, if it leads."""

    point: "MeetingPoint"
    listener: socket.socket | None

    @property
    def leads(self) -> bool:
        """Whether this machine does: it has the run's folder, shows and tracks."""
        return self.listener is not None

    def warn(self) -> None:
        """Tell, once, who can reach the training."""
        if not self.point.is_loopback:
            click.echo(OPEN, err=True)


def meeting_of(spread: Spread, *, listens: bool = True) -> Meeting | None:
    """Where this machine is to meet others, if it is; it listens there if it leads.

    Raises ConfigurationError where nothing leads to the meeting point, or another program uses it.
    """
    from aimbot_lab.training.processes.machines.meeting_point import find_meeting_point, listen
    from aimbot_lab.training.processes.machines.task import quieten

    if spread.machines is None:
        return None
    quieten()
    point = find_meeting_point(spread.machines.meet)
    listener = listen(point) if point.held and listens else None
    if listener is not None:
        click.get_current_context().call_on_close(listener.close)
    return Meeting(point, listener)


def team_of(spread: Spread, about: Mapping[str, str], plan: "Shareable | None" = None) -> "Team":
    """What this machine brings to the training of `plan`, which the one that leads may alone know.

    Raises ConfigurationError where so many processes can't share it.
    """
    from aimbot_lab.training.processes.machines.team import Team
    from aimbot_lab.training.processes.sharing import check_sharing, shards_in

    shards, (_, machines) = None, spread.spans
    if plan is not None and not spread.is_one_process:
        check_sharing(plan, machines.most * spread.processes, asked=spread.words)
        shards = shards_in(plan)
    return Team(
        spread.processes,
        machines.least,
        machines.most,
        shards=shards,
        patience_s=spread.patience_s,
        about=about,
    )


def follow_machine(
    words: Sequence[str], team: "Team", point: "MeetingPoint", environment: Mapping[str, str]
) -> int:
    """The exit code of the training that the machine at `point` leads."""
    from aimbot_lab.training.processes.machines.launching import follow
    from aimbot_lab.training.processes.machines.task import Task

    command = [sys.executable, "-P", "-m", "aimbot_lab", *words]
    return follow(Task(command, environment, told), team, point)


def told(line: str) -> None:
    """Show a line to whoever waits here."""
    click.echo(line, err=True)
