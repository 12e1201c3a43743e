"""`aimbot-lab runs`: which runs are there?"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.text import duration, print_json, table
from aimbot_lab.cli.training import SHORT_ID

if TYPE_CHECKING:
    from aimbot_lab.tracking.data_folder import DataFolder
    from aimbot_lab.tracking.run_summary import RunSummary
    from aimbot_lab.tracking.waiting import WaitingRun

MOST_WAITING = 5  # runs that are told one by one
HEAD = ("run", "name", "experiment", "status", "started (UTC)", "took", "lesson", "win rate")


@click.command(short_help="List runs, newest first.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=1, max=50_000),
    help="How many to list at most.",
)
@options.data_dir
@options.tracking_uri
@options.as_json
def runs(limit: int, data_dir: Path | None, tracking_uri: str | None, as_json: bool) -> None:
    """List runs, newest first.

    Runs whose process died are closed as KILLED, and what they had not yet sent is delivered;
    `aimbot-lab resume` goes on with them.

    \b
    Example:
      aimbot-lab runs --json
    """
    from aimbot_lab.tracking.data_folder import locate_data_folder
    from aimbot_lab.tracking.history import list_runs
    from aimbot_lab.tracking.reaper import reap_dead_runs
    from aimbot_lab.tracking.waiting import waiting_runs

    folder = locate_data_folder(data_dir)
    for run_id in reap_dead_runs(folder):
        _tell_closed(folder, run_id)
    waiting = waiting_runs(folder)
    _tell(waiting)
    found = list_runs(folder, tracking_uri=tracking_uri, max_results=limit)
    if as_json:
        print_json([_document(run) for run in found])
    elif found:
        click.echo(table(HEAD, [_row(run) for run in found]))
    elif not waiting:
        click.echo("no runs yet; begin with: aimbot-lab run curricula/goto.yaml", err=True)


def _tell_closed(folder: "DataFolder", run_id: str) -> None:
    from aimbot_lab.experiment.unfinished import unfinished_runs

    can_go_on = any(run.run_id == run_id for run in unfinished_runs(folder))
    way = f"; aimbot-lab resume {run_id[:SHORT_ID]} goes on with it" if can_go_on else ""
    click.echo(f"closed the run of a dead process: {run_id}{way}", err=True)


def _tell(waiting: "Sequence[WaitingRun]") -> None:
    """Say what of which runs has not reached its store."""
    for run in waiting[:MOST_WAITING]:
        noun = "entry" if run.entries == 1 else "entries"
        click.echo(
            f"run {run.run_id}: {run.entries} tracked {noun} could not be delivered now to "
            f"{run.store}; the next aimbot-lab command tries again",
            err=True,
        )
    if more := len(waiting[MOST_WAITING:]):
        click.echo(f"the same holds for {more} more runs", err=True)


def _document(run: "RunSummary") -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "name": run.name,
        "experiment": run.experiment,
        "status": run.status,
        "started": run.started.isoformat(),
        "ended": None if run.ended is None else run.ended.isoformat(),
        "seconds": run.seconds,
        "metrics": {key: v if math.isfinite(v) else None for key, v in run.metrics.items()},
        "tags": {key: v for key, v in run.tags.items() if key.startswith("lab.")},
    }


def _row(run: "RunSummary") -> tuple[str, ...]:
    from aimbot_lab.foundation import metric_names as names

    lesson, won = run.metrics.get(names.LESSON_NUMBER), run.metrics.get(names.WIN_RATE_POOLED)
    return (
        run.run_id,
        run.name,
        run.experiment,
        run.status,
        f"{run.started:%Y-%m-%d %H:%M}",
        "-" if run.seconds is None else duration(run.seconds),
        "-" if lesson is None else f"{lesson:.0f}",
        "-" if won is None else f"{won:.3f}",
    )
