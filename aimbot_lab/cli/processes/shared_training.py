"""`--processes N`: one training in several processes, and this process as one of them."""

import os
import sys
import uuid
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.machine_options import Spread
from aimbot_lab.cli.processes.machines import Meeting, follow_machine, told
from aimbot_lab.cli.processes.stopping import handled_signals
from aimbot_lab.cli.views.training import EXIT_CODES, train

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.processes.crew import Crew
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.resumable_runs import ResumableRun
    from aimbot_lab.tracking.data_folder import DataFolder
    from aimbot_lab.training.processes.machines.team import Team
    from aimbot_lab.training.processes.place import Place

KEY = "AIMBOT_LAB_SHARED_RUN"
"""Environment variable: under which key processes that are started anew find their run again."""


class Prepared(NamedTuple):
    """A run that may begin, and what is said before."""

    request: "RunRequest"
    news: str = ""


def own_place(spread: Spread) -> "Place":
    """The place of this process among those of one training, if it was started as one of several.

    Raises UsageError where it is to start processes itself, or to meet machines.
    """
    from aimbot_lab.training.processes.place import RANK, WORLD_SIZE, place_from_environment

    place = place_from_environment()
    several = place.count > 1 and (spread.processes > 1 or spread.on is not None)
    if several or (spread.machines is not None and RANK in os.environ):
        raise click.UsageError(
            f"{spread.option} can't be used in one of several processes ({RANK} and "
            f"{WORLD_SIZE} are set)"
        )
    return place


def check_processes(request: "RunRequest", processes: int) -> None:
    """Raise ConfigurationError where so many processes can't train what is asked for."""
    from aimbot_lab.training.processes.sharing import check_sharing

    check_sharing(request.curriculum.config, processes)


def launch_processes(
    words: Sequence[str],
    team: "Team",
    folder: "DataFolder",
    *,
    resumed: str | None = None,
    meeting: Meeting | None = None,
) -> int:
    """The exit code of `aimbot-lab` with `words`, in the processes of `team` that train one run.

    `resumed` is the run that goes on, if that is known already. With `meeting`, which this machine
    leads, other machines take part.
    """
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.training.processes.machines.launching import lead
    from aimbot_lab.training.processes.machines.task import Task

    key, code = uuid.uuid4().hex, 1
    command = [sys.executable, "-P", "-m", "aimbot_lab", *words]
    task = Task(command, {KEY: key}, told, lambda: newest_step(folder, key, resumed))
    try:
        if meeting is None:
            code = lead(task, team)
        else:
            meeting.warn()
            code = lead(task, team, meeting.point, meeting.listener)
    finally:
        if code:
            close_orphan_runs(folder)  # one whose leader was killed
    return code


def follow(words: Sequence[str], team: "Team", meeting: Meeting) -> int:
    """The exit code of the training that another machine leads."""
    meeting.warn()
    return follow_machine(words, team, meeting.point, {KEY: uuid.uuid4().hex})


def newest_step(folder: "DataFolder", key: str, resumed: str | None) -> int | None:
    """The step of the newest checkpoint of the run that is trained; None without one."""
    from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder
    from aimbot_lab.tracking.runs.run_folder import CHECKPOINTS_NAME

    run = _begun_run(folder, key)
    run_id = resumed if run is None else run.run_id
    if run_id is None:
        return None
    return CheckpointFolder(folder.run_folder(run_id) / CHECKPOINTS_NAME).newest_step


def run_key() -> str | None:
    """Under which key this process's run is found again; None where no launcher of ours waits."""
    return os.environ.get(KEY)


def is_one_of_several(place: "Place") -> bool:
    """Whether a launcher has started this process for a training that others may share."""
    return place.count > 1 or run_key() is not None


def begun_run(folder: "DataFolder") -> "ResumableRun | None":
    """The run that this process's launcher has begun before, in other processes, if any."""
    key = run_key()
    return None if key is None else _begun_run(folder, key)


def _begun_run(folder: "DataFolder", key: str) -> "ResumableRun | None":
    from aimbot_lab.experiment.runs.resumable_runs import resumable_runs

    return next(iter(resumable_runs(folder, key=key)), None)


def take_part(
    place: "Place",
    prepare: Callable[[], Prepared],
    where: options.Place,
    *,
    patience_s: float,
    as_json: bool,
) -> int:
    """The exit code of this process, one of several that train the run which `prepare` gives.

    Only the leader shows, tracks and reports anything; of an error that it shows too, the others
    have the exit code alone.
    """
    from aimbot_lab.experiment.runs.processes.crew import Crew
    from aimbot_lab.foundation.errors import LabError
    from aimbot_lab.training.processes.connect import connect
    from aimbot_lab.training.processes.place import LostError

    try:
        exchange = connect(place, patience_s=patience_s)
        crew = Crew(exchange)
        try:
            with crew.telling():
                request, news = _agreed(crew, prepare, where)
            if place.leads:
                return train(request, where.data_dir, as_json=as_json, news=news, crew=crew)
            return _follow(request, crew)
        except (LabError, click.ClickException) as error:
            if place.leads or not crew.failed:
                raise
            return error.exit_code
        finally:
            exchange.close()
    except LostError as error:
        if KEY in os.environ:  # whose launcher says which process was lost, and why
            return error.exit_code
        raise


def _agreed(crew: "Crew", prepare: Callable[[], Prepared], where: options.Place) -> Prepared:
    """What all processes train; a launcher's workers are handed it by the one that leads."""
    if run_key() is not None and not crew.exchange.place.leads:
        return Prepared(crew.take(where.folder))
    prepared = prepare()
    check_processes(prepared.request, crew.exchange.place.count)
    if run_key() is None:
        crew.compare(prepared.request)
    else:
        crew.give(prepared.request)
    return prepared


def _follow(request: "RunRequest", crew: "Crew") -> int:
    from aimbot_lab.experiment.runs.processes.follower import follow_run

    asked: list[int] = []

    def receive(number: int, _frame: FrameType | None = None) -> None:
        asked.append(number)  # the leader says so, and aborts where it has to

    with handled_signals(receive):
        outcome = follow_run(request, crew, should_stop=lambda: bool(asked))
    return EXIT_CODES["KILLED"] if outcome.stopped else 0
