"""`aimbot-lab ui`: the runs in MLflow's web page."""

import socket
import subprocess
import sys
from pathlib import Path

import click

from aimbot_lab.cli import options


@click.command()
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
    from aimbot_lab.tracking.data_folder import locate_data_folder
    from aimbot_lab.tracking.reaper import reap_dead_runs
    from aimbot_lab.tracking.ui import ui_command

    _refuse_taken_port(host, port)
    folder = locate_data_folder(data_dir)
    reap_dead_runs(folder)
    command = ui_command(folder, tracking_uri=tracking_uri, host=host, port=port)
    click.echo(f"The runs are at {command.address} in a few seconds; Ctrl-C ends.", err=True)
    # What the server says would bury that address, so only its errors are let through.
    process = subprocess.Popen(
        command.arguments, env=dict(command.environment), stdout=sys.stderr.fileno()
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        return 0


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
