"""A build in a process of its own that fails as it is told: `MODE --mlagents-port PORT`."""

import os
import sys
import threading
from pathlib import Path

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents.grpc_link import play
from aimbot_lab.mlagents.session import PlayerSession
from tests.worlds.race import Race

AGENTS, FAILS_AT = 3, 6  # messages
TOO_LONG = 65 * 2**20  # bytes
ROOT = Path(__file__).parents[2]


class FailingSession(PlayerSession):
    """A session that fails at the message `FAILS_AT`."""

    mode, told = "", 0

    def begin(self) -> bytes:
        message = super().begin()
        return message.replace(b"1.5.0", b"2.5.0") if self.mode == "version" else message

    def answer(self, data: bytes) -> bytes | None:
        self.told += 1
        if self.told == FAILS_AT and self.mode == "crash":
            sys.stderr.write("Segmentation fault in Monster.cs\n")
            sys.stderr.flush()
            os._exit(3)
        if self.told == FAILS_AT and self.mode == "hang":
            threading.Event().wait()
        if self.told == FAILS_AT and self.mode == "goes":
            return self.end()
        if self.told == FAILS_AT and self.mode == "rubbish":
            return b"\xff"
        if self.told == FAILS_AT and self.mode == "long":
            return bytes(TOO_LONG)
        return super().answer(data)


def write_build(folder: Path, mode: str) -> Path:
    """A program in `folder` that is a build which fails by `mode`."""
    path = folder / "Race.x86_64"
    command = f'exec "{sys.executable}" -m tests.unity.stand_in_build "{mode}" "$@"'
    path.write_text(f"#!/bin/sh\ncd {ROOT}\n{command}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def main(mode: str) -> None:
    if mode == "silent":
        threading.Event().wait()
    if mode == "too many":
        sys.stderr.write("agents: 9 rows make messages of up to 5.0 MiB\n")
        sys.exit(2)
    world = Race(AGENTS)
    session = FailingSession(world, _right(), describes=True)
    session.mode = mode
    play(session, int(sys.argv[sys.argv.index("--mlagents-port") + 1]), wait_s=60.0)


def _right() -> Scenario:
    return Scenario({"right": 1.0})


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except LabError as error:
        sys.exit(str(error))
