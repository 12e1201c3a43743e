"""Servers that commands start: where they listen, how a browser finds them, and how they end."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import psutil
import pytest
from click.testing import CliRunner, Result
from tiny_runs import invoke

import aimbot_lab.tracking.ui
from aimbot_lab.cli.commands import pages
from aimbot_lab.cli.commands.pages import _is_loopback, _refuse_taken_port, running_server, ui
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.ui import UiCommand, page_of

ADDRESS = "http://127.0.0.1:1/sesame/#/runs?a=1&b=%22x%22"

# Starts a child as MLflow's server does, and tells the child's number when that is at work.
PARENT = """
import signal, subprocess, sys, time
from pathlib import Path
told, deaf = sys.argv[1], sys.argv[2:] == ["deaf"]
if deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
Path(told).with_suffix(".new").write_text(str(child.pid))
Path(told).with_suffix(".new").rename(told)
time.sleep(300)
"""
FAILS = "for line in range(99): print('said', line, flush=True)\nraise SystemExit(3)"
ANSWERS_ONCE = """
import http.server, sys
address = "127.0.0.1", int(sys.argv[1])
with http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler) as server:
    server.handle_request()
"""


def has_ended(pid: int, *, patience: float = 300.0) -> bool:
    """Whether the process has ended, or does within `patience` seconds."""
    deadline = time.monotonic() + patience
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


@pytest.mark.parametrize("manner", ["", "deaf"])
def test_its_children_end_with_it(
    manner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if manner:
        monkeypatch.setattr(pages, "SECONDS_TO_END", 0.5)
    told = tmp_path / "child"
    with running_server(python(PARENT, str(told), manner), {}) as server:
        assert server.wait_until(told.exists)
        child = int(told.read_text())
        assert not has_ended(child, patience=0.0)
    assert has_ended(child)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_waiting(number: signal.Signals) -> None:
    with running_server(python("import time; time.sleep(300)"), {}) as server:
        signal.raise_signal(number)
        assert not server.wait_until(lambda: False)
        assert server.wait() is None


def test_the_last_words_of_a_failure_are_kept() -> None:
    with running_server(python(FAILS), {}) as server:
        assert server.wait() == 3
    assert server.last_words.splitlines() == [f"said {line}" for line in range(79, 99)]


def call_ui(code: str, port: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """`aimbot-lab ui` with a server that runs `code` in the place of MLflow's."""

    def command(*_: object, **__: object) -> UiCommand:
        return UiCommand(python(code, str(port)), {}, f"http://127.0.0.1:{port}")

    monkeypatch.setattr(aimbot_lab.tracking.ui, "ui_command", command)
    arguments = ["--port", str(port), "--data-dir", str(folder)]
    return CliRunner().invoke(ui, arguments, standalone_mode=False)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_address_is_told_once_the_page_answers_and_its_log_is_not(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, Path]] = []
    monkeypatch.setenv("BROWSER", "any")
    monkeypatch.setattr(pages, "open_privately", lambda *given: opened.append(given))
    result = call_ui(ANSWERS_ONCE, port, tmp_path, monkeypatch)
    assert result.return_value == 0
    assert opened == [(f"http://127.0.0.1:{port}{page_of([])}", tmp_path)]
    assert result.stderr.splitlines() == [
        "starting the page ...",
        f"The runs are at http://127.0.0.1:{port}{page_of([])} ; Ctrl-C ends.",
    ]


def test_a_server_that_fails_is_quoted_and_no_address_is_promised(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = call_ui(FAILS, port, tmp_path, monkeypatch)
    assert result.return_value == 1
    assert "http://" not in result.stderr
    assert "said 98\nerror: the page's server ended with exit code 3\n" in result.stderr


OWNER = """
import sys
from pathlib import Path
from aimbot_lab.cli.commands.pages import running_server
with running_server([sys.executable, *sys.argv[1:]], {}) as server:
    server.wait()
"""


def test_the_server_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "child"
    owner = subprocess.Popen(python(OWNER, "-c", PARENT, str(told)))
    while not told.exists():
        assert owner.poll() is None
        time.sleep(0.01)
    owner.kill()
    owner.wait()
    assert has_ended(int(told.read_text()))


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), ("", False), ("::", False)],
)
def test_a_page_that_others_reach_is_told_from_one_of_this_machine(host: str, alone: bool) -> None:
    assert _is_loopback(host) is alone


