"""`aimbot-lab ui`: the runs in MLflow's web page."""

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.web.browser import has_browser, open_privately
from aimbot_lab.foundation.shown_text import shortened, terminal_lines

if TYPE_CHECKING:
    from aimbot_lab.tracking.runs.run_summary import RunSummary

OPEN_TO_ALL = (
    "warning: --host {host} lets everyone who reaches this machine and has the address below see, "
    "change and delete all runs, and the address goes unencrypted"
)
MAX_HOST = 100  # characters of it in a message


@click.command(short_help="Open the runs in MLflow's web page.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=5000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)
@click.option("--open/--no-open", "opens", default=True, help="Whether a browser is opened.")
@options.place
def ui(runs: tuple[str, ...], host: str, port: int, opens: bool, place: options.Place) -> int:
    """Open the runs in MLflow's web page, until Ctrl-C.

    Of one RUN (an id, its beginning, or "latest") its own page, of several the charts of these
    alone, of none the charts of the newest run's experiment.

    Whoever has the printed address can read, change and delete all runs and write files as you.
    It holds a token that is new at each start. Requests without the token are refused, from other
    accounts of this machine and from other pages in your browser alike. A program sets
    MLFLOW_TRACKING_URI=http://127.0.0.1:5000 and MLFLOW_TRACKING_TOKEN to the token. Beyond this
    machine (--host) the address travels unencrypted.

    \b
    Example:
      aimbot-lab ui 3f2a 9c01
    """
    from aimbot_lab.cli.processes.server import running_server
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
    from aimbot_lab.tracking.ui import ui_command

    _refuse_taken_port(host, port)
    folder = place.folder
    close_orphan_runs(folder)
    part = _part(_found(runs, place), place)
    command = ui_command(folder, tracking_uri=place.tracking_uri, host=host, port=port)
    if not _is_loopback(host):
        click.echo(OPEN_TO_ALL.format(host=terminal_lines(shortened(host, MAX_HOST))), err=True)
    click.echo("starting the page ...", err=True)
    with running_server(command.arguments, command.environment) as server:
        if server.wait_until(command.answers):
            click.echo(f"The runs are at {command.address}{part} ; Ctrl-C ends.", err=True)
            if opens and has_browser():
                open_privately(command.address + part, folder.root)
        code = server.wait()
    if not code:
        return 0
    message = f"{server.last_words}error: the page's server ended with exit code {code}"
    click.echo(terminal_lines(message), err=True)
    return 1


def _found(runs: Sequence[str], place: options.Place) -> "list[RunSummary]":
    from aimbot_lab.tracking.runs.history import find_run

    return [find_run(place.folder, run, tracking_uri=place.tracking_uri) for run in runs]


def _part(runs: "Sequence[RunSummary]", place: options.Place) -> str:
    from aimbot_lab.tracking.runs.history import list_runs
    from aimbot_lab.tracking.ui import page_of, page_of_experiment

    if runs:
        return page_of(runs)
    newest = list_runs(place.folder, tracking_uri=place.tracking_uri, max_results=1)
    return page_of_experiment(newest[0]) if newest else page_of([])


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at `host`; False where that is unknown."""
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", None)
    except OSError:
        return False
    return all(ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)


def _refuse_taken_port(host: str, port: int) -> None:
    from aimbot_lab.foundation.errors import ConfigurationError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:  # UnicodeError: no host has such a name
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"--host {shortened(host, MAX_HOST)} --port {port}: {shortened(str(reason), 200)}; "
            "choose another with --port or --host"
        ) from error
