"""`aimbot-lab runs`, `delete` and `weights`: runs listed, deleted, and steered while they train."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_runs
from aimbot_lab.cli.text import SHORT_ID, duration, print_json, print_table, table
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line, percent, shown_return
from aimbot_lab.tracking.data_folder import DataFolder, locate_data_folder
from aimbot_lab.tracking.tracker import RunSummary, run_filter

if TYPE_CHECKING:
    from aimbot_lab.tracking.history import Deletion
    from aimbot_lab.tracking.run_folder import WaitingRun

STATUSES = ("RUNNING", "FINISHED", "FAILED", "KILLED")
MAX_WAITING = 5  # runs that are reported one by one
HEAD = (
    "run",
    "name",
    "experiment",
    "status",
    "started (UTC)",
    "took",
    "lesson",
    "win rate",
    "from",
)

WAIT_SECONDS = 60.0  # a run listens where a rollout begins
Levels = tuple[int, ...]


@click.command(short_help="List runs, newest first.")
@options.number("--limit", 20, (1, 50_000), "List at most this many.")
@click.option("--experiment", metavar="NAME", help="Only runs of this experiment.")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="Only runs with this status.",
)
@options.filters
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="Only this many, those with the highest win rate, the highest first.",
)
@click.option("--all", "every", is_flag=True, help="Also list the runs of sweep trials.")
@options.as_json
@options.place
def runs(
    limit: int,
    top: int | None,
    every: bool,
    as_json: bool,
    place: options.StorePlace,
    **wanted: Any,
) -> None:
    """List runs, newest first (with --top by win rate); those of sweeps' trials only with --all.

    A --filter is KEY=VALUE: KEY is name, experiment, status or a tag, * in VALUE matches any
    characters, and all filters must match. Column `from` says of which episodes the win rate is:
    eval (the evaluation's) or learning (the training's), whichever has the narrower interval; where
    nothing can be won, it is a mean return (eval, rollout). Runs whose process died are closed, and
    can be resumed; waiting metrics are delivered.

    \b
    Example:
      aimbot-lab runs --experiment goto --filter "name=walker*" --top 5
    """
    from aimbot_lab.experiment.runs.run_record import close_orphan_runs
    from aimbot_lab.tracking.history import list_runs, matching_runs
    from aimbot_lab.tracking.run_folder import damaged_owner_files, waiting_runs

    folder = place.folder
    faults: dict[str, str] = {}
    for run_id in close_orphan_runs(folder, on_fault=faults.__setitem__):
        _report_closed(folder, run_id)
    _report(waiting := waiting_runs(folder), faults)
    for file in damaged_owner_files(folder):
        line = f"{file}: is damaged; aimbot-lab resume {file.parent.name} says more"
        click.echo(one_line(line), err=True)
    kind, at = run_filter(_filters(**wanted), with_trials=every), place.tracking_uri
    listed = partial(matching_runs, folder, kind, tracking_uri=at)
    found = listed(max_results=top or limit, best=top is not None)
    if as_json:
        print_json([_document(run) for run in found])
    elif found:
        print_table(HEAD, [_row(run) for run in found], cut="name", spare=["experiment"])
    elif top and listed(max_results=1):
        click.echo("none of these runs has a win rate; without --top they are listed", err=True)
    elif list_runs(folder, tracking_uri=at, max_results=1):
        click.echo("no run matches; --all lists the runs of sweep trials too", err=True)
    elif not waiting:
        click.echo("no runs yet; begin with: aimbot-lab run goto", err=True)


def _filters(
    filters: tuple[str, ...], experiment: str | None, status: str | None
) -> tuple[str, ...]:
    """All that a run must have, as filters."""
    named = {"experiment": experiment, "status": status}
    return (*filters, *(f"{key}={escape(value)}" for key, value in named.items() if value))


def _report_closed(folder: DataFolder, run_id: str) -> None:
    from aimbot_lab.experiment.runs.run_record import resumable_runs

    way = ""
    for run in resumable_runs(folder):
        if run.run_id == run_id:
            spent = run.record.spent_steps
            more = f" --set train.total_steps={2 * spent}" if spent else ""
            way = f"; aimbot-lab resume {run_id[:SHORT_ID]}{more} resumes it"
    click.echo(one_line(f"closed the run of a dead process: {run_id}{way}"), err=True)


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


def _document(run: RunSummary) -> dict[str, Any]:
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


def _row(run: RunSummary) -> tuple[str, ...]:
    lesson, rate = run.metrics.get(names.LESSON_NUMBER), run.win_rate
    result = ("-", "-") if rate is None else (percent(rate.value), rate.measure)
    earned = [key for key in (names.EVAL_RETURN, names.EPISODE_RETURN) if key in run.metrics]
    if rate is None and earned:
        result = f"return {shown_return(run.metrics[earned[0]])}", earned[0]
    return (
        run.run_id[:SHORT_ID],
        run.name,
        run.experiment,
        run.status,
        f"{run.started:%Y-%m-%d %H:%M}",
        "-" if run.seconds is None else duration(run.seconds),
        "-" if lesson is None else f"{lesson:.0f}",
        result[0],
        result[1].partition("/")[0],
    )


@click.command(short_help="Delete runs with all their files.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@options.place
def delete(runs: tuple[str, ...], yes: bool, place: options.StorePlace) -> None:
    """Delete each RUN (its id, or the beginning of it), its files, and its checkpoints.

    With a sweep's run, the runs of its trials are deleted, too; Optuna's records of them stay. If a
    process still trains one of the runs, nothing is deleted. This can't be undone: MLflow still
    lists the run among its deleted ones, but its files are gone.

    \b
    Example:
      aimbot-lab delete 3f2a 9c01
    """
    from aimbot_lab.experiment.runs.run_record import close_orphan_runs
    from aimbot_lab.tracking.history import delete_run, plan_deletion

    folder = place.folder
    close_orphan_runs(folder)  # with the status that each of them has
    deletion = plan_deletion(runs, folder, tracking_uri=place.tracking_uri)
    click.echo(_deleted_text(deletion), err=True)
    if not yes:
        click.confirm("delete them for good?", abort=True, err=True)
    for run in deletion.runs:
        delete_run(run, folder, tracking_uri=place.tracking_uri)
    count = len(deletion.runs)
    click.echo(f"deleted {count} {'run' if count == 1 else 'runs'}")


def _deleted_text(deletion: "Deletion") -> str:
    """What goes."""
    rows = [(run.run_id[:12], run.name, run.experiment, run.status) for run in deletion.named]
    text = table(("run", "name", "experiment", "status"), rows)
    if deletion.below:
        text += f"\nand {len(deletion.below)} runs of the trials of these sweeps"
    return text


class LevelsParam(click.ParamType[Levels]):
    """Difficulties separated by commas."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The difficulties in `value`, such as 1,2."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(level) for level in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of difficulties, such as 1,2", param, ctx)


