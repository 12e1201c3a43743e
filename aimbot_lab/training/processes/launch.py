"""A command in several processes of this machine, started anew together when one is lost."""

from collections.abc import Callable, Mapping, Sequence

from aimbot_lab.training.processes.machines.launching import lead
from aimbot_lab.training.processes.machines.task import Task, to_stderr
from aimbot_lab.training.processes.machines.team import Team


def launch(
    command: Sequence[str],
    processes: int,
    *,
    environment: Mapping[str, str],
    report: Callable[[str], None] = to_stderr,
    progress: Callable[[], object] = lambda: None,
) -> int:
    """The exit code of `command`, run in `processes` processes with `environment` beside ours.

    Each finds its place in RANK and WORLD_SIZE; only rank 0 writes to our standard output and
    error. After the loss of one (by a signal, or LostError's exit code) all are started anew, at
    most three times with no change of what `progress` gives between, then the code is 1. Any other
    error ends all with its code. SIGINT, SIGTERM and SIGHUP are passed on once, which gives 130; a
    second one kills all. `report` gets each loss, and a follower's error, in a line. To be called
    in the main thread.
    """
    return lead(Task(command, environment, report, progress), Team(processes))
