"""Builds for the tests beside this: sessions of ours in this process, and others by script."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.world import BatchWorld, Scenario, StepBuffers, step_buffers
from aimbot_lab.mlagents import ActionSpec, ActionTuple, BehaviorSpec, DecisionSteps, TerminalSteps
from aimbot_lab.mlagents.base_env import DimensionProperty, ObservationSpec, ObservationType
from aimbot_lab.mlagents.exception import UnityEnvironmentException
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, observation_specs
from aimbot_lab.mlagents.messages import (
    OK,
    BuildMessage,
    TrainerMessage,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.mlagents.session import (
    PlayerSession,
    describe,
    described,
    introduction,
    trainers_answer,
)
from aimbot_lab.mlagents.side_channel.side_channel import framed
from aimbot_lab.worlds.unity.settings import BuildShape, UnitySettings
from aimbot_lab.worlds.unity.world import UnityWorld
from tests.worlds.race import RIGHT, Race


class SessionLink:
    """A session of ours as a build, without a process; it is lost after so many messages."""

    def __init__(self, session: PlayerSession, *, lost_after: float = np.inf) -> None:
        self.session, self.left, self.closed = session, lost_after, False
        self.seed: int | None = None
        self._message: bytes | None = session.begin()

    def greet(self, seed: int) -> None:
        self.seed = seed
        self._answer(TrainerMessage(OK, 0, {}, b"", trainers_answer(seed)))

    def send(self, command: int, actions: Mapping[str, bytes], channels: bytes) -> None:
        self._answer(TrainerMessage(OK, command, dict(actions), channels, b""))

    def receive(self) -> BuildMessage:
        self.left -= 1
        if self.left < 0:
            raise UnityEnvironmentException("build 0 (Test) was killed by SIGKILL")
        assert self._message is not None
        return read_build_message(self._message)

    def close(self, *, at_once: bool = False) -> None:
        self.closed = True

    def _answer(self, message: TrainerMessage) -> None:
        self._message = self.session.answer(write_trainer_message(message))


def shape_of(world: BatchWorld) -> BuildShape:
    """The shape that a probe of a player of `world` finds."""
    link = SessionLink(PlayerSession(world, _scenario(world), describes=True))
    link.greet(0)
    link.send(1, {}, b"")
    message = link.receive()
    (infos,) = message.infos.values()
    spec = world.spec
    actions = ActionSpec(spec.continuous, tuple(spec.branches))
    sensors = observation_specs(infos)
    assert sensors is not None
    behavior = BehaviorSpec(sensors, actions)
    return BuildShape("AimbotLab", behavior, world.num_envs, described(describe(spec)))


def _scenario(world: BatchWorld) -> Scenario:
    return Scenario(dict.fromkeys(world.spec.targets, 1.0))


def session_world(
    make: Any, rows: int, *, agents: int = 3, lost_after: Sequence[float] = (), **settings: Any
) -> UnityWorld:
    """`rows` rows over sessions of worlds that `make` makes, with `agents` rows each.

    The first ones to start are lost after so many messages.
    """
    lives = list(lost_after)

    def start(number: int) -> SessionLink:
        world = make(agents)
        session = PlayerSession(world, _scenario(world), describes=True)
        return SessionLink(session, lost_after=lives.pop(0) if lives else np.inf)

    chosen = UnitySettings(file_name="Test", num_envs=rows, **settings)
    return UnityWorld(chosen, shape_of(make(agents)), start=start)


def race_world(rows: int = 4, **given: Any) -> UnityWorld:
    """Walks to the right; the action 2 is a step there, and three of them win."""
    return session_world(Race, rows, **given)


def begun(world: UnityWorld, scenario: Scenario = RIGHT, seed: int = 1) -> StepBuffers:
    """Buffers of `world`, which is reset."""
    buffers = step_buffers(world)
    world.set_scenario(scenario)
    world.reset(seed, buffers.observations)
    return buffers


def stepped(world: UnityWorld, buffers: StepBuffers, steps: int) -> None:
    for _ in range(steps):
        world.step(np.ones((world.num_envs, 1), np.float32), buffers)


SCRIPTED = BehaviorSpec(
    [ObservationSpec((1,), (DimensionProperty.NONE,), ObservationType.DEFAULT, "Place")],
    ActionSpec.create_discrete((3,)),
)


class Told:
    """What a scripted build tells in one message: agents that decide, and that ended."""

    def __init__(
        self,
        deciding: Mapping[int, float] | None = None,
        ended: Mapping[int, float] | None = None,
        *,
        reward: float = 0.0,
        interrupted: bool = False,
        channels: Sequence[Any] = (),
    ) -> None:
        self.deciding, self.ended = dict(deciding or {}), dict(ended or {})
        self.reward, self.interrupted, self.channels = reward, interrupted, channels


class ScriptedLink:
    """A build of the behavior `Walker` that tells `script`, whatever it is sent."""

    def __init__(self, script: Sequence[Told], *, name: str = "Walker?team=0") -> None:
        self._script, self._name = list(script), name
        self._codec, self._actions = InfoCodec(SCRIPTED), ActionCodec(SCRIPTED.action_spec)
        self.sent: list[ActionTuple | None] = []
        self.channels: list[bytes] = []

    def greet(self, seed: int) -> None:
        """Nothing to greet."""

    def send(self, command: int, actions: Mapping[str, bytes], channels: bytes) -> None:
        data = actions.get(self._name)
        self.sent.append(None if data is None else self._actions.decode(data))
        self.channels.append(channels)

    def receive(self) -> BuildMessage:
        told = self._script.pop(0)
        infos = {self._name: self._codec.encode(*steps_of(told))}
        news = introduction([self._name], SCRIPTED)
        return BuildMessage(OK, infos, framed(told.channels), news)

    def close(self, *, at_once: bool = False) -> None:
        """Nothing to close."""


def steps_of(told: Told) -> tuple[DecisionSteps, TerminalSteps]:
    """What `told` says as ML-Agents has it."""

    def columns(agents: dict[int, float]) -> tuple[list[Any], Any, Any, Any, Any]:
        count = len(agents)
        seen = np.array([list(agents.values())], np.float32).reshape(count, 1)
        rewards = np.full(count, told.reward, np.float32)
        ids, zeros = np.array(list(agents), np.int32), np.zeros(count, np.int32)
        return [seen], rewards, ids, zeros, np.zeros(count, np.float32)

    obs, rewards, ids, groups, shared = columns(told.deciding)
    decisions = DecisionSteps(obs, rewards, ids, None, groups, shared)
    obs, rewards, ids, groups, shared = columns(told.ended)
    cut = np.full(len(ids), told.interrupted)
    return decisions, TerminalSteps(obs, rewards, cut, ids, groups, shared)


def scripted_world(script: Sequence[Told], rows: int = 2, **settings: Any) -> UnityWorld:
    """Agents of one build that tells `script`; the first message answers the reset."""
    chosen = UnitySettings(file_name="Test", num_envs=rows, **settings)
    shape = BuildShape("Walker", SCRIPTED, rows, {})
    return UnityWorld(chosen, shape, start=lambda number: ScriptedLink(script))
