"""The panel's server, from its socket to its end."""

import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.panel.server.access import Door, new_token
from aimbot_lab.panel.server.app import panel_app
from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.messages import MAX_MESSAGE
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.durable import put_file

MAX_HOST = 100  # characters of it in a message
GRACE_SECONDS = 2  # that open pages have to go
SEND_BUFFER = 2**16  # bytes of a connection
MAX_CONNECTIONS = 128  # sockets of pages and all else
TOKEN_NAME = "token"


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port` (0: any that is free).

    Raises ConfigurationError where it can't be had, and says who has it where that can be seen.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What waits here is old by the time a slow page reads it: frames are better skipped.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host has such a name
        listener.close()
        reason = shortened(str(getattr(error, "strerror", None) or error), 200)
        raise ConfigurationError(
            f"--host {shortened(host, MAX_HOST)} --port {port}: {reason}{_holder(port)}; choose "
            "another with --port or --host"
        ) from error
    return listener


def kept_token(data_folder: DataFolder) -> str:
    """The data folder's token, made once: pages that stay open find a panel that begins anew."""
    place = data_folder.root / "panel" / TOKEN_NAME
    with suppress(OSError, UnicodeDecodeError):
        if len(found := place.read_text("ascii").strip()) >= 32 and _is_private(place):
            return found
    token = new_token()
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        put_file(place, token.encode())  # readable by its owner alone
    return token


class PanelServer(uvicorn.Server):
    """uvicorn, which says when it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def panel_server(lab: Lab, door: Door, on_ready: Callable[[], object]) -> PanelServer:
    """A server of the panel, to be run with the socket that `door` speaks of."""
    config = uvicorn.Config(
        panel_app(lab, door),
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return PanelServer(config, on_ready)


def _is_private(path: Path) -> bool:
    return path.stat().st_mode & 0o077 == 0


def _holder(port: int) -> str:
    """Which process has a port, as far as that can be seen."""
    import psutil

    with suppress(psutil.Error, OSError):
        for one in psutil.net_connections("tcp"):
            taken = one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
            if taken and one.pid is not None:
                return f" (by process {one.pid}, {psutil.Process(one.pid).name()})"
    return ""
