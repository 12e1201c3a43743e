"""A build in a process of its own that does as it is told: `MODE --mlagents-port PORT`."""

import os
import sys
import threading
from pathlib import Path
from uuid import UUID

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents.grpc_link import play
from aimbot_lab.mlagents.messages import read_build_message, write_build_message
from aimbot_lab.mlagents.player import text_message
from aimbot_lab.mlagents.session import PlayerSession
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import framed
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG
from tests.worlds.race import Race

AGENTS, FAILS_AT = 3, 6  # messages
TOO_LONG = 65 * 2**20  # bytes
ROOT = Path(__file__).parents[2]


class FailingSession(PlayerSession):
    """A session that fails at the message `FAILS_AT`, or by the mode `logs` sends logs with it."""

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
        message = super().answer(data)
        if self.told == FAILS_AT and self.mode == "logs" and message is not None:
            told = read_build_message(message)
            return write_build_message(
                told._replace(side_channels=told.side_channels + framed(logs()))
            )
        return message


def logs() -> list[tuple[UUID, bytes]]:
    """What else a game sends over the log channel: numbers, a command and an error."""
    numbers = OutgoingMessage()
    numbers.write_float32_list([1.0, 2.0, 3.0])
    lines = (text_message(line) for line in ("Warning|Command", "Error|No gun"))
    return [(STRING_LOG, message) for message in (bytes(numbers.buffer), *lines)]


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
