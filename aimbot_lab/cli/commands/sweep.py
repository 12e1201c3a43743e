"""`aimbot-lab sweep`: look for the values that win most."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_files, file_names
from aimbot_lab.cli.stopping import stop_on_signals
from aimbot_lab.cli.text import print_json, report_text, status_text, table
from aimbot_lab.cli.view import ShareView, sweep_view
from aimbot_lab.cluster.connection import connected
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.shown_text import one_line, terminal_lines
from aimbot_lab.tracking.data_folder import locate_data_folder

if TYPE_CHECKING:
    from aimbot_lab.sweep.coordinator import StartWorkers, SweepResult
    from aimbot_lab.sweep.document import LoadedSweep
    from aimbot_lab.sweep.record import SweepRecord
    from aimbot_lab.sweep.storage import StorageAddress

FAILED, STOPPED = 1, 130
Result = TypeVar("Result")
storage = click.option(
    "--storage",
    metavar="ADDRESS",
    help="Where to keep the trials: postgresql://USER@HOST/DATABASE for several machines, or "
    "sqlite:///FILE. [default: a file in the data folder]",
)


def of_record(command: Callable[..., Result]) -> Callable[..., Result]:
    """`command` for a sweep that has begun, which it is given as `record`; nothing is created."""

    @click.argument("sweep", shell_complete=complete_files("sweep"))
    @storage
    @options.data_dir
    @wraps(command)
    def found(sweep: str, storage: str | None, data_dir: Path | None, **others: Any) -> Result:
        from aimbot_lab.sweep.record import find_record

        folder = locate_data_folder(data_dir)
        return command(find_record(folder, sweep, storage), **others)

    return found


class SweepGroup(click.Group):
    """A group whose first word may also be a sweep, which is then started."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in where it was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Commands, and sweeps, which may stand in the place of one."""
        names = [name for name in file_names("sweep") if name.startswith(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]

    def invoke(self, ctx: click.Context) -> Any:
        """What the command returns; a storage that fails is reported in one line."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from aimbot_lab.sweep.storage import storage_error

            trouble = storage_error(error)
            if trouble is None:
                raise
            raise trouble from error


@click.group(cls=SweepGroup, short_help="Search rewards and other values (Optuna).")
def sweep() -> None:
    """Search for the values of a curriculum that learn best.

    `aimbot-lab sweep SWEEP` is short for `aimbot-lab sweep start SWEEP`; see
    `aimbot-lab sweep start --help` for its options.

    \b
    Example:
      aimbot-lab sweep rewards --trials 12 --workers 2
    """


@sweep.command(short_help="Run a sweep, or resume it.")
@click.argument("sweep", shell_complete=complete_files("sweep"))
@click.option("--trials", type=int, help="How many trials, overriding the file.")
@click.option("--workers", type=int, help="How many processes train, one core each.")
@click.option("--parallel", type=int, help="How many trials may run at once.")
@click.option("--seed", type=int, help="Seed of the sweep.")
@click.option("--name", help="Name of the sweep; a new name starts a new sweep.")
@click.option("--resume", is_flag=True, help="Resume a sweep that was started before.")
@click.option(
    "--on",
    type=click.Choice(["ray"]),
    help="Where to run the workers. ray: on the cluster of RAY_ADDRESS, else on this machine; "
    "needs pip install 'aimbot-lab[ray]' and --storage postgresql://... [default: processes "
    "on this machine]",
)
@options.tags
@storage
@options.place
@options.as_json
def start(
    sweep: str,
    resume: bool,
    tags: tuple[str, ...],
    storage: str | None,
    place: options.StorePlace,
    as_json: bool,
    **given: Any,
) -> int:
    """Run SWEEP, a path or a name; names are looked up in sweeps/, here, and among shipped files.

    The same sweep gives the same result with any number of workers, even if some of them die.
    Ctrl-C, SIGTERM or closing the terminal stops it after the current updates; --resume continues
    it, and also repeats failed confirmations. With --storage postgresql://... the same command on
    other machines adds their workers.

    Exit code 0 when all is done, 1 if a confirmation failed or no trial has a value, 2 for a
    mistake in the file or an option (nothing is created), 130 when stopped.

    \b
    Example:
      aimbot-lab sweep rewards --trials 12 --workers 2
    """
    from aimbot_lab.sweep.coordinator import SweepRequest, run_sweep

    on = given.pop("on")
    values = {key: value for key, value in given.items() if value is not None}
    own_tags = options.parsed_tags(tags)
    loaded, address = checked(sweep, values, storage=storage, place=place)
    workers = loaded.config.workers
    with placed(on, address, workers) as start_workers:
        record = begun(loaded, address, values.get("trials"), resume=resume, tags=own_tags)
        with sweep_view(record.name) as view, stop_on_signals(view.notice) as stop:
            store = (
                place.tracking_uri or loaded.config.tracking.uri
            )  # which the record has no login of
            request = SweepRequest(record, place.folder, workers, store, start_workers)
            result = run_sweep(request, view, should_stop=stop)
    return _shown(result, as_json=as_json)


def checked(
    sweep: str, values: dict[str, Any], *, storage: str | None, place: options.StorePlace
) -> "tuple[LoadedSweep, StorageAddress]":
    """The sweep and its storage, once all are found to be usable."""
    from aimbot_lab.sweep.document import load_sweep
    from aimbot_lab.sweep.storage import check_storage, choose_storage
    from aimbot_lab.tracking.journal_tracker import check_destination, check_server

    loaded = load_sweep(sweep, values, may_run=always)
    folder, tracking_uri = place.folder, place.tracking_uri
    check_destination(folder, loaded.config.tracking, tracking_uri=tracking_uri)
    address = choose_storage(folder, loaded.config.name, storage)
    check_storage(address)
    check_server(folder, loaded.config.tracking, tracking_uri=tracking_uri)
    return loaded, address


@contextmanager
def placed(on: str | None, address: "StorageAddress", workers: int) -> "Iterator[StartWorkers]":
    """What starts workers: on this machine, or where Ray places them."""
    from aimbot_lab.sweep.worker import WorkerPool

    if on is None:
        yield WorkerPool
        return
    if not address.is_shared:
        raise ConfigurationError(
            f"--on {on}: needs --storage postgresql://USER@HOST/DATABASE: "
            "workers on other machines can't open a file of this one"
        )
    from aimbot_lab.cluster.sweep_workers import RayWorkers

    click.echo("Ray opens ports and encrypts nothing: use it in a network you trust", err=True)
    with connected(workers) as ray:
        yield partial(RayWorkers, ray)


def begun(
    loaded: "LoadedSweep",
    address: "StorageAddress",
    trials: int | None,
    *,
    resume: bool,
    tags: dict[str, str],
) -> "SweepRecord":
    """The record of a sweep that begins or is joined."""
    from aimbot_lab.sweep.record import begin
    from aimbot_lab.sweep.storage import open_storage

    joined = resume or address.is_shared
    record = begin(open_storage(address), loaded, resume=joined, trials=trials, tags=tags)
    for failed in record.retry() if resume else ():
        click.echo(one_line(f"{failed.line}; it is run again"), err=True)
    known = len(record.search_queue().trials)
    if known > record.trials:
        click.echo(f"{known} trials have begun already; none is added", err=True)
    return record


def _shown(result: "SweepResult", *, as_json: bool) -> int:
    """The exit code of a sweep whose result is shown."""
    best = None if result.best_file is None else str(result.best_file)
    if as_json:
        run = {"run_id": result.parent_run, "tracking_uri": result.tracking_uri}
        print_json({**result.report.as_json(), "best_file": best, **run})
    else:
        click.echo(terminal_lines(report_text(result.report)))
    unconfirmed = result.report.unconfirmed if result.is_done else ()
    if best is not None:
        which = "best values of the search, not all confirmed" if unconfirmed else "best values"
        click.echo(f"Train with the {which}: aimbot-lab run {best}", err=as_json)
    if not result.is_done:
        click.echo("stopped; the same command with --resume continues", err=True)
        return STOPPED
    if best is None:
        click.echo("error: no trial has a value; the table says why", err=True)
        return FAILED
    if unconfirmed:
        more = f" (and {len(unconfirmed) - 1} more)" if len(unconfirmed) > 1 else ""
        line = one_line(f"error: {unconfirmed[0].line}{more}")
        click.echo(f"{line}; the same command with --resume runs it again", err=True)
        return FAILED
    return 0


@sweep.command(short_help="Show the progress of a sweep.")
@of_record
@options.as_json
def status(record: "SweepRecord", as_json: bool) -> None:
    """Show the progress of SWEEP: how many trials have ended, failed or still run, and the best.

    Trials of dead workers are released, so that `--resume` picks them up.

    \b
    Example:
      aimbot-lab sweep status rewards
    """
    from aimbot_lab.sweep.report import report

    for number in record.reap():
        click.echo(f"trial {number} was left by a dead worker; --resume picks it up", err=True)
    found = report(record)
    if as_json:
        summary = {"name": found.name, "status": found.status, "total": found.total}
        best = None if found.best is None else {"trial": found.best}
        failed = [
            {"trial": trial.number, "stage": "search", "reason": trial.reason}
            for trial in found.trials
            if trial.state == "failed"
        ]
        failed += [
            {"trial": one.label, "stage": "confirm", "reason": one.reason}
            for one in found.unconfirmed
        ]
        print_json({"schema": 1, **summary, "ended": found.ended, "best": best, "failed": failed})
    else:
        click.echo(terminal_lines(status_text(found)))


@sweep.command("report", short_help="Show all trials and the confirmation.")
@of_record
@options.as_json
def show(record: "SweepRecord", as_json: bool) -> None:
    """Show every trial of SWEEP, and the best trials' values on new seeds.

    \b
    Example:
      aimbot-lab sweep report rewards
    """
    from aimbot_lab.sweep.report import report

    found = report(record)
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(terminal_lines(report_text(found)))


@sweep.command(short_help="Estimate what a confirmation can detect.")
@of_record
@options.as_json
def power(record: "SweepRecord", as_json: bool) -> None:
    """Estimate how often the confirmation of SWEEP detects differences of several sizes.

    Simulates artificial differences, added to the steps that the curriculum's own values took on
    new seeds. For sweeps by steps_to_goal, after their confirmation.

    \b
    Example:
      aimbot-lab sweep power rewards
    """
    from aimbot_lab.sweep.report import power

    found = power(record)
    if as_json:
        print_json({"schema": 1, "sweep": record.name, "power": [*found.items()]})
    else:
        rows = [(f"{factor:g} times", f"{100 * share:.1f} %") for factor, share in found.items()]
        click.echo(table(("steps of the defaults", "found in"), rows))


@sweep.command("rerun", short_help="Repeat a trial and compare the bits.")
@click.argument("sweep", shell_complete=complete_files("sweep"))
@click.argument("trial", type=int)
@storage
@options.place
@options.as_json
def run_again(
    sweep: str, trial: int, storage: str | None, place: options.StorePlace, as_json: bool
) -> int:
    """Train and score TRIAL of SWEEP again, and compare.

    Exit code 0 if the value and everything learned are the same to the last bit, 1 otherwise.

    \b
    Example:
      aimbot-lab sweep rerun rewards 7
    """
    from aimbot_lab.sweep.record import find_record
    from aimbot_lab.sweep.rerun import rerun

    record = find_record(place.folder, sweep, storage)
    view = ShareView(f"trial {trial}")
    if record.other_code is not None:
        view.notice(record.other_code)
    with stop_on_signals(view.notice) as stop:
        at: dict[str, Any] = {"data_folder": place.folder, "tracking_uri": place.tracking_uri}
        done = rerun(record, trial, **at, on_share=view.share, should_stop=stop)
    if done is None:
        click.echo("stopped", err=True)
        return STOPPED
    if as_json:
        head = {"schema": 1, "sweep": record.name, "trial": trial}
        print_json({**head, "before": done.before, "now": done.now, "same": done.is_same})
    else:
        verdict = "the same to the last bit" if done.is_same else "NOT the same"
        click.echo(f"trial {trial}: {done.before!r} before, {done.now!r} now: {verdict}")
    return 0 if done.is_same else 1
