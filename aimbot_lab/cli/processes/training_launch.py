"""Where the processes of one training are started: here, on several machines, or by Ray."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from aimbot_lab.cli.machine_options import Spread
from aimbot_lab.cli.processes.machines import Meeting
from aimbot_lab.cli.processes.shared_training import launch_processes
from aimbot_lab.cli.processes.streams import print_together
from aimbot_lab.cli.processes.training_on_ray import train_on_ray

if TYPE_CHECKING:
    from aimbot_lab.tracking.data_folder import DataFolder
    from aimbot_lab.training.processes.machines.team import Team


class Launched(NamedTuple):
    """What all processes are told."""

    words: Sequence[str]  # of `aimbot-lab`
    folder: "DataFolder"
    resumed: str | None  # the run that goes on, if that is known already
    allow_env: Sequence[str] = ()  # variables that the curriculum reads


def launch_training(
    launched: Launched, team: "Team", *, spread: Spread, meeting: Meeting | None
) -> int:
    """The exit code of one training in several processes, which this machine leads."""
    words, folder, resumed, allowed = launched
    print_together()
    if spread.on is not None:
        return train_on_ray(words, spread.span, folder, resumed=resumed, allow_env=allowed)
    return launch_processes(words, team, folder, resumed=resumed, meeting=meeting)