@click.command(short_help="Show or change a running run's mix.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("target")
@click.argument("moves", nargs=-1, metavar="[LEVEL=WEIGHT]...")
@click.option(
    "--lock", type=LevelsParam(), default=(), help="Difficulties whose weights stay fixed."
)
@click.option("--unlock", type=LevelsParam(), default=(), help="Difficulties that may move again.")
@options.data_dir
@options.as_json
def weights(
    run: str,
    target: str,
    moves: tuple[str, ...],
    lock: Levels,
    unlock: Levels,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show or change the weights of TARGET's difficulties while RUN trains on this machine.

    The weights sum to 1: the others change in proportion, locked ones stay. A change applies to new
    episodes until the lesson ends; the next lesson begins with its own mix. It is recorded in the
    run, and `aimbot-lab explain` shows it.

    \b
    Examples:
      aimbot-lab weights 3f2a goto
      aimbot-lab weights 3f2a goto 3=0.5 --lock 1,2
    """
    from aimbot_lab.curriculum.settings import WeightChange
    from aimbot_lab.tracking.control_channel import ControlChannel
    from aimbot_lab.tracking.run_folder import running_run

    change = WeightChange(target, tuple(map(_move, moves)), lock, unlock)
    folder = running_run(locate_data_folder(data_dir), run)
    control_channel = ControlChannel(folder.path)
    key = control_channel.send(change.as_json())
    answer = control_channel.wait(key, WAIT_SECONDS, still_open=lambda: not folder.is_free)
    if answer is None:
        raise _silence(folder.path.exists(), taken_back=control_channel.withdraw(key), run=run)
    if "error" in answer:
        raise ConfigurationError(answer["error"])
    if as_json:
        print_json({"schema": 1, "run_id": folder.run_id, **answer})
    else:
        click.echo(_weights_text(answer, changed=bool(moves or lock or unlock)))


def _weights_text(answer: dict[str, Any], *, changed: bool) -> str:
    rows = [
        (level, f"{weight:.4f}", "locked" if locked else "")
        for level, (weight, locked) in enumerate(
            zip(answer["weights"], answer["locked"], strict=True), start=1
        )
    ]
    verb = "changed" if changed else "as they are"
    head = f"{answer['target']} in lesson {answer['lesson']}, {verb} at step {answer['step']:,}"
    return f"{one_line(head)}\n" + table(("difficulty", "weight", ""), rows)


def _move(text: str) -> tuple[int, float]:
    level, _, weight = text.partition("=")
    try:
        return int(level), float(weight)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not of the form LEVEL=WEIGHT, such as 3=0.5"
        ) from None


def _silence(running: bool, *, taken_back: bool, run: str) -> Exception:
    if not running:
        return LabError(f"run {run} ended before it read the change")
    if taken_back:
        return LabError(f"run {run} did not listen in time; nothing was changed; try again")
    return LabError(f"run {run} has read the change, but its answer was lost")
