"""`aimbot-lab panel`: the page to start, watch and steer trainings on."""

from contextlib import suppress
from pathlib import Path

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.web.browser import has_browser, open_privately

OPEN_TO_ALL = (
    "warning: --host {host} lets everyone who reaches this machine and has the token start and "
    "stop trainings, and all that the page says goes unencrypted"
)


@click.command(short_help="Start, watch and steer trainings on a page.")
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=5100,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0: any that is free.",
)
@click.option("--browser/--no-browser", "opens", default=True, help="Whether a browser is opened.")
@options.trust
@options.place
def panel(run: str | None, host: str, port: int, opens: bool, place: options.Place) -> int:
    """Open a page to start trainings on, watch and steer them, until Ctrl-C.

    With RUN (an id, its beginning, or "latest") the page begins with that run. Trainings that are
    started on the page go on when the page or the panel is closed.

    \b
    Example:
      aimbot-lab panel latest
    """
    from aimbot_lab.panel.server.access import Door, is_loopback
    from aimbot_lab.panel.server.lab import Lab
    from aimbot_lab.panel.server.serve import listening_socket, new_token, panel_server

    folder = place.folder.root / "panel"
    lab = Lab(place.folder, here=Path.cwd(), tracking_uri=place.tracking_uri)
    part = "" if run is None else f"#training/{lab.find(run)}"
    with listening_socket(host, port) as listener:
        door = Door(host, listener.getsockname()[1], new_token(folder))
        entrances: list[Path] = []
        if not is_loopback(host):
            click.echo(OPEN_TO_ALL.format(host=host), err=True)
        address = f"{door.address}/?token={door.token}{part}"

        def ready() -> None:
            click.echo(f"The panel is at {address} ; Ctrl-C ends.", err=True)
            if opens and has_browser():
                with suppress(OSError):  # a full disk: the address is printed
                    entrances.append(open_privately(address, folder))

        def ended() -> None:
            for entrance in entrances:  # uvicorn ends by a signal, which runs no atexit
                entrance.unlink(missing_ok=True)

        with suppress(KeyboardInterrupt):  # by which uvicorn has ended, and which it raises again
            panel_server(lab, door, ready, ended).run([listener])
    return 0