def told(monkeypatch: pytest.MonkeyPatch, folder: Path, host: str, free: int) -> str:
    """What is said where the page is served at `host`, by a server that ends at once."""

    @contextmanager
    def ended(*_: Any) -> Any:
        yield SimpleNamespace(wait_until=lambda _: False, wait=lambda: 0)

    monkeypatch.setattr(pages, "running_server", ended)
    given = ["--host", host, "--port", str(free), "--no-browser", "--data-dir", str(folder)]
    result = CliRunner().invoke(ui, given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


def test_serving_everyone_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int
) -> None:
    warning = "--host 0.0.0.0 lets everyone who reaches this machine and has the address"
    assert warning in told(monkeypatch, tmp_path, "0.0.0.0", port).replace("\n", " ")
    assert "warning" not in told(monkeypatch, tmp_path, "127.0.0.1", port)


def test_an_address_of_ipv6_is_probed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[Any] = []

    class Probe(socket.socket):
        def bind(self, address: Any) -> None:
            bound.append((self.family, address))

    monkeypatch.setattr(socket, "socket", Probe)
    _refuse_taken_port("::1", 5000)
    assert bound == [(socket.AF_INET6, ("::1", 5000))]


def test_a_host_of_any_length_is_refused_in_a_short_line() -> None:
    with pytest.raises(ConfigurationError) as refused:
        _refuse_taken_port("h" * 5_000, 5000)
    (line,) = refused.value.faults
    assert len(line) < 500


BROWSER_PROGRAM = """#!/bin/sh
file="${1#file://}"
{ echo "$@"; stat -c %a "$file"; cat "$file"; } > FOLDER/pipe
"""
SECONDS = 300.0  # that anything may take on a busy machine


def test_the_file_by_which_a_browser_opens_an_address_is_found_and_escapes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Queue[str]()
    monkeypatch.setattr("webbrowser.open", opened.put)
    folder = tmp_path / "a folder"
    folder.mkdir()
    file = pages.open_privately(ADDRESS, folder)
    assert unquote(urlsplit(opened.get(timeout=SECONDS)).path) == str(file)
    assert 'content="0;url=http://127.0.0.1:1/sesame/#/runs?a=1&amp;b=%22x%22"' in file.read_text()


def test_an_unknown_run_is_refused_in_one_line(tmp_path: Path) -> None:
    told = invoke(tmp_path, "panel", "nowhere", "--no-browser", "--port", "0", wanted=2)
    assert told.said == "'nowhere': no such run; aimbot-lab runs lists them"


@pytest.mark.skipif(sys.platform != "linux", reason="a browser is a script here")
def test_a_browser_finds_the_token_in_a_private_file_that_goes_with_the_panel(
    tmp_path: Path,
) -> None:
    browser, pipe = tmp_path / "browser", tmp_path / "pipe"
    browser.write_text(BROWSER_PROGRAM.replace("FOLDER", str(tmp_path)))
    browser.chmod(0o755)
    os.mkfifo(pipe)
    words = ["panel", "--port", "0", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(
        [sys.executable, "-m", "aimbot_lab", *words],
        env={**os.environ, "BROWSER": str(browser)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as panel:
        try:
            opened = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            with os.fdopen(opened, encoding="utf-8") as reader:
                assert select.select([reader], [], [], SECONDS)[0]
                os.set_blocking(opened, True)
                command_line, mode, page = reader.read().split("\n", 2)
            panel.send_signal(signal.SIGTERM)
            _, said = panel.communicate(timeout=SECONDS)
        finally:
            panel.kill()
    token = (tmp_path / "data" / "panel" / "token").read_text()
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32,}", said)
    assert address.endswith(token)
    assert f'content="0;url={address}"' in page
    assert (token in command_line, mode) == (False, "600")
    file = Path(command_line.removeprefix("file://"))
    assert file.parent == tmp_path / "data" / "panel"
    assert not file.exists()
