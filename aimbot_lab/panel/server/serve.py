"""The panel's server, from its socket to its end."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from uvicorn.protocols.http.h11_impl import H11Protocol

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import put_file
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.panel.server.lab import Lab, PagePart, Session, do
from aimbot_lab.panel.server.messages import MAX_MESSAGE, VERSION, Asked, Refusal, schema_of
from aimbot_lab.panel.server.parts.play import PLAY
from aimbot_lab.panel.server.parts.replays import REPLAYS
from aimbot_lab.panel.server.parts.runs import RUNS
from aimbot_lab.panel.server.parts.start import START
from aimbot_lab.panel.server.parts.sweep import SWEEP
from aimbot_lab.panel.server.parts.test import TEST
from aimbot_lab.panel.server.parts.training import TRAINING
from aimbot_lab.panel.server.parts.watch import WATCH

MAX_BODY = 2**20  # bytes
TOO_LARGE = f"At most {MAX_BODY} bytes.\n"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_TOKEN = "The panel needs its token: open the address that `aimbot-lab panel` printed.\n"


class Door(NamedTuple):
    """Where the panel listens, and the token that opens it."""

    host: str  # as it was given
    port: int
    token: str

    @property
    def cookie(self) -> str:
        """The name of a cookie in which a program may bring the token; no browser gets one."""
        return f"aimbot-lab-{self.port}"

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        # "localhost" may lead a browser to ::1, where another may listen.
        here = self.host in ("", "0.0.0.0", "::", "localhost")
        return f"http://{LOOPBACK[0] if here else _bracketed(self.host)}:{self.port}"

    def is_own_host(self, host: str) -> bool:
        """Whether the Host header `host` names this server.

        A server that listens beyond this machine is reached by any address, but by no name that
        it was not given: a name can be made to lead anywhere.
        """
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        if name in (*LOOPBACK, _bracketed(self.host)):
            return True
        return not is_loopback(self.host) and _is_address(name.strip("[]"))

    def knows(self, token: str | None) -> bool:
        """Whether `token` is the panel's."""
        return token is not None and secrets.compare_digest(token.encode(), self.token.encode())


class Access:
    """The ASGI application `app` for those that `door` lets in."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        if scope["type"] == "websocket":
            if refused is None:
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
            return
        send = _with_headers(send)
        if refused is not None:
            await refused(scope, receive, send)
        else:
            await self._app(scope, _bounded(receive), send)

    def _refused(self, scope: Scope) -> Response | None:
        """What is answered in place of the application; None: nothing is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._door.is_own_host(host):
            return PlainTextResponse("The panel is not at this host.\n", 403)
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if changes and headers.get("origin") != f"http://{host}":
            return PlainTextResponse("Only the panel's own page may do that.\n", 403)
        query = scope["query_string"].decode("ascii", "replace")
        given = parse_qs(query, keep_blank_values=True).get("token", [None])[0]
        is_file = not changes and (scope["path"] == "/" or scope["path"].startswith("/page/"))
        if given is None and not is_file:
            given = _cookie(headers, self._door.cookie)
        if not self._door.knows(given) and (given is not None or not is_file):
            return PlainTextResponse(NO_TOKEN, 403)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) <= MAX_BODY:
            return None
        return PlainTextResponse(TOO_LARGE, 413)


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _bounded(receive: Receive) -> Receive:
    """`receive`, which refuses who sends more than is taken and had announced less, or nothing."""
    left = MAX_BODY

    async def counted() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413, TOO_LARGE)
        return message

    return counted


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sent


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at `host`."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


PAGE = Path(__file__).parents[1] / "page"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

_IN_ORDER = (START, RUNS, TRAINING, WATCH, TEST, PLAY, REPLAYS, SWEEP)
PARTS: Mapping[str, PagePart] = MappingProxyType({part.name: part for part in _IN_ORDER})

MAX_PAGES = 32
TOO_MANY = 4029  # the code that closes the socket of one page too many

MAX_HOST = 100  # characters of it in a message
GRACE_SECONDS = 2  # that open pages have to go
SEND_BUFFER = 2**16  # bytes of a connection
MAX_CONNECTIONS = 128  # other than sockets of pages
CONNECTION_SECONDS = 15.0  # that each of them has; a page makes new ones as it needs them
TOKEN_NAME = "token"


