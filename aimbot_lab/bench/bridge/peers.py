"""Builds in processes of their own, which a trainer of ours steps: a player, and an echo."""

import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from aimbot_lab.bench.bridge.echo import STOP
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.mlagents.actions import ActionTuple
from aimbot_lab.mlagents.behaviors import BehaviorSpec
from aimbot_lab.mlagents.builds.server import BuildServer
from aimbot_lab.mlagents.handshake import COMMUNICATION, PACKAGE
from aimbot_lab.mlagents.wire.action_codec import ActionCodec
from aimbot_lab.mlagents.wire.exchange import (
    OK,
    RESET,
    SHUT_DOWN,
    STEP,
    TrainerMessage,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.wire.info_codec import InfoCodec
from aimbot_lab.mlagents.wire.schema import new_message

START = 300.0  # seconds for a build to begin: it may compile its kernels first
LOOK = 0.25  # seconds between two looks whether the build still runs
FAREWELL = 5.0  # seconds for the server to end
PREPARED = 64  # random actions, sent again and again


class Peer:
    """A build that runs as a process. A context manager."""

    def __init__(self, program: Sequence[str]) -> None:
        self._server = BuildServer()
        words = [str(self._server.port) if word == "PORT" else word for word in program]
        self._process = subprocess.Popen([sys.executable, "-m", *words])

    def __enter__(self) -> "Peer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._process.kill()
        self._server.answer(self._farewell())
        self._process.wait()
        self._server.close(self._farewell(), wait_s=FAREWELL)

    def _farewell(self) -> bytes:
        return STOP

    def _received(self) -> bytes:
        """The build's next message. Raises LabError where the build ends, or says nothing."""
        until = time.monotonic() + START
        while time.monotonic() < until:
            ended = self._process.poll() is not None
            message = self._server.message(LOOK)
            if message is not None:
                return message
            if ended:
                raise LabError("the build ended before it was told to")
        raise LabError(f"the build sent nothing for {START:g} s")

    def step(self) -> None:
        """Answer the build and take its next message."""
        raise NotImplementedError

    def steps_per_second(self, seconds: float) -> float:
        """How many steps a second there are, measured for about `seconds`."""
        steps, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds or not steps:
            self.step()
            steps += 1
        return steps / elapsed


class PlayerPeer(Peer):
    """`agents` of the lesson that is meant where none is named, which act at random.

    A step decodes all that agents tell and encodes their actions.
    """

    def __init__(self, agents: int, spec: BehaviorSpec) -> None:
        words = ("--mlagents-port", "PORT", "--agents", str(agents))
        super().__init__(("aimbot_lab", "player", *words))
        self._infos, self._codec = InfoCodec(spec), ActionCodec(spec.action_spec)
        self._agents, self._behavior, self._steps = agents, "", 0
        self._actions = [spec.action_spec.random_action(agents) for _ in range(PREPARED)]
        self.message_bytes = 0  # of the longest message of the player
        self.answer_bytes = len(self._written(self._actions[0]))

    def __enter__(self) -> "PlayerPeer":
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _begin(self) -> None:
        """Greet and reset it, and see that all of its agents are there."""
        self._received()
        greeting = new_message("InitInput")
        greeting.communication_version, greeting.package_version = COMMUNICATION, PACKAGE
        content = bytes(greeting.SerializeToString())
        self._server.answer(write_trainer_message(TrainerMessage(OK, STEP, {}, b"", content)))
        self._received()
        self._server.answer(write_trainer_message(TrainerMessage(OK, RESET, {}, b"", b"")))
        ((self._behavior, infos),) = read_build_message(self._received()).infos.items()
        decisions = self._infos.decode(infos)[0]
        if len(decisions) != self._agents:
            raise LabError(f"the player has {len(decisions)} agents; {self._agents} were asked for")

    def step(self) -> None:
        """Act for all agents and read what they tell."""
        self._server.answer(self._written(self._actions[self._steps % PREPARED]))
        self._steps += 1
        message = self._received()
        self.message_bytes = max(self.message_bytes, len(message))
        self._infos.decode(read_build_message(message).infos[self._behavior])

    def _written(self, action: ActionTuple) -> bytes:
        given = {self._behavior: self._codec.encode(action)}
        return write_trainer_message(TrainerMessage(OK, STEP, given, b"", b""))

    def _farewell(self) -> bytes:
        return write_trainer_message(TrainerMessage(SHUT_DOWN, STEP, {}, b"", b""))


class EchoPeer(Peer):
    """Messages of so many bytes, answered with so many."""

    def __init__(self, message_bytes: int, answer_bytes: int) -> None:
        super().__init__(("aimbot_lab.bench.bridge.echo", "PORT", str(message_bytes)))
        self._answer = bytes(answer_bytes)

    def __enter__(self) -> "EchoPeer":
        self._received()
        return self

    def step(self) -> None:
        """Send and receive."""
        self._server.answer(self._answer)
        self._received()
