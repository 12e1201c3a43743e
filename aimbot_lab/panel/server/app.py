"""The application: the page's files, the schemas of the messages, and one socket for each page."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from aimbot_lab.panel.server.access import Access, Door
from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.messages import VERSION, Asked, Refusal, schema_of
from aimbot_lab.panel.server.page_files import INDEX, page_files
from aimbot_lab.panel.server.part import Part, do
from aimbot_lab.panel.server.parts.table import PARTS
from aimbot_lab.panel.server.session import Session

MAX_PAGES = 32
TOO_MANY = 4029  # the code that closes the socket of one page too many


def panel_app(lab: Lab, door: Door, parts: Mapping[str, Part] = PARTS) -> ASGIApp:
    """The panel for the runs of `lab`, open to whom `door` lets in."""
    files = page_files()
    open_pages = Pages(lab, parts)

    async def file(request: Request) -> Response:
        found = files.get(request.path_params.get("name", INDEX))
        if found is None:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(found.path.read_bytes(), media_type=found.media_type)

    async def schemas(_: Request) -> Response:
        return JSONResponse(message_schemas(parts))

    async def give_replay(request: Request) -> Response:
        text = (await request.body()).decode("utf-8", "replace")
        return JSONResponse({"key": lab.replays.give(text)})

    app = Starlette(
        routes=[
            Route("/", file),
            Route("/messages.schema.json", schemas),
            Route("/page/{name:path}", file),
            Route("/replay", give_replay, methods=["POST"]),
            WebSocketRoute("/socket", open_pages.serve),
        ]
    )
    return Access(app, door)


class Pages:
    """The open pages, at most MAX_PAGES."""

    def __init__(self, lab: Lab, parts: Mapping[str, Part]) -> None:
        self._lab, self._parts = lab, parts
        self._count = 0

    async def serve(self, socket: WebSocket) -> None:
        """Serve a page until it is gone."""
        await socket.accept()
        if self._count >= MAX_PAGES:
            await socket.close(TOO_MANY, f"{MAX_PAGES} pages are open already: close one")
            return
        self._count += 1
        try:
            await Session(socket, self._lab, partial(do, parts=self._parts)).serve()
        finally:
            self._count -= 1


def message_schemas(parts: Mapping[str, Part] = PARTS) -> dict[str, Any]:
    """The JSON schemas of all messages."""
    return {
        "version": VERSION,
        "asked": schema_of(Asked),
        "error": schema_of(Refusal),
        "parts": {name: part.schemas() for name, part in parts.items()},
    }
