"""A client of Aimbot-ParallelEnv, written from what is public of it.

It starts the build without arguments of its own, as `UnityEnvironment(file_name)` does; knows 51
numbers, branches of 3, 3 and 2 choices and a mouse of 0.08 radians a unit; and learns how an
episode ended from the line `Warning|Result|Win` or `|Lose`, and from a reward of about 999.
"""

import math
import os
import subprocess
import uuid
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aimbot_lab.mlagents import ActionTuple
from aimbot_lab.mlagents.builds import OVER, Behaviors
from aimbot_lab.mlagents.grpc_link import BuildServer
from aimbot_lab.mlagents.messages import (
    OK,
    RESET,
    BuildMessage,
    TrainerMessage,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.session import ASKED, trainers_answer
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.side_channel import unframed

LOG_ID = uuid.UUID("621f0a70-4f87-11ea-a6bf-784f4387d1f7")
TURN = 0.08  # radians a unit of the mouse
STOP, AHEAD = 0, 1
PATIENCE = 600  # fifths of a second, as kernels may have to be compiled


class Seen(NamedTuple):
    """One agent's observation."""

    target: int  # 0 Free, 1 Goto, 2 Attack
    place: np.ndarray  # [3] m, of the FireBase
    diameter: float
    inside: bool
    seconds_left: float
    gun_ready: bool
    own: np.ndarray  # [3] m
    yaw: float  # radians to the right of +z
    tags: np.ndarray  # [19] 0 wall, 1 enemy, 2 player, -1 nothing
    distances: np.ndarray  # [19] m


def seen(numbers: np.ndarray) -> Seen:
    """The 51 numbers by their meaning."""
    assert numbers.shape == (51,)
    return Seen(
        int(numbers[0]),
        numbers[1:4],
        float(numbers[4]),
        bool(numbers[5]),
        float(numbers[6]),
        bool(numbers[7]),
        numbers[8:11],
        math.atan2(numbers[12], numbers[11]),
        numbers[13:32],
        numbers[32:51],
    )


class OriginalClient:
    """Steps the one agent of the build `program`."""

    def __init__(self, program: Path, *, log_id: uuid.UUID = LOG_ID) -> None:
        self._server, self._log_id = BuildServer(), log_id
        rest = {key: value for key, value in os.environ.items() if key != ASKED}
        command = [str(program), "-nographics", "-batchmode", "--mlagents-port"]
        self._process = subprocess.Popen(
            [*command, str(self._server.port)],
            env=rest,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.lines: list[str] = []
        self.channels: set[uuid.UUID] = set()
        self._behaviors = Behaviors()
        try:
            self._receive()
            self._send(TrainerMessage(OK, 0, {}, b"", trainers_answer(3)))
            self._receive()
            self._send(TrainerMessage(OK, RESET, {}, b"", b""))
            self._take()
        except BaseException:
            self._process.kill()
            self.close()
            raise

    def step(self, vertical: int, horizontal: int, attack: int, mouse: float) -> None:
        """Act; then `now`, `reward` and `ended` are of the step after."""
        action = ActionTuple(
            np.array([[mouse]], np.float32), np.array([[vertical, horizontal, attack]], np.int32)
        )
        self._send(TrainerMessage(OK, 0, {self.name: self._coded.encode(action)}, b"", b""))
        self._take()

    def close(self) -> int:
        """End the build; its exit code."""
        self._server.close(OVER, wait_s=5.0)
        return self._process.wait(20)

    def _take(self) -> None:
        message = self._receive()
        for channel, data in unframed(message.side_channels):
            self.channels.add(channel)
            if channel == self._log_id:
                self.lines.append(IncomingMessage(data).read_string())
        ((self.name, behavior),) = self._behaviors.of(message).items()
        self.spec, self._coded = behavior.spec, behavior.actions
        decisions, terminals = behavior.infos.decode(message.infos[self.name])
        assert len(decisions) == 1
        self.ended = len(terminals) == 1
        rewards = terminals.reward if self.ended else decisions.reward
        self.now, self.reward = seen(decisions.obs[0][0]), float(rewards[0])

    def _receive(self) -> BuildMessage:
        data = None
        for _ in range(PATIENCE):
            data = self._server.message(0.2)
            if data is not None:
                break
            assert self._process.poll() is None, "the build is gone"
        assert data is not None, "the build says nothing"
        return read_build_message(data)

    def _send(self, message: TrainerMessage) -> None:
        self._server.answer(write_trainer_message(message))


def walk(client: OriginalClient) -> float:
    """Go to the target until the episode ends; around what stands in the way. The last reward."""
    before, aside = client.now.own, 0
    while True:
        now = client.now
        ahead = now.place - now.own
        wanted = math.atan2(ahead[0], ahead[2])
        turn = (wanted - now.yaw + math.pi) % (2 * math.pi) - math.pi
        stuck = aside == 0 and np.abs(now.own - before).sum() < 0.05
        aside = 15 if stuck else max(aside - 1, 0)
        before = now.own
        client.step(AHEAD, 1 if aside else STOP, 0, turn / TURN)
        if client.ended:
            return client.reward
        if aside == 15:
            before = before + 1.0  # it has not moved yet
