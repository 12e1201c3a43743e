"""MLflow as it runs here: what it reads before its import, how its page shows, and who gets in.

`mlflow server --app-name aimbot-lab` runs `create_app`, the application for holders of a token.
MLflow itself asks for nothing: every account of the machine, and every page in a browser there,
can write into runs and files. A request passes here if it brings the token
- as the first part of its path: MLflow's page asks for everything by relative addresses, so that a
  browser that was given the address brings the token each time;
- or as a bearer token, which MLflow's client sends if MLFLOW_TRACKING_TOKEN is set.
A cookie would not do: a browser sends it to every port of a host, also to other accounts' servers.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from importlib.metadata import entry_points
from secrets import compare_digest
from types import MappingProxyType
from typing import Any

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError

# The literal "true": MLflow does not take "1" for DO_NOT_TRACK.
QUIET = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # Standard output is for data.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    # The sender retries by itself; with MLflow's own retries a dead server takes minutes to fail.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def quieten_mlflow() -> None:
    """Set the variables of `QUIET` that the user has not set; call it before importing mlflow."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


VIEW = "aimbot-lab"
_COLUMNS = (
    f"metrics.`{names.LEARNING_WIN_RATE}`",
    f"metrics.`{names.EVAL_WIN_RATE}`",
    "tags.`lab.ended`",
    "attributes.`Duration`",
)
EXPERIMENT_TAGS: Mapping[str, str] = MappingProxyType(
    {
        "mlflow.experimentKind": "custom_model_development",
        f"mlflow.sharedViewState.{VIEW}": json.dumps({"selectedColumns": _COLUMNS}),
    }
)


APP_NAME = "aimbot-lab"
TOKEN_VARIABLE = "AIMBOT_LAB_UI_TOKEN"  # of the server's environment, which others can't read
NO_TOKEN = (
    "The page needs its token: open the address that `aimbot-lab ui` or the panel gave. "
    "Programs set MLFLOW_TRACKING_TOKEN to the token, the first part of that address's path.\n"
)
OTHER_PAGE = "Only the page itself may do that.\n"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def is_installed() -> bool:
    """Whether MLflow's server, which looks among the entry points, finds `create_app`."""
    found = [entry.value for entry in entry_points(group="mlflow.app", name=APP_NAME)]
    return found[:1] == [f"{create_app.__module__}:{create_app.__name__}"]


def create_app() -> App:
    """MLflow's application behind a guard that knows the token of `TOKEN_VARIABLE`."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise ConfigurationError(f"{TOKEN_VARIABLE} is not set; aimbot-lab ui sets it")
    from mlflow.server.fastapi_app import app

    return guarded(app, token)


def guarded(app: App, token: str) -> App:
    """The ASGI application `app` for requests that bring `token`, but of no other origin's page."""

    def is_token(given: bytes) -> bool:
        return compare_digest(given, token.encode())

    async def guard(scope: Message, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                private = (b"referrer-policy", b"no-referrer")  # or a link would tell the address
                message["headers"] = [*message.get("headers", ()), private]
            await send(message)

        async def refuse(status: HTTPStatus, words: str) -> None:
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            await answer({"type": "http.response.start", "status": status, "headers": headers})
            await answer({"type": "http.response.body", "body": words.encode()})

        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":  # MLflow has no websockets
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = dict(scope["headers"])
        first, _, rest = scope["path"][1:].partition("/")
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        if is_token(first.encode()):
            scope = {**scope, "path": f"/{rest}", "raw_path": None}
        elif scheme.lower() != b"bearer" or not is_token(bearer.strip()):
            await refuse(HTTPStatus.UNAUTHORIZED, NO_TOKEN)
            return
        origin = headers.get(b"origin")  # programs send none
        if origin is not None and origin.partition(b"://")[2] != headers.get(b"host"):
            await refuse(HTTPStatus.FORBIDDEN, OTHER_PAGE)
            return
        await app(scope, receive, answer)

    return guard
