"""`bench bridge`: what the bridge to ML-Agents costs, by gRPC and in process.

Builds run in processes of their own, which a trainer of ours steps: a player, and an echo of
messages as long, which is what gRPC itself costs.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import numpy as np

from aimbot_lab.bench.sim import PREPARED_STEPS, SEED, WARM_UP_STEPS, Play
from aimbot_lab.bench.turns import Report, Say, Table, by_turns, seconds_of
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.mlagents.actions import ActionTuple
from aimbot_lab.mlagents.behaviors import BehaviorSpec, behavior_spec
from aimbot_lab.mlagents.builds.server import BuildServer
from aimbot_lab.mlagents.grpc_link import play
from aimbot_lab.mlagents.handshake import COMMUNICATION, PACKAGE
from aimbot_lab.mlagents.wire import exchange
from aimbot_lab.mlagents.wire.action_codec import ActionCodec
from aimbot_lab.mlagents.wire.info_codec import InfoCodec
from aimbot_lab.mlagents.wire.schema import new_message
from aimbot_lab.worlds.registry import default_type

START = 300.0  # seconds for a build to begin: it may compile its kernels first
LOOK = 0.25  # seconds between two looks whether the build still runs
FAREWELL = 5.0  # seconds for the server to end
WAIT = 60.0  # seconds for the trainer of an echo to listen
STOP = b"stop"  # ends an echo


@dataclass(frozen=True)
class BridgePlan:
    """How much is measured, and how long."""

    agents: tuple[int, ...] = (64, 256)  # a message
    seconds: float = 0.25  # of a repeat of the wire and of the echo
    repeats: int = 20
    in_process_agents: int = 1024
    in_process_steps: int = 20  # of a repeat
    in_process_repeats: int = 300


FULL = BridgePlan()
QUICK = BridgePlan(agents=(4,), seconds=0.01, repeats=1, in_process_agents=16, in_process_repeats=2)


def bench_bridge(plan: BridgePlan, say: Say) -> Report:
    """All measurements of `plan`; `say` is called with what begins."""
    kind = default_type()
    say("starting players")
    spec = behavior_spec(kind.spec(kind.settings()))
    wire = [_wire(plan, spec, agents=agents, say=say) for agents in plan.agents]
    say("in this process")
    inside = _in_process(plan)
    text = (
        "In process, {agents} agents: {environment:,.0f} agent-steps a second by ML-Agents' calls, "
        "{share:.2f} of the world's own {world:,.0f} ({world_and_masks:,.0f} where masks are asked "
        "for as well)."
    )
    return Report(
        {"wire": wire, "in_process": inside},
        [Table("Through the wire, by agents a message", wire), text.format(**inside)],
    )


def _wire(plan: BridgePlan, spec: BehaviorSpec, *, agents: int, say: Say) -> dict[str, Any]:
    """The best of short repeats of the player and the echo, by turns."""
    say(f"through the wire: {agents} agents a message")
    with ExitStack() as peers:
        player = peers.enter_context(PlayerPeer(agents, spec))
        player.steps_per_second(plan.seconds)  # longest messages, before an echo of that size
        echo = peers.enter_context(EchoPeer(player.message_bytes, player.answer_bytes))
        both: dict[str, Peer] = {"player": player, "echo": echo}
        rates = {name: partial(one.steps_per_second, plan.seconds) for name, one in both.items()}
        best = {name: max(found) for name, found in by_turns(rates, plan.repeats).items()}
    return {
        "agents": agents,
        "messages_per_second": best["player"],
        "echo_per_second": best["echo"],
        "message_bytes": player.message_bytes,
        "answer_bytes": player.answer_bytes,
        "steps_per_second": agents * best["player"],
    }


class Peer:
    """A build that runs as a process; in `program` the port of its trainer is PORT.

    A context manager.
    """

    farewell = STOP

    def __init__(self, *program: str) -> None:
        self._server = BuildServer()
        words = [word.replace("PORT", str(self._server.port)) for word in program]
        self._process = subprocess.Popen([sys.executable, *words])

    def __enter__(self) -> Self:
        try:
            self.begin()
        except BaseException as error:
            self.__exit__(type(error), error)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object = None) -> None:
        if error is not None:
            self._process.kill()
        self._server.answer(self.farewell)
        self._process.wait()
        self._server.close(self.farewell, wait_s=FAREWELL)

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

    def begin(self) -> None:
        """Take its first message."""
        self._received()

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


def _to_build(
    command: int, given: dict[str, bytes], content: bytes = b"", *, status: int = exchange.OK
) -> bytes:
    message = exchange.TrainerMessage(status, command, given, b"", content)
    return exchange.write_trainer_message(message)


class PlayerPeer(Peer):
    """`agents` of the lesson that is meant where none is named, which act at random.

    A step decodes all that agents tell and encodes their actions.
    """

    farewell = _to_build(exchange.STEP, {}, status=exchange.SHUT_DOWN)

    def __init__(self, agents: int, spec: BehaviorSpec) -> None:
        words = "player", "--mlagents-port", "PORT", "--agents", str(agents)
        super().__init__("-m", "aimbot_lab", *words)
        self._infos, self._codec = InfoCodec(spec), ActionCodec(spec.action_spec)
        self._agents, self._behavior, self._steps = agents, "", 0
        self._actions = [spec.action_spec.random_action(agents) for _ in range(PREPARED_STEPS)]
        self.message_bytes = 0  # of the longest message of the player
        self.answer_bytes = len(self._written(self._actions[0]))

    def begin(self) -> None:
        """Greet and reset it, and see that all of its agents are there."""
        self._received()
        greeting = new_message("InitInput")
        greeting.communication_version, greeting.package_version = COMMUNICATION, PACKAGE
        content = bytes(greeting.SerializeToString())
        self._server.answer(_to_build(exchange.STEP, {}, content))
        self._received()
        self._server.answer(_to_build(exchange.RESET, {}))
        message = exchange.read_build_message(self._received())
        ((self._behavior, infos),) = message.infos.items()
        decisions = self._infos.decode(infos)[0]
        if len(decisions) != self._agents:
            raise LabError(f"the player has {len(decisions)} agents; {self._agents} were asked for")

    def step(self) -> None:
        """Act for all agents and read what they tell."""
        self._server.answer(self._written(self._actions[self._steps % PREPARED_STEPS]))
        self._steps += 1
        message = self._received()
        self.message_bytes = max(self.message_bytes, len(message))
        self._infos.decode(exchange.read_build_message(message).infos[self._behavior])

    def _written(self, action: ActionTuple) -> bytes:
        return _to_build(exchange.STEP, {self._behavior: self._codec.encode(action)})


class EchoPeer(Peer):
    """Messages of so many bytes, answered with so many."""

    def __init__(self, message_bytes: int, answer_bytes: int) -> None:
        super().__init__(
            "-c", f"from aimbot_lab.bench.bridge import Echo; Echo({message_bytes}).play(PORT)"
        )
        self._answer = bytes(answer_bytes)

    def step(self) -> None:
        """Send and receive."""
        self._server.answer(self._answer)
        self._received()


class Echo:
    """A build that sends so many bytes and reads nothing of the answers."""

    def __init__(self, size: int) -> None:
        self._message = bytes(size)

    def play(self, port: int) -> None:
        """Send to the trainer at `port` until it stops this."""
        play(cast(Any, self), port, wait_s=WAIT)

    def begin(self) -> bytes:
        """The first message."""
        return self._message

    def answer(self, data: bytes) -> bytes | None:
        """The next message, which is the same; None: it was told to stop."""
        return None if data == STOP else self._message

    def end(self) -> bytes:
        """The last message."""
        return self._message


def _in_process(plan: BridgePlan) -> dict[str, Any]:
    """Agent-steps a second of the world itself and by the calls of ML-Agents, by turns."""
    kind, agents = default_type(), plan.in_process_agents
    scenario = Scenario({kind.default_target(): 1.0})
    plain, masked, inner = (Play.of(kind, scenario, seats=agents) for _ in range(3))
    masks = np.ones((masked.seats, sum(masked.world.spec.branches)), np.bool_)

    def with_masks(steps: int) -> None:
        for _ in range(steps):
            masked.run(1)
            masked.world.action_masks(masks)

    runs: dict[str, Callable[[int], object]] = {
        "world": plain.run,
        "world_and_masks": with_masks,  # asked for after each step as well
        "environment": _lab_play(inner),  # gives masks with every step
    }
    steps = plan.in_process_steps
    timed = {
        name: partial(seconds_of, partial(run, steps), time.perf_counter)
        for name, run in runs.items()
    }
    taken = by_turns(timed, plan.in_process_repeats)
    rates = {name: agents * steps / min(seconds) for name, seconds in taken.items()}
    return {"agents": agents, **rates, "share": rates["environment"] / rates["world"]}


def _lab_play(inner: Play) -> Callable[[int], None]:
    """Plays so many steps by the calls of ML-Agents, in the midst of random play."""
    env = LabEnvironment(inner.world, inner.scenario)
    env.reset()
    ((behavior, spec),) = env.behavior_specs.items()
    np.random.seed(SEED % 2**32)
    actions = [spec.action_spec.random_action(inner.seats) for _ in range(PREPARED_STEPS)]
    done = 0

    def run(steps: int) -> None:
        nonlocal done
        for _ in range(steps):
            env.get_steps(behavior)
            env.set_actions(behavior, actions[done % PREPARED_STEPS])
            env.step()
            done += 1

    inner.kind.spread_episodes(inner.world, inner.scenario, seed=SEED, play=run)
    run(WARM_UP_STEPS)
    return run
