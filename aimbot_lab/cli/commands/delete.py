"""`aimbot-lab delete`: runs with their files and checkpoints."""

from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.text import table

if TYPE_CHECKING:
    from aimbot_lab.tracking.runs.deletion import Deletion


@click.command(short_help="Delete runs with files and checkpoints.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.place
def delete(runs: tuple[str, ...], yes: bool, place: options.Place) -> None:
    """Delete each RUN (its id, or the beginning of it), its files, and its checkpoints.

    With a sweep's run go the runs of all its trials; what Optuna knows of them stays. A run that
    a process still trains is refused, and then nothing is deleted. It can't be undone: MLflow
    still lists the run among its deleted ones, but its files are gone.

    \b
    Example:
      aimbot-lab delete 3f2a 9c01
    """
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.tracking.runs.deletion import delete_run, plan_deletion

    folder = place.folder
    close_orphan_runs(folder)  # with the status that each of them has
    deletion = plan_deletion(runs, folder, tracking_uri=place.tracking_uri)
    click.echo(_text(deletion), err=True)
    if not yes:
        click.confirm("delete them for good?", abort=True, err=True)
    for run in deletion.runs:
        delete_run(run, folder, tracking_uri=place.tracking_uri)
    count = len(deletion.runs)
    click.echo(f"deleted {count} {'run' if count == 1 else 'runs'}")


def _text(deletion: "Deletion") -> str:
    """What goes."""
    rows = [(run.run_id[:12], run.name, run.experiment, run.status) for run in deletion.named]
    text = table(("run", "name", "experiment", "status"), rows)
    if deletion.below:
        text += f"\nand {len(deletion.below)} runs of the trials of these sweeps"
    return text
