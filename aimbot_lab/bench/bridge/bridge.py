"""The bridge's benchmark: all its measurements in one call."""

from contextlib import ExitStack
from dataclasses import dataclass

from aimbot_lab.bench.bridge.in_process import InProcess, measure_in_process
from aimbot_lab.bench.bridge.peers import EchoPeer, PlayerPeer
from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.machine import Machine, this_machine
from aimbot_lab.mlagents.behaviors import BehaviorSpec, behavior_spec
from aimbot_lab.worlds.registry import default_type


@dataclass(frozen=True)
class BridgePlan:
    """What `bench_bridge` measures."""

    agents: tuple[int, ...] = (64, 256)  # a message
    seconds: float = 0.25  # of a repeat of the wire and of the echo
    repeats: int = 20
    in_process_agents: int = 1024
    in_process_steps: int = 20  # of a repeat
    in_process_repeats: int = 300


FULL = BridgePlan()
QUICK = BridgePlan(agents=(4,), seconds=0.01, repeats=1, in_process_agents=16, in_process_repeats=2)


@dataclass(frozen=True)
class WireSpeed:
    """A trainer of ours and our player, a process each, which talk by gRPC."""

    agents: int  # a message
    messages_per_second: float
    echo_per_second: float  # messages as long that are neither written nor read
    message_bytes: int  # of the player
    answer_bytes: int  # of the trainer

    @property
    def steps_per_second(self) -> float:
        """Decisions of single agents."""
        return self.agents * self.messages_per_second


@dataclass(frozen=True)
class BridgeBench:
    """How fast the bridge is here."""

    machine: Machine
    wire: tuple[WireSpeed, ...]
    in_process: InProcess


def bench_bridge(plan: BridgePlan, say: Say) -> BridgeBench:
    """All measurements of `plan`; `say` is called with what begins."""
    kind = default_type()
    say("starting players")
    spec = behavior_spec(kind.spec(kind.settings()))
    wire = tuple(_wire(plan, spec, agents=agents, say=say) for agents in plan.agents)
    say("in this process")
    inside = measure_in_process(
        agents=plan.in_process_agents,
        repeats=plan.in_process_repeats,
        steps=plan.in_process_steps,
    )
    return BridgeBench(this_machine(), wire, inside)


def _wire(plan: BridgePlan, spec: BehaviorSpec, *, agents: int, say: Say) -> WireSpeed:
    """The best of short repeats of the player and the echo, by turns."""
    say(f"through the wire: {agents} agents a message")
    player_best = echo_best = 0.0
    with ExitStack() as peers:
        player = peers.enter_context(PlayerPeer(agents, spec))
        player.steps_per_second(plan.seconds)  # longest messages, before an echo of that size
        echo = peers.enter_context(EchoPeer(player.message_bytes, player.answer_bytes))
        for _ in range(plan.repeats):
            player_best = max(player_best, player.steps_per_second(plan.seconds))
            echo_best = max(echo_best, echo.steps_per_second(plan.seconds))
        return WireSpeed(agents, player_best, echo_best, player.message_bytes, player.answer_bytes)
