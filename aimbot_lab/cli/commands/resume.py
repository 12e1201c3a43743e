"""`aimbot-lab resume`: resume a run that was stopped, or whose process died."""

from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.processes.shared_training import (
    LaunchOptions,
    Prepared,
    is_one_of_several,
    launch_options,
    launch_training,
    own_place,
    take_part,
)
from aimbot_lab.cli.views.training import SHORT_ID, train

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.resumable_runs import ResumableRun
    from aimbot_lab.experiment.runs.resume_checks import CheckedResume
    from aimbot_lab.tracking.data_folder import DataFolder
    from aimbot_lab.training.processes.place import Place


@click.command(short_help="Resume a run that was stopped or died.")
@click.argument("run", shell_complete=complete_runs)
@options.overrides
@click.option(
    "--take-over",
    is_flag=True,
    help="Go on even though another process may still train RUN; if it does, it notices and stops, "
    "unless it is of an older version: end such a one yourself.",
)
@launch_options
@options.trust
@options.place
@options.as_json
def resume(
    run: str,
    overrides: tuple[str, ...],
    *,
    take_over: bool,
    launch: LaunchOptions,
    place: options.Place,
    as_json: bool,
) -> int:
    """Resume RUN (its id, the beginning of it, or "latest") from its last checkpoint.

    It ends as if it had never been broken off: with the same weights to the bit, and each number
    tracked once. Of its configuration only train.total_steps can be changed, which gives it more
    steps. A run that is finished, or that a process still trains, is refused: on this machine, in
    any container, until that process has ended; on another one until it has not renewed its lease
    for 60 seconds. Exit codes are those of `aimbot-lab run`.

    \b
    Example:
      aimbot-lab resume latest --set train.total_steps=40000000
    """
    own = own_place(launch)

    def prepare() -> Prepared:
        return _prepared(run, overrides, take_over=take_over, place=place, own=own)

    if is_one_of_several(own):
        return take_part(own, prepare, place, as_json=as_json)
    request, news = prepare()
    resumed, config = request.resume, request.curriculum.config
    if not launch.shares(config) or resumed is None:
        return train(request, place.data_dir, as_json=as_json, news=news, on=launch.on)
    launch.check(config)
    words = ["resume", resumed.run_id, *options.repeated("--set", overrides)]
    words += options.place_words(place)
    words += ["--take-over"] if take_over else []
    words += ["--json"] if as_json else []
    return launch_training(words, launch, place.folder, resumed=resumed.run_id)


def _prepared(
    run: str,
    overrides: tuple[str, ...],
    *,
    take_over: bool,
    place: options.Place,
    own: "Place",
) -> Prepared:
    """The resumption, for the process at the place `own`."""
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.resume_checks import check_resume, find_resumable

    folder = place.folder
    if own.leads:
        close_orphan_runs(folder)  # one that had ended has nothing left to resume
    found = find_resumable(run, folder, tracking_uri=place.tracking_uri)
    curriculum = found.curriculum(overrides)
    if not own.leads:  # that the run may be resumed is for the leader to find, which claims it
        return Prepared(RunRequest(curriculum, folder, resume=found))
    uri = place.tracking_uri
    return _of(check_resume(found, curriculum, folder, take_over=take_over, tracking_uri=uri))


def newest_prepared(request: "RunRequest") -> Prepared:
    """The resumption of the newest resumable run, or `request` without one."""
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.experiment.runs.resume_checks import check_resume, newest_resumable

    close_orphan_runs(request.data_folder)  # one that had ended has nothing left to resume
    newest = newest_resumable(request.curriculum, request.data_folder, start=request.start)
    if newest is None:
        news = f"there is no unfinished run of {request.curriculum.path}: a new one begins"
        return Prepared(request, news)
    return _of(check_resume(newest, request.curriculum, request.data_folder))


def again_prepared(run: "ResumableRun", data_folder: "DataFolder", own: "Place") -> Prepared:
    """The resumption of a run whose processes are started anew."""
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.resume_checks import check_resume

    if own.leads:
        return _of(check_resume(run, run.curriculum(), data_folder))
    return Prepared(RunRequest(run.curriculum(), data_folder, resume=run))


def _of(resumption: "CheckedResume") -> Prepared:
    """What is resumed, and with what changes."""
    run = resumption.request.resume
    assert run is not None
    changes = "".join(f"; {change}" for change in resumption.changes)
    news = f"resuming run {run.run_id[:SHORT_ID]} ({run.record.name}){changes}"
    return Prepared(resumption.request, news)
