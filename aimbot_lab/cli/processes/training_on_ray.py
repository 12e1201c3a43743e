"""`--on ray`: one training in processes that Ray places, with the leader's words on our streams."""

import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli.processes.shared_training import KEY, newest_step
from aimbot_lab.cli.spans import Span
from aimbot_lab.foundation.shown_text import one_line

if TYPE_CHECKING:
    from aimbot_lab.cluster.life import Told
    from aimbot_lab.tracking.data_folder import DataFolder

PORTS = "Ray and gloo open ports and encrypt nothing: use them in a network you trust"
PASSED_ON = ("AIMBOT_LAB_", "NUMBA_", "OMP_NUM_THREADS", "NO_COLOR")
FOR_THE_LEADER = ("MLFLOW_", "AWS_")  # who alone tracks; may hold passwords


def train_on_ray(
    words: Sequence[str],
    processes: Span,
    folder: "DataFolder",
    *,
    resumed: str | None = None,
    allow_env: Sequence[str] = (),
) -> int:
    """The exit code of `aimbot-lab` with `words`, in so many processes that Ray places.

    `resumed` is the run that goes on, if that is known already; `allow_env` names variables that
    its curriculum reads.
    """
    from aimbot_lab.cluster.connection import ADDRESS, HeadLostError
    from aimbot_lab.cluster.training import Asked, launch_on_ray
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs

    if ADDRESS in os.environ:
        click.echo(PORTS, err=True)
    key = uuid.uuid4().hex
    environment = {**_own(PASSED_ON, allow_env), KEY: key}
    asked = Asked(words, environment, _own(FOR_THE_LEADER), (processes.least, processes.most))
    try:
        code = launch_on_ray(asked, _told(lambda: newest_step(folder, key, resumed)))
    except HeadLostError as error:
        close_orphan_runs(folder)
        click.echo(one_line(f"error: {error}"), err=True)
        os._exit(error.exit_code)  # at a usual end Ray would wait for its head
    if code:
        close_orphan_runs(folder)  # one whose leader was killed
    return code


def _told(progress: Callable[[], object]) -> "Told":
    from aimbot_lab.cluster.life import Told

    streams = {1: sys.stdout, 2: sys.stderr}  # Ray's own words are kept from the first one

    def say(descriptor: int, data: bytes) -> None:
        streams[descriptor].buffer.write(data)
        streams[descriptor].flush()

    return Told(report=lambda line: click.echo(line, err=True), say=say, progress=progress)


def _own(beginnings: tuple[str, ...], names: Sequence[str] = ()) -> Mapping[str, str]:
    """Our environment variables with these names, and those that begin so."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith(beginnings)
    }
