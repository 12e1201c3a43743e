"""Which program a build is, and how it is started."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.mlagents.description import ASKED

SUFFIXES = (".x86_64", ".x86", ".exe", ".app")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
"""Variables that lead a build's call to this machine astray."""


@dataclass(frozen=True)
class Launch:
    """How builds of one program are started, and how long they are waited for."""

    file_name: str | None  # None: nothing is started, an editor calls
    arguments: Sequence[str] = ()  # of the program's own
    no_graphics: bool = True
    timeout_wait: float = 60.0  # s for every message
    base_port: int | None = None  # build i calls there + i; None: any that is free
    log_folder: str | None = None  # for Player-i.log

    def command(self, program: Path, port: int, number: int) -> list[str]:
        """What is executed, in ML-Agents' order."""
        graphics = ["-nographics", "-batchmode"] if self.no_graphics else []
        log = []
        if self.log_folder is not None:
            log = ["-logFile", str(Path(self.log_folder) / f"Player-{number}.log")]
        return [
            str(program),
            *graphics,
            *("--mlagents-port", str(port)),
            *log,
            *map(str, self.arguments),
        ]


def program_of(file_name: str) -> Path:
    """The program that `file_name` means, with or without its suffix.

    Raises ConfigurationError where there is none, and where it can't be executed.
    """
    named = Path(file_name).expanduser()
    plain = named.with_suffix("") if named.suffix in SUFFIXES else named
    candidates = [named, *(plain.with_name(plain.name + suffix) for suffix in SUFFIXES)]
    found = next((path for path in map(_inside, candidates) if path.is_file()), None)
    if found is None:
        raise ConfigurationError(
            f"env.file_name: there is no build {file_name} (nor with {', '.join(SUFFIXES)})"
        )
    if not os.access(found, os.X_OK):
        raise ConfigurationError(f"env.file_name: {found} can't be executed: chmod +x {found}")
    return found.absolute()


def _inside(path: Path) -> Path:
    """The program itself, where `path` is a bundle of macOS."""
    if path.suffix == ".app" and path.is_dir():
        return path / "Contents" / "MacOS" / path.stem
    return path


def environment() -> dict[str, str]:
    """This process's environment without proxies, in which a player of ours describes its world."""
    kept = {key: value for key, value in os.environ.items() if key.lower() not in PROXIES}
    return {**kept, ASKED: "1"}
