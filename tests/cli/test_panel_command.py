"""`aimbot-lab panel`, before it serves, and how it opens a browser."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_runs import invoke

BROWSER = """#!/bin/sh
file="${1#file://}"
{ echo "$@"; stat -c %a "$file"; cat "$file"; } > FOLDER/pipe
"""
SECONDS = 120.0  # that anything may take on a busy machine


def test_an_unknown_run_is_refused_in_one_line(tmp_path: Path) -> None:
    told = invoke(tmp_path, "panel", "nowhere", "--no-browser", "--port", "0", wanted=2)
    assert told.said == "'nowhere': no such run; aimbot-lab runs lists them"


def test_a_port_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = invoke(tmp_path, "panel", "--no-browser", "--port", port, wanted=2)
    assert "--port" in told.said
    assert "\n" not in told.said


@pytest.mark.skipif(sys.platform != "linux", reason="a browser is a script here")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_browser_finds_the_token_in_a_private_file_that_goes_with_the_panel(
    tmp_path: Path, number: signal.Signals
) -> None:
    browser, pipe = tmp_path / "browser", tmp_path / "pipe"
    browser.write_text(BROWSER.replace("FOLDER", str(tmp_path)))
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
            panel.send_signal(number)
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
