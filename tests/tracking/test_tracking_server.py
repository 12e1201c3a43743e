"""Servers that are slow, dead or something else altogether."""

import json
import socket
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import mlflow_store
from aimbot_lab.tracking.address import TrackingAddress
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.store_errors import LOGIN, store_error


def test_a_server_that_never_answers_is_one_line_after_one_try(tmp_path, monkeypatch):
    monkeypatch.setattr(mlflow_store, "ANSWER_SECONDS", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        host, port = silent.getsockname()
        with pytest.raises(StoreError) as caught:
            list_runs(DataFolder(tmp_path), tracking_uri=f"http://me:secret@{host}:{port}")
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert str(caught.value) == (
        f"tracking store http://me:***@{host}:{port}: no answer within 0.2 s"
    )


def test_the_time_for_an_answer_is_short():
    assert mlflow_store.ANSWER_SECONDS <= 10


@pytest.fixture
def server():
    """Serve a given answer to every request, and give back its address and what was asked."""
    servers = []

    def start(status, body):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(self.path)
                content = body.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_):
                pass

        made = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(made)
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{made.server_port}", asked

    yield start
    for made in servers:
        made.shutdown()
        made.server_close()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, "<html>\nnothing\nhere</html>"),
        (500, json.dumps({"error_code": "INTERNAL_ERROR", "message": "broken\ninside"})),
        (200, "<html>hello</html>"),
    ],
)
def test_a_server_that_is_no_tracking_server_is_one_line(server, tmp_path, status, body):
    address, asked = server(status, body)
    with pytest.raises(StoreError) as caught:
        list_runs(DataFolder(tmp_path), tracking_uri=address)
    message = str(caught.value)
    assert message.startswith(f"tracking store {address}: ")
    assert "\n" not in message
    assert "hello" not in message
    assert len(asked) == 1


def test_a_server_without_runs_has_none(server, tmp_path):
    address, asked = server(200, json.dumps({}))
    assert list_runs(DataFolder(tmp_path), tracking_uri=address) == []
    assert asked[0] == "/api/2.0/mlflow/experiments/search"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "API request to http://x failed with exception HTTPConnectionPool(host='x', port=1): "
            'Max retries exceeded with url: /a (Caused by ReadTimeoutError("HTTPConnectionPool('
            "host='x', port=1): Read timed out. (read timeout=30)\"))",
            "no answer within 30 s",
        ),
        (
            "HTTPConnectionPool(host='x', port=1): Max retries exceeded with url: /a (Caused by "
            "ConnectTimeoutError(<HTTPConnection(host='x', port=1) at 0x1>, 'Connection to x timed "
            "out. (connect timeout=10.0)'))",
            "no answer within 10 s",
        ),
        ("(sqlite3.OperationalError) database or disk is full [SQL: INSERT]", None),
        ("API request to endpoint /a failed with error code 401 != 200. Response body: ''", LOGIN),
        ("401 Client Error: UNAUTHORIZED for url: http://a:secret@b/c", LOGIN),
        (
            'connection to server at "x" failed: fe_sendauth: no password supplied',
            'connection to server at "x" failed: fe_sendauth: no password supplied; set '
            "MLFLOW_TRACKING_URI to the address with its password (none is stored)",
        ),
        (
            "The following failures occurred while downloading one or more artifacts from "
            "http://x/artifacts:\n##### File agent/last #####\n404 Client Error: Not Found",
            "artifact agent/last: 404 Client Error: Not Found",
        ),
        ("could not connect to http://a:secret@b", "could not connect to http://a:***@b"),
        (
            "(raised as a result of Query-invoked autoflush; consider using a block)\n"
            "(sqlite3.OperationalError) database or disk is full\n[SQL: INSERT]",
            "(sqlite3.OperationalError) database or disk is full",
        ),
    ],
)
def test_the_reason_of_an_error_is_what_a_person_can_use(text, reason):
    address = TrackingAddress("http://x", embedded=False)
    told = str(store_error(RuntimeError(text), address, refused=False))
    expected = reason or "(sqlite3.OperationalError) database or disk is full"
    assert told == f"tracking store http://x: {expected}"
