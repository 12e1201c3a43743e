"""`aimbot-lab runs`: which runs are there?"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.text import duration, print_json, table

if TYPE_CHECKING:
    from aimbot_lab.tracking.run_summary import RunSummary

HEAD = ("run", "name", "experiment", "status", "started (UTC)", "took", "lesson", "win rate")


@click.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1, max=50_000))
@options.data_dir
@options.tracking_uri
@options.as_json
def runs(limit: int, data_dir: Path | None, tracking_uri: str | None, as_json: bool) -> None:
    """List runs, newest first.

    Runs whose process died are closed as KILLED, and what they had not yet sent is delivered.

    \b
    Example:
      aimbot-lab runs --json
    """
    from aimbot_lab.tracking.data_folder import locate_data_folder
    from aimbot_lab.tracking.history import list_runs
    from aimbot_lab.tracking.reaper import reap_dead_runs

    folder = locate_data_folder(data_dir)
    for run_id in reap_dead_runs(folder):
        click.echo(f"closed the run of a dead process: {run_id}", err=True)
    found = list_runs(folder, tracking_uri=tracking_uri, max_results=limit)
    if as_json:
        print_json([_document(run) for run in found])
    elif found:
        click.echo(table(HEAD, [_row(run) for run in found]))
    else:
        click.echo("no runs yet; begin with: aimbot-lab run curricula/goto.yaml", err=True)


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
