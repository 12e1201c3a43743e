"""Whom the panel lets in: each point attacked."""

import http.client
import json
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from panel_server import TOKEN, Page, PanelUnderTest, running_panel
from websockets.exceptions import ConnectionClosed, InvalidStatus

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server.access import MAX_BODY, Door
from aimbot_lab.panel.server.app import MAX_PAGES, TOO_MANY
from aimbot_lab.panel.server.messages import MAX_MESSAGE
from aimbot_lab.panel.server.serve import kept_token, listening_socket
from aimbot_lab.tracking.data_folder import DataFolder

PATHS = ("/", "/page/main.js", "/messages.schema.json")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_served(panel: PanelUnderTest, path: str) -> None:
    wrong = {"Cookie": f"{panel.door.cookie}={TOKEN[:-1]}"}
    for headers in ({}, wrong, {"Cookie": 'x="'}, {"Authorization": TOKEN}):
        refused = panel.http(path, headers=headers)
        assert refused.status == 403
        assert "aimbot-lab panel" in refused.text
        assert TOKEN not in refused.text
    assert panel.http(path).status == 200


def test_the_token_comes_once_in_the_address_and_stays_in_a_strict_cookie(
    panel: PanelUnderTest,
) -> None:
    entered = panel.http(f"/?token={TOKEN}", headers={})
    assert (entered.status, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    for wrong in ("", "x", TOKEN[:-1], "%00", "%C3%A4"):
        refused = panel.http(f"/?token={wrong}", headers={})
        assert refused.status == 403
        assert "set-cookie" not in refused.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
def test_another_host_name_is_refused_as_rebinding_would_send_it(
    panel: PanelUnderTest, host: str
) -> None:
    assert panel.http("/", headers={**panel.cookie, "Host": host}).status == 403
    assert panel.http(f"/?token={TOKEN}", headers={"Host": host}).status == 403
    with pytest.raises(InvalidStatus), panel.socket(Host=host, Origin=f"http://{host}"):
        pass


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://127.0.0.1:1"])
def test_a_socket_from_another_site_is_refused(panel: PanelUnderTest, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused, panel.socket(Origin=origin):
        pass
    assert refused.value.response.status_code == 403


def test_a_socket_without_the_token_is_refused(panel: PanelUnderTest) -> None:
    with pytest.raises(InvalidStatus), panel.socket(Cookie=""):
        pass


def test_a_cross_site_form_is_refused(panel: PanelUnderTest) -> None:
    form = {**panel.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    for origin in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}):
        assert panel.http("/", method="POST", headers={**form, **origin}, body=b"a=b").status == 403


def test_names_lead_to_no_file_outside_the_page(panel: PanelUnderTest) -> None:
    for path in (
        *("/page/../server/app.py", "/page/%2e%2e/server/app.py", "/page/..%2fREADME.md"),
        *("/page//etc/passwd", "/page/%2fetc%2fpasswd", "/page/", "/page/parts/", "/page/.."),
        *("/page/main.js%00", "/page/main.js/", "/etc/passwd", "/server/app.py"),
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
    assert "content-security-policy" in panel.http("/", headers={}).headers


def test_large_bodies_are_refused(panel: PanelUnderTest) -> None:
    own = {**panel.cookie, "Origin": panel.origin}
    large = panel.http("/", method="POST", headers=own, body=b"x" * (MAX_BODY + 1))
    assert large.status == 413
    odd = panel.http("/", method="POST", headers={**own, "Content-Length": "-1"})
    assert odd.status in (400, 413)


def test_a_large_body_that_announces_no_size_is_cut_off(panel: PanelUnderTest) -> None:
    own = {**panel.cookie, "Origin": panel.origin, "Transfer-Encoding": "chunked"}
    connection = http.client.HTTPConnection("127.0.0.1", panel.door.port, timeout=60)
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
            socket.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    "message",
    [
        *("", "null", "[]", "{}", "nonsense", "1e999", "[" * 20_000, '{"v": 1}'),
        json.dumps({"v": 2, "id": 1, "part": "start", "kind": "offer", "body": {}}),
        json.dumps({"v": 1, "id": 1, "part": "start", "kind": "offer", "body": {}, "more": 1}),
        json.dumps({"v": 1, "id": 1, "part": "../start", "kind": "offer", "body": {}}),
        json.dumps({"v": 1, "id": 1, "part": "gone", "kind": "offer", "body": {}}),
        json.dumps({"v": 1, "id": 1, "part": "start", "kind": "offer", "body": {"more": 1}}),
        json.dumps({"v": 1, "id": 1, "part": "training", "kind": "watch", "body": {"run": "../x"}}),
        json.dumps({"v": 1, "id": 1, "part": "training", "kind": "watch", "body": {"run": 7}}),
    ],
)
def test_what_is_no_message_is_refused_in_a_line_and_the_page_goes_on(
    panel: PanelUnderTest, message: str
) -> None:
    with panel.socket() as socket:
        socket.send(message)
        told = json.loads(socket.recv(timeout=60))
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
            more.recv(timeout=60)
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
    named = Door("box.local", 80, TOKEN)
    assert named.is_own_host("box.local:80")
    assert not named.is_own_host("evil.example:80")
    assert door.address == "http://127.0.0.1:80"
    assert Door("::1", 80, TOKEN).address == "http://[::1]:80"
    alone = Door("127.0.0.1", 80, TOKEN)
    assert not alone.is_own_host("192.168.1.2:80")


def test_the_token_is_kept_for_its_owner_alone_and_is_made_anew_where_others_read_it(
    tmp_path: Path,
) -> None:
    folder = DataFolder(tmp_path)
    token = kept_token(folder)
    place = tmp_path / "panel" / "token"
    assert kept_token(folder) == token
    assert place.stat().st_mode & 0o077 == 0
    place.chmod(0o644)
    assert kept_token(folder) != token


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
