"""`aimbot-lab panel`, before it serves."""

import socket
from pathlib import Path

from tiny_runs import invoke


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
