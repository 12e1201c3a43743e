"""`bench bridge`: what the bridge to ML-Agents costs, by gRPC and in process.

Builds run in processes of their own, which a trainer of ours steps: a player, and an echo of
messages as long, which is what gRPC itself costs.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from aimbot_lab.bench.sim import PREPARED_STEPS, SEED, WARM_UP_STEPS, Play
from aimbot_lab.bench.turns import Report, Say, Table, by_turns, seconds_by_turns
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.mlagents.base_env import BehaviorSpec
from aimbot_lab.mlagents.builds import OVER, Build, Launch
from aimbot_lab.mlagents.grpc_link import play
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, behavior_spec
from aimbot_lab.mlagents.messages import (
    OK,
    RESET,
    STEP,
    TrainerMessage,
    read_build_message,
    write_trainer_message,
)
from aimbot_lab.worlds.registry import default_type

START = 300.0  # seconds for a build to begin: it may compile its kernels first
WAIT = 60.0  # seconds for the trainer of an echo to listen


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
    title = "In process, agent-steps a second: of the world, and by ML-Agents' calls"
    return Report(
        {"wire": wire, "in_process": inside},
        [Table("Through the wire, by agents a message", wire), Table(title, [inside])],
    )


class _Program(Launch):
    """A program whose words are all its arguments, with its port at PORT."""

    def command(self, program: Path, port: int, number: int) -> list[str]:  # noqa: ARG002
        """What is executed."""
        return [str(program), *(word.replace("PORT", str(port)) for word in self.arguments)]


def started(*words: str) -> "closing[Build]":
    """A build that is this Python with `words`, and ends with its block."""
    return closing(Build(_Program(sys.executable, words, timeout_wait=START), 0))


def _wire(plan: BridgePlan, spec: BehaviorSpec, *, agents: int, say: Say) -> dict[str, Any]:
    """The best of short repeats of the player and the echo, by turns.

    The player's agents are of the lesson that is meant where none is named, and act at random. A
    step decodes all that they tell and encodes their actions.
    """
    say(f"through the wire: {agents} agents a message")
    infos, codec = InfoCodec(spec), ActionCodec(spec.action_spec)
    actions = cycle([spec.action_spec.random_action(agents) for _ in range(PREPARED_STEPS)])
    words = "-m", "aimbot_lab", "player", "--mlagents-port", "PORT", "--agents", str(agents)
    with ExitStack() as stack:
        player = stack.enter_context(started(*words))
        player.greet(1)
        player.send(RESET, {}, b"")
        ((behavior, seen),) = player.receive().infos.items()
        if len(there := infos.decode(seen)[0]) != agents:
            raise LabError(f"the player has {len(there)} agents; {agents} were asked for")
        sizes = [0]  # of the player's messages

        def played() -> None:
            player.send(STEP, {behavior: codec.encode(next(actions))}, b"")
            sizes.append(len(data := player.receive_bytes()))
            infos.decode(read_build_message(data).infos[behavior])

        _rate(played, plan.seconds)  # longest messages, before an echo of that size
        size, sent = max(sizes), {behavior: codec.encode(next(actions))}
        code = f"from aimbot_lab.bench.bridge import echo; echo(PORT, {size})"
        mirror = stack.enter_context(started("-c", code))
        mirror.receive_bytes()

        def echoed() -> None:
            mirror.send(STEP, sent, b"")
            mirror.receive_bytes()

        rates = {step: partial(_rate, step, plan.seconds) for step in (played, echoed)}
        best = {step: max(found) for step, found in by_turns(rates, plan.repeats).items()}
    answer = TrainerMessage(OK, STEP, sent, b"", b"")
    return {
        "agents": agents,
        "messages_per_second": best[played],
        "echo_per_second": best[echoed],
        "message_bytes": max(sizes),
        "answer_bytes": len(write_trainer_message(answer)),
        "steps_per_second": agents * best[played],
    }


def _rate(step: Callable[[], None], seconds: float) -> float:
    """How many steps a second there are, measured for about `seconds`."""
    steps, begun = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begun) < seconds or not steps:
        step()
        steps += 1
    return steps / elapsed


def echo(port: int, size: int) -> None:
    """As a build, send messages of that size to the trainer at `port` until it ends; read none."""
    message = bytes(size)

    def answer(data: bytes) -> bytes | None:
        return None if data == OVER else message

    session = SimpleNamespace(begin=lambda: message, answer=answer, end=lambda: message)
    play(cast(Any, session), port, wait_s=WAIT)


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
    calls = {name: partial(run, steps) for name, run in runs.items()}
    taken = seconds_by_turns(calls, plan.in_process_repeats)
    rates = {name: agents * steps / min(seconds) for name, seconds in taken.items()}
    return {"agents": agents, **rates, "share": rates["environment"] / rates["world"]}


def _lab_play(inner: Play) -> Callable[[int], None]:
    """Plays steps by the calls of ML-Agents, in the midst of random play."""
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
