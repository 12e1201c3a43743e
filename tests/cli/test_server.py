"""A server ends with its command, with all that it started."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

import aimbot_lab.cli.commands.pages
import aimbot_lab.tracking.ui
from aimbot_lab.cli.commands.pages import _is_loopback, running_server, ui
from aimbot_lab.tracking.ui import UiCommand, page_of

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


def has_ended(pid: int, *, patience: float = 120.0) -> bool:
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
        monkeypatch.setattr(aimbot_lab.cli.commands.pages, "SECONDS_TO_END", 0.5)
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
    monkeypatch.setattr(
        aimbot_lab.cli.commands.pages, "open_privately", lambda *given: opened.append(given)
    )
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
