"""`aimbot-lab ui` and `aimbot-lab panel`: the commands that serve a page until Ctrl-C."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from ipaddress import ip_address
from pathlib import Path
from tempfile import mkstemp
from threading import Thread

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_runs
from aimbot_lab.cli.stopping import handled_signals, tied
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import shortened, terminal_lines
from aimbot_lab.tracking.tracker import RunSummary

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # variables that say there is a browser
REDIRECT = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<a href="{address}">Open the page</a>
"""

LINES_KEPT = 20  # of what the server says
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 5.0  # before it is asked no longer

OPEN_TO_ALL = (
    "warning: --host {host} lets everyone who reaches this machine and has the address below see, "
    "change and delete all runs, and the address goes unencrypted"
)
MAX_HOST = 100  # characters of it in a message

PANEL_OPEN_TO_ALL = (
    "warning: --host {host} lets everyone who reaches this machine and has the token start and "
    "stop runs, and all that the page says goes unencrypted"
)


def has_browser() -> bool:
    """Whether a window can be opened; a browser in the terminal would take it from the server."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in SCREENS)


def open_privately(address: str, folder: Path) -> Path:
    """The file by which the browser opens `address`; only this account can read it.

    Everyone sees the arguments of a browser's process; a file's name there gives no token away.
    The file redirects to the address, and is deleted when this process ends. It is in `folder`,
    not among temporary files, which a browser that is packaged as a snap does not see.
    Raises OSError where it can't be written.
    """
    descriptor, name = mkstemp(prefix="open-", suffix=".html", dir=folder)  # with mode 0600
    file = Path(name)
    atexit.register(file.unlink, missing_ok=True)
    with open(descriptor, "w", encoding="utf-8") as opened:
        opened.write(REDIRECT.format(address=escape(address)))
    # Some browsers in BROWSER return only once they are closed.
    Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
    return file


@contextmanager
def running_server(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> Iterator["RunningServer"]:
    """A server that ends with the block, and is asked to by SIGINT, SIGTERM and SIGHUP."""
    asked: list[int] = []
    with handled_signals(lambda number, _frame: asked.append(number)):
        # A group of its own, because the server starts processes that must end with it.
        process = subprocess.Popen(
            tied(arguments),
            env=dict(environment),
            stdin=subprocess.PIPE,  # closed with this process, which ends the server
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        server = RunningServer(process, asked)
        try:
            yield server
        finally:
            server.end()


class RunningServer:
    """A server's process and all that it started; what it says is kept back.

    It is to end once a signal is among those that are `asked`.
    """

    def __init__(self, process: subprocess.Popen[str], asked: Sequence[int]) -> None:
        self._process, self._asked = process, asked
        self._said: deque[str] = deque(maxlen=LINES_KEPT)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        if self._process.stdout is not None:
            self._said.extend(self._process.stdout)

    def wait_until(self, ready: Callable[[], bool]) -> bool:
        """Whether `ready` came true before the server ended or was asked to."""
        while self._goes_on():
            if ready():
                return True
        return False

    def wait(self) -> int | None:
        """The exit code of a server that ended by itself; None where it was asked to."""
        while self._goes_on():
            pass
        return self._process.returncode

    def _goes_on(self) -> bool:
        try:
            self._process.wait(SECONDS_BETWEEN_LOOKS)
        except subprocess.TimeoutExpired:
            return not self._asked
        return False

    def end(self) -> None:
        """End the server and all that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            # Its output ends when the last of them has ended.
            if self._listener.is_alive():
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
            self._listener.join(SECONDS_TO_END)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None and not self._listener.is_alive():
            self._process.stdout.close()

    @property
    def last_words(self) -> str:
        """The last lines that the server said, once it has ended."""
        return "".join(self._said)


@click.command(short_help="Open the runs in MLflow's web page.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@options.number("--port", 5000, (1, 65535), "Port to listen on.")
@click.option("--browser/--no-browser", "opens", default=True, help="Whether to open a browser.")
@options.place
def ui(runs: tuple[str, ...], host: str, port: int, opens: bool, place: options.StorePlace) -> int:
    """Open the runs in MLflow's web page, until Ctrl-C.

    With one RUN (an id, its beginning, or "latest"): its own page. With several: the charts of
    these runs. Without: the charts of the newest run's experiment.

    Anyone who has the printed address can read, change and delete all runs and write files as you.
    It contains a token, which each start makes anew. Requests without the token are refused, from
    other accounts of this machine and from other pages in your browser alike. Programs set
    MLFLOW_TRACKING_URI=http://127.0.0.1:5000 and MLFLOW_TRACKING_TOKEN to the token. Beyond this
    machine (--host) the address travels unencrypted.

    \b
    Example:
      aimbot-lab ui 3f2a 9c01
    """
    from aimbot_lab.experiment.runs.run_record import close_orphan_runs
    from aimbot_lab.tracking.ui import ui_command

    _refuse_taken_port(host, port)
    folder = place.folder
    close_orphan_runs(folder)
    from aimbot_lab.tracking.history import find_run

    part = _part(
        [find_run(place.folder, run, tracking_uri=place.tracking_uri) for run in runs], place
    )
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


def _part(runs: Sequence[RunSummary], place: options.StorePlace) -> str:
    from aimbot_lab.tracking.history import list_runs
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


@click.command(short_help="Start, watch and steer runs on a page.")
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@options.number("--port", 5100, (0, 65535), "Port to listen on; 0: any free port.")
@click.option("--browser/--no-browser", "opens", default=True, help="Whether to open a browser.")
@options.trust
@options.place
def panel(run: str | None, host: str, port: int, opens: bool, place: options.StorePlace) -> int:
    """Open a page to start, watch and steer runs, until Ctrl-C.

    With RUN (an id, its beginning, or "latest") the page opens on that run. Runs started on the
    page continue when the page or the panel is closed.

    \b
    Example:
      aimbot-lab panel latest
    """
    from aimbot_lab.panel.server.lab import Lab
    from aimbot_lab.panel.server.serve import (
        Door,
        is_loopback,
        listening_socket,
        new_token,
        panel_server,
    )

    folder = place.folder.root / "panel"
    lab = Lab(place.folder, here=Path.cwd(), tracking_uri=place.tracking_uri)
    part = "" if run is None else f"#training/{lab.find(run)}"
    with listening_socket(host, port) as listener:
        door = Door(host, listener.getsockname()[1], new_token(folder))
        entrances: list[Path] = []
        if not is_loopback(host):
            click.echo(PANEL_OPEN_TO_ALL.format(host=host), err=True)
        address = f"{door.address}/?token={door.token}{part}"

        def ready() -> None:
            click.echo(f"The panel is at {address} ; Ctrl-C ends.", err=True)
            if opens and has_browser():
                with suppress(OSError):  # a full disk: the address is printed
                    entrances.append(open_privately(address, folder))

        def ended() -> None:
            for entrance in entrances:  # uvicorn ends by a signal, which runs no atexit
                entrance.unlink(missing_ok=True)

        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # uvicorn would leave the entrance
            signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
        with suppress(KeyboardInterrupt):  # by which uvicorn has ended, and which it raises again
            panel_server(lab, door, ready, ended).run([listener])
    return 0