def page_files() -> Mapping[str, Path]:
    """The files of the page by their paths from the folder `page`."""
    found = sorted(path for path in PAGE.rglob("*") if path.suffix in TYPES)
    return {path.relative_to(PAGE).as_posix(): path for path in found}


def panel_app(lab: Lab, door: Door) -> ASGIApp:
    """The panel for the runs of `lab`, open to those that `door` lets in."""
    files, open_pages = page_files(), 0

    async def file(request: Request) -> Response:
        found = files.get(request.path_params.get("name", INDEX))
        if found is None:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(found.read_bytes(), media_type=TYPES[found.suffix])

    async def schemas(_: Request) -> Response:
        return JSONResponse(message_schemas())

    async def give_replay(request: Request) -> Response:
        text = (await request.body()).decode("utf-8", "replace")
        return JSONResponse({"key": lab.replays.give(text)})

    async def serve(socket: WebSocket) -> None:
        """Serve a page until it is gone; there are MAX_PAGES at most."""
        nonlocal open_pages
        await socket.accept()
        if open_pages >= MAX_PAGES:
            await socket.close(TOO_MANY, f"{MAX_PAGES} pages are open already: close one")
            return
        open_pages += 1
        try:
            await Session(socket, lab, partial(do, parts=PARTS)).serve()
        finally:
            open_pages -= 1

    app = Starlette(
        routes=[
            Route("/", file),
            Route("/messages.schema.json", schemas),
            Route("/page/{name:path}", file),
            Route("/replay", give_replay, methods=["POST"]),
            WebSocketRoute("/socket", serve),
        ]
    )
    return Access(app, door)


def message_schemas() -> dict[str, Any]:
    """The JSON schemas of all messages."""
    return {
        "version": VERSION,
        "asked": schema_of(Asked),
        "error": schema_of(Refusal),
        "parts": {name: part.schemas() for name, part in PARTS.items()},
    }


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


def new_token(folder: Path) -> str:
    """A token that can't be guessed, of one start of the panel; for programs, `folder` holds it.

    Only its owner reads it there. A folder that can't be written to holds none.
    """
    token = secrets.token_urlsafe(24)
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        put_file(folder / TOKEN_NAME, token.encode())
    return token


class Connection(H11Protocol):
    """A connection that ends after CONNECTION_SECONDS, whatever comes on it, or becomes a socket.

    One more than MAX_CONNECTIONS ends the oldest: those that ask for nothing shut no other out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Have it end in time."""
        super().connection_made(transport)
        self._end = self.loop.call_later(CONNECTION_SECONDS, transport.abort)
        others = [one for one in self.connections if isinstance(one, Connection)]
        alive = [one for one in others if not one.transport.is_closing()]
        if len(alive) > MAX_CONNECTIONS:
            min(alive, key=lambda one: one._end.when()).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self._end.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """It is a page's socket from here on, unless it is refused."""
        self._end.cancel()
        super().handle_websocket_upgrade(event)


class PanelServer(uvicorn.Server):
    """uvicorn, which says when it listens and when it ends, by whatever signal."""

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[], object], on_end: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._on_ready, self._on_end = on_ready, on_end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, before the signal that asked for it is raised again."""
        self._on_end()
        await super().shutdown(sockets)


def panel_server(
    lab: Lab,
    door: Door,
    on_ready: Callable[[], object],
    on_end: Callable[[], object] = lambda: None,
) -> PanelServer:
    """A server of the panel, to be run with the socket that `door` speaks of."""
    logging.getLogger("uvicorn.error").addFilter(_is_no_fault_of_a_page)
    config = uvicorn.Config(
        panel_app(lab, door),
        http=Connection,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        log_level="error",  # strangers would fill the terminal with their faults
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return PanelServer(config, on_ready, on_end)


def _is_no_fault_of_a_page(record: logging.LogRecord) -> bool:
    """False for a message that is not UTF-8, and for a page that was left amid a request."""
    faults = UnicodeDecodeError, ClientDisconnect
    return record.exc_info is None or record.exc_info[0] not in faults


def _holder(port: int) -> str:
    """Which process has a port, as far as that can be seen."""
    import psutil

    with suppress(psutil.Error, OSError):
        for one in psutil.net_connections("tcp"):
            taken = one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
            if taken and one.pid is not None:
                return f" (by process {one.pid}, {psutil.Process(one.pid).name()})"
    return ""
