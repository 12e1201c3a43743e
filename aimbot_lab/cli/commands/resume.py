"""`aimbot-lab resume`: resume a run that was stopped, or whose process died."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.training import SHORT_ID, train

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.resume_checks import CheckedResume


@click.command(short_help="Resume a run that was stopped or died.")
@click.argument("run", shell_complete=complete_runs)
@options.overrides
@click.option(
    "--take-over",
    is_flag=True,
    help="Go on even though another process may still train RUN; if it does, it notices and stops, "
    "unless it is of an older version: end such a one yourself.",
)
@options.place
@options.as_json
def resume(
    run: str,
    overrides: tuple[str, ...],
    *,
    take_over: bool,
    place: options.Place,
    as_json: bool,
) -> int:
    """Resume RUN (its id, the beginning of it, or "latest") from its last checkpoint.

    It ends as if it had never been broken off: with the same weights to the bit, and each number
    tracked once. Of its configuration only train.total_steps can be changed, which gives it more
    steps. A run that is finished, or that a process still trains, is refused: on this machine, in
    any container, until that process has ended; on another one until it has not renewed its lease
    for 60 seconds.

    Exit codes are those of `aimbot-lab run`.

    \b
    Example:
      aimbot-lab resume latest --set train.total_steps=40000000
    """
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.experiment.runs.resume_checks import check_resume, find_resumable

    folder = place.folder
    close_orphan_runs(folder)  # one that had ended has nothing left to resume
    unfinished = find_resumable(run, folder, tracking_uri=place.tracking_uri)
    resumption = check_resume(
        unfinished,
        unfinished.curriculum(overrides),
        folder,
        take_over=take_over,
        tracking_uri=place.tracking_uri,
    )
    return train(resumption.request, place.data_dir, as_json=as_json, news=_news(resumption))


def resume_newest(request: "RunRequest", data_dir: Path | None, *, as_json: bool) -> int:
    """The exit code of resuming the newest resumable run, or of `request` without one."""
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.experiment.runs.resume_checks import check_resume, newest_resumable

    close_orphan_runs(request.data_folder)  # one that had ended has nothing left to resume
    newest = newest_resumable(request.curriculum, request.data_folder, start=request.start)
    if newest is None:
        news = f"there is no unfinished run of {request.curriculum.path}: a new one begins"
        return train(request, data_dir, as_json=as_json, news=news)
    resumption = check_resume(newest, request.curriculum, request.data_folder)
    return train(resumption.request, data_dir, as_json=as_json, news=_news(resumption))


def _news(resumption: "CheckedResume") -> str:
    """Which run is resumed, and with what changes."""
    run = resumption.request.resume
    assert run is not None
    changes = "".join(f"; {change}" for change in resumption.changes)
    return f"resuming run {run.run_id[:SHORT_ID]} ({run.record.name}){changes}"
