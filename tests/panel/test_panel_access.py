"""Whom the panel lets in: each point attacked."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from panel_server import TOKEN, Page, PanelUnderTest, running_panel
from websockets.exceptions import ConnectionClosed, InvalidStatus

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server import serve
from aimbot_lab.panel.server.messages import MAX_MESSAGE
from aimbot_lab.panel.server.serve import (
    MAX_BODY,
    MAX_PAGES,
    TOO_MANY,
    Door,
    listening_socket,
    new_token,
)

FILES = ("/", "/page/main.js")  # of the package, which say nothing of anybody's runs
PATHS = (*FILES, "/messages.schema.json")
WRONG = ("", "x", TOKEN[:-1], TOKEN + "x", "%00", "%C3%A4")


def test_without_the_token_nothing_is_served_but_files_of_the_package(
    panel: PanelUnderTest,
) -> None:
    wrong = [{"Cookie": f"{panel.door.cookie}={token}"} for token in WRONG]
    for headers in ({}, *wrong, {"Cookie": 'x="'}, {"Authorization": TOKEN}):
        own = {**headers, "Origin": panel.origin}
        for refused in (
            panel.http("/messages.schema.json", headers=headers),
            panel.http("/replay", method="POST", headers=own, body=b"{}"),
            panel.http("/", method="POST", headers=own, body=b"a=b"),
        ):
            assert refused.status == 403
            assert "aimbot-lab panel" in refused.text
            assert TOKEN not in refused.text
        with pytest.raises(InvalidStatus), panel.socket(**{"Cookie": "", **headers}):
            pass
        for path in FILES:
            served = panel.http(path, headers=headers)
            assert (served.status, TOKEN in served.text) == (200, False)


@pytest.mark.parametrize("path", PATHS)
def test_the_token_comes_in_the_address_and_no_cookie_keeps_it(
    panel: PanelUnderTest, path: str
) -> None:
    entered = panel.http(f"{path}?token={TOKEN}", headers={})
    assert (entered.status, "set-cookie" in entered.headers) == (200, False)
    for wrong in WRONG:
        assert panel.http(f"{path}?token={wrong}").status == 403  # be there a cookie as well
    with panel.socket(f"?token={TOKEN}", Cookie="") as socket:
        assert Page(socket).ask("start", "leave") == {"done": True}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1"])
def test_another_host_name_is_refused_as_rebinding_would_send_it(
    panel: PanelUnderTest, host: str
) -> None:
    assert panel.http("/", headers={**panel.cookie, "Host": host}).status == 403
    assert panel.http(f"/?token={TOKEN}", headers={"Host": host}).status == 403
    with pytest.raises(InvalidStatus), panel.socket(Host=host, Origin=f"http://{host}"):
        pass


@pytest.mark.parametrize("origin", ["", "null", "http://127.0.0.1:1"])
def test_a_socket_from_another_site_is_refused(panel: PanelUnderTest, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused, panel.socket(Origin=origin):
        pass
    assert refused.value.response.status_code == 403


def test_a_cross_site_form_is_refused(panel: PanelUnderTest) -> None:
    form = {**panel.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    for origin in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}):
        assert panel.http("/", method="POST", headers={**form, **origin}, body=b"a=b").status == 403


def test_names_lead_to_no_file_outside_the_page(panel: PanelUnderTest) -> None:
    for path in (
        *("/page/../server/serve.py", "/page/%2e%2e/server/serve.py", "/page/..%2fREADME.md"),
        *("/page//etc/passwd", "/page/%2fetc%2fpasswd", "/page/", "/page/parts/", "/page/.."),
        *("/page/main.js%00", "/page/main.js/", "/etc/passwd", "/server/serve.py"),
    ):
        assert panel.http(path).status == 404, path


def test_every_answer_bears_the_headers_that_keep_scripts_and_frames_out(
    panel: PanelUnderTest,
) -> None:
    for path in (*PATHS, "/page/gone.js"):
        headers = panel.http(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    refused = panel.http("/messages.schema.json", headers={})
    assert "content-security-policy" in refused.headers


def test_a_message_that_is_no_text_ends_its_socket_without_a_word(
    panel: PanelUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    with panel.socket() as page:
        page.send(b"\xff\xfe\x80", text=True)
        with pytest.raises(ConnectionClosed) as closed:
            page.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007
    assert [record.getMessage() for record in caplog.records] == []


def test_a_page_that_is_left_amid_its_request_is_no_fault(
    panel: PanelUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "POST /replay HTTP/1.1", f"Host: {panel.host}", f"Origin: {panel.origin}"
    cookie = f"Cookie: {panel.cookie['Cookie']}"
    with socket.create_connection(("127.0.0.1", panel.door.port)) as left:
        left.sendall("\r\n".join((*lines, cookie, "Content-Length: 9", "", "abc")).encode())
        panel.http("/")
    for _ in range(3):
        panel.http("/")  # by then the other has ended
    assert [record.getMessage() for record in caplog.records] == []


def test_a_closed_terminal_leaves_no_address_in_the_folder(tmp_path: Path) -> None:
    program = (  # the tests' own terminal may have been closed before
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from aimbot_lab.entry import main; main()"
    )
    words = [sys.executable, "-c", program, "panel", "--port", "0", "--data-dir", "d"]
    panel = subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "BROWSER": "true"}, stderr=subprocess.PIPE
    )
    while not [*tmp_path.glob("d/panel/open-*.html")]:
        assert panel.poll() is None
        time.sleep(0.05)
    panel.send_signal(signal.SIGHUP)
    panel.communicate(timeout=300)
    assert [path.name for path in (tmp_path / "d" / "panel").iterdir()] == ["token"]


def test_large_bodies_are_refused(panel: PanelUnderTest) -> None:
    own = {**panel.cookie, "Origin": panel.origin}
    large = panel.http("/", method="POST", headers=own, body=b"x" * (MAX_BODY + 1))
    assert large.status == 413
    odd = panel.http("/", method="POST", headers={**own, "Content-Length": "-1"})
    assert odd.status in (400, 413)


def test_a_large_body_that_announces_no_size_is_cut_off(panel: PanelUnderTest) -> None:
    own = {**panel.cookie, "Origin": panel.origin, "Transfer-Encoding": "chunked"}
    connection = http.client.HTTPConnection("127.0.0.1", panel.door.port, timeout=300)
    portions = (b"x" * 2**16 for _ in range(2 * MAX_BODY // 2**16))
    try:
        connection.request("POST", "/replay", portions, own, encode_chunked=True)
        assert connection.getresponse().status == 413
    except OSError:  # cut off before all was sent
        pass
    finally:
        connection.close()
    assert panel.http("/").status == 200


def test_large_messages_end_the_connection(panel: PanelUnderTest) -> None:
    with panel.socket() as socket:
        socket.send("x" * (MAX_MESSAGE + 1))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=300)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    "message",
    [
        *("", "null", "1e999", "[" * 20_000, '{"v": 1}'),
        json.dumps({"v": 2, "id": 1, "part": "start", "kind": "offer", "body": {}}),
        json.dumps({"v": 1, "id": 1, "part": "start", "kind": "offer", "body": {}, "more": 1}),
        json.dumps({"v": 1, "id": 1, "part": "gone", "kind": "offer", "body": {}}),
        json.dumps({"v": 1, "id": 1, "part": "start", "kind": "offer", "body": {"more": 1}}),
        json.dumps({"v": 1, "id": 1, "part": "training", "kind": "watch", "body": {"run": "../x"}}),
    ],
)
def test_what_is_no_message_is_refused_in_a_line_and_the_page_goes_on(
    panel: PanelUnderTest, message: str
) -> None:
    with panel.socket() as socket:
        socket.send(message)
        told = json.loads(socket.recv(timeout=300))
        assert told["kind"] == "error"
        assert 0 < len(told["body"]["message"]) < 300
        assert "\n" not in told["body"]["message"]
        assert Page(socket).ask("start", "leave") == {"done": True}


def test_one_page_too_many_is_refused_until_another_is_closed(panel: PanelUnderTest) -> None:
    with ExitStack() as pages:
        opened = [pages.enter_context(panel.socket()) for _ in range(MAX_PAGES)]
        for socket in opened:  # each is served
            assert Page(socket).ask("start", "leave") == {"done": True}
        with panel.socket() as more, pytest.raises(ConnectionClosed) as closed:
            more.recv(timeout=300)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == TOO_MANY
        opened[0].close()
        assert is_served(panel)


def is_served(panel: PanelUnderTest) -> bool:
    """Whether one more page is served, once the server has seen that another is gone."""
    for _ in range(100):
        with panel.socket() as more, suppress(ConnectionClosed):
            return bool(Page(more).ask("start", "leave") == {"done": True})
    return False


def test_a_server_open_to_others_takes_addresses_but_no_strange_names() -> None:
    door = Door("0.0.0.0", 80, TOKEN)
    assert door.is_own_host("192.168.1.2:80")
    assert door.is_own_host("[fe80::1]:80")
    assert door.is_own_host("localhost:80")
    assert not door.is_own_host("evil.example:80")
    assert Door("localhost", 80, TOKEN).address == "http://127.0.0.1:80"
    named = Door("box.local", 80, TOKEN)
    assert named.is_own_host("box.local:80")
    assert not named.is_own_host("evil.example:80")
    assert door.address == "http://127.0.0.1:80"
    assert Door("::1", 80, TOKEN).address == "http://[::1]:80"
    alone = Door("127.0.0.1", 80, TOKEN)
    assert not alone.is_own_host("192.168.1.2:80")


def test_each_start_has_a_token_of_its_own_that_its_owner_alone_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "panel"
    tokens = [new_token(folder) for _ in range(3)]
    assert len({*tokens}) == 3
    assert (folder / "token").read_text() == tokens[-1]
    (folder / "token").chmod(0o644)
    assert new_token(folder) == (folder / "token").read_text()
    assert [one.stat().st_mode & 0o077 for one in (folder, folder / "token")] == [0, 0]
    assert len(new_token(tmp_path / "data" / "panel" / "token" / "is a file")) >= 32


def test_connections_that_ask_for_nothing_shut_nobody_out_and_end(
    panel: PanelUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent ones, and requests that trickle in; a page's socket stays."""
    monkeypatch.setattr(serve, "MAX_CONNECTIONS", 5)
    head = f"GET / HTTP/1.1\r\nHost: {panel.host}\r\n".encode()
    body = f"POST /replay?token={TOKEN} HTTP/1.1\r\nHost: {panel.host}\r\n".encode()
    body += f"Origin: {panel.origin}\r\nContent-Length: 1000\r\n\r\n".encode()
    with panel.page() as page, ExitStack() as stack:
        place = ("127.0.0.1", panel.door.port)
        for first in (b"", b"G", head, body) * 3:
            connected = stack.enter_context(socket.create_connection(place, timeout=300))
            connected.sendall(first)
            assert panel.http("/").status == 200
        monkeypatch.setattr(serve, "CONNECTION_SECONDS", 0.2)
        for first, more in ((b"", b""), (head, b"X: y\r\n"), (body, b"x")):
            with socket.create_connection(place, timeout=300) as connected:
                connected.sendall(first)
                connected.settimeout(0.02)
                assert ends(connected, more)
        assert page.ask("start", "leave") == {"done": True}


def ends(connected: socket.socket, more: bytes) -> bool:
    """Whether the server ends a connection on which `more` trickles in."""
    for _ in range(500):
        try:
            connected.sendall(more)
            if not connected.recv(1000):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_port_in_use_is_refused_with_who_has_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=r"in use \(by process \d+, .*--port"):
            listening_socket("127.0.0.1", port)


def test_a_host_that_is_not_here_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"--host nowhere\.invalid --port 0: "):
        listening_socket("nowhere.invalid", 0)


def test_a_panel_begins_anew_at_its_port(tmp_path: Path) -> None:
    with running_panel(tmp_path, here=tmp_path) as first, first.page() as page:
        assert page.ask("start", "leave") == {"done": True}
        port = first.door.port
    with running_panel(tmp_path, here=tmp_path, port=port) as again:
        assert again.http("/").status == 200
