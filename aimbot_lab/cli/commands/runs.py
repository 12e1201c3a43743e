"""`aimbot-lab runs`: which runs are there?"""

import math
from collections.abc import Mapping, Sequence
from glob import escape
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import duration, print_json, table
from aimbot_lab.cli.views.training import SHORT_ID
from aimbot_lab.foundation.shown_text import one_line

if TYPE_CHECKING:
    from aimbot_lab.tracking.data_folder import DataFolder
    from aimbot_lab.tracking.runs.run_summary import RunSummary
    from aimbot_lab.tracking.runs.undelivered import WaitingRun

STATUSES = ("RUNNING", "FINISHED", "FAILED", "KILLED")
MAX_WAITING = 5  # runs that are reported one by one
HEAD = ("run", "name", "experiment", "status", "started (UTC)", "took", "lesson", "win rate", "of")


@click.command(short_help="List runs, newest first.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=1, max=50_000),
    help="How many to list at most.",
)
@click.option("--experiment", metavar="NAME", help="Only runs of this experiment.")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="Only runs that ended so, or still run.",
)
@options.filters
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="So many with the highest win rate (column `of`: eval or learning).",
)
@click.option("--all", "every", is_flag=True, help="Also the runs of sweeps' trials.")
@options.as_json
@options.place
def runs(
    limit: int,
    top: int | None,
    every: bool,
    as_json: bool,
    place: options.Place,
    **wanted: Any,
) -> None:
    """List runs, newest first; those of sweeps' trials only with --all.

    A --filter is KEY=VALUE: KEY is name, experiment, status or a tag, VALUE may hold * for any
    letters, and several must all hold. A win rate is of evaluation (eval) or training episodes
    (learning), whichever has the narrower interval. Runs whose process died are closed, and what
    waits is delivered; `aimbot-lab resume` resumes them.

    \b
    Example:
      aimbot-lab runs --experiment goto --filter "name=walker*" --top 5
    """
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.tracking.runs.history import MAX_RUNS, list_runs
    from aimbot_lab.tracking.runs.selection import selected
    from aimbot_lab.tracking.runs.undelivered import waiting_runs

    folder = place.folder
    faults: dict[str, str] = {}
    for run_id in close_orphan_runs(folder, on_fault=faults.__setitem__):
        _report_closed(folder, run_id)
    _report(waiting := waiting_runs(folder), faults)
    _report_damaged(folder)
    there = list_runs(folder, tracking_uri=place.tracking_uri, max_results=MAX_RUNS)
    found = selected(there, _filters(**wanted), with_trials=every)
    found = _best(found)[:top] if top else found[:limit]
    if as_json:
        print_json([_document(run) for run in found])
    elif found:
        click.echo(table(HEAD, [_row(run) for run in found]))
    elif there:
        click.echo("no run matches; --all lists the runs of sweep trials too", err=True)
    elif not waiting:
        click.echo("no runs yet; begin with: aimbot-lab run goto", err=True)


def _filters(
    filters: tuple[str, ...], experiment: str | None, status: str | None
) -> tuple[str, ...]:
    """All that a run must have, as filters."""
    named = {"experiment": experiment, "status": status}
    return (*filters, *(f"{key}={escape(value)}" for key, value in named.items() if value))


def _best(runs: "Sequence[RunSummary]") -> "list[RunSummary]":
    """Those that have a win rate, the highest first."""
    known = [(rate.value, run) for run in runs if (rate := run.win_rate)]
    return [run for _, run in sorted(known, key=lambda pair: -pair[0])]


def _report_closed(folder: "DataFolder", run_id: str) -> None:
    from aimbot_lab.experiment.runs.resumable_runs import resumable_runs

    way = ""
    for run in resumable_runs(folder):
        if run.run_id == run_id:
            spent = run.record.spent_steps
            more = f" --set train.total_steps={2 * spent}" if spent else ""
            way = f"; aimbot-lab resume {run_id[:SHORT_ID]}{more} resumes it"
    click.echo(f"closed the run of a dead process: {run_id}{way}", err=True)


def _report_damaged(folder: "DataFolder") -> None:
    from aimbot_lab.tracking.runs.run_folder import damaged_owner_files

    for file in damaged_owner_files(folder):
        click.echo(f"{file}: is damaged; aimbot-lab resume {file.parent.name} says more", err=True)


def _report(waiting: "Sequence[WaitingRun]", faults: Mapping[str, str]) -> None:
    """Say what of which runs has not reached its store, and why, as far as that is known."""
    for run in waiting[:MAX_WAITING]:
        noun = "entry" if run.entries == 1 else "entries"
        why = f": {faults[run.run_id]}" if run.run_id in faults else f" to {run.store}"
        line = (
            f"run {run.run_id}: {run.entries} tracked {noun} could not be delivered now{why}; "
            "the next aimbot-lab command tries again"
        )
        click.echo(one_line(line), err=True)
    for run_id in faults.keys() - {"", *(run.run_id for run in waiting)}:
        click.echo(one_line(f"run {run_id}: {faults[run_id]}"), err=True)
    if more := len(waiting[MAX_WAITING:]):
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
        "training_seconds": run.training_seconds,
        "win_rate": None if run.win_rate is None else run.win_rate._asdict(),
        "metrics": {key: v if math.isfinite(v) else None for key, v in run.metrics.items()},
        "tags": {key: v for key, v in run.tags.items() if key.startswith("lab.")},
    }


def _row(run: "RunSummary") -> tuple[str, ...]:
    from aimbot_lab.foundation import metric_names as names

    lesson, rate = run.metrics.get(names.LESSON_NUMBER), run.win_rate
    return (
        run.run_id,
        run.name,
        run.experiment,
        run.status,
        f"{run.started:%Y-%m-%d %H:%M}",
        "-" if run.seconds is None else duration(run.seconds),
        "-" if lesson is None else f"{lesson:.0f}",
        "-" if rate is None else f"{rate.value:.3f}",
        "-" if rate is None else rate.measure.partition("/")[0],
    )
