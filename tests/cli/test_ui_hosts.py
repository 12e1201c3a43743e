"""Where `aimbot-lab ui` listens, and what it says of that."""

import socket
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.commands import pages
from aimbot_lab.cli.commands.pages import _refuse_taken_port, ui
from aimbot_lab.foundation.errors import ConfigurationError


def told(monkeypatch: pytest.MonkeyPatch, folder: Path, host: str) -> str:
    """What is said where the page is served at `host`, by a server that ends at once."""

    @contextmanager
    def ended(*_: Any) -> Any:
        yield SimpleNamespace(wait_until=lambda _: False, wait=lambda: 0)

    monkeypatch.setattr(pages, "running_server", ended)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    given = ["--host", host, "--port", port, "--no-open", "--data-dir", str(folder)]
    result = CliRunner().invoke(ui, given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


def test_serving_everyone_is_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    warning = "--host 0.0.0.0 lets everyone who reaches this machine and has the address"
    assert warning in told(monkeypatch, tmp_path, "0.0.0.0").replace("\n", " ")
    assert "warning" not in told(monkeypatch, tmp_path, "127.0.0.1")


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
