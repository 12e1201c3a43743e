"""`aimbot-lab ui`: the runs in MLflow's web page."""

import http.client
import socket
from pathlib import Path

import click

from aimbot_lab.cli import options


@click.command(short_help="Open the runs in MLflow's web page.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535))
@options.data_dir
@options.tracking_uri
def ui(host: str, port: int, data_dir: Path | None, tracking_uri: str | None) -> int:
    """Open the runs in MLflow's web page, until Ctrl-C.

    \b
    Example:
      aimbot-lab ui --port 5001
    """
    from aimbot_lab.cli.server import running_server
    from aimbot_lab.tracking.data_folder import locate_data_folder
    from aimbot_lab.tracking.reaper import reap_dead_runs
    from aimbot_lab.tracking.ui import ui_command

    _refuse_taken_port(host, port)
    folder = locate_data_folder(data_dir)
    reap_dead_runs(folder)
    command = ui_command(folder, tracking_uri=tracking_uri, host=host, port=port)
    click.echo("starting the page ...", err=True)
    with running_server(command.arguments, command.environment) as server:
        if server.wait_until(lambda: _answers(host, port)):
            click.echo(f"The runs are at {command.address}; Ctrl-C ends.", err=True)
        code = server.wait()
    if not code:
        return 0
    click.echo(f"{server.last_words}error: the page's server ended with exit code {code}", err=True)
    return 1


def _answers(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=1.0)
    try:
        connection.request("GET", "/health")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _refuse_taken_port(host: str, port: int) -> None:
    from aimbot_lab.foundation.errors import ConfigurationError

    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(
            f"--host {host} --port {port}: {reason}; choose another with --port"
        ) from error
