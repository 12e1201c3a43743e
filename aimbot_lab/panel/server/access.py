"""Who is let in by the panel: requests that bring its token.

The token comes in the address of each request. The page keeps it in the storage of its own origin,
which a browser shows to no other port. There is no cookie: a browser sends a cookie of 127.0.0.1
to any program that listens at a port of it. Without a token only the page's own files are served,
which everyone has who has the package. The Host header must name this server (against DNS
rebinding), and what changes something must come from a page of this server (Origin). Bodies are
bounded.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
