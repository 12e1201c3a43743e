"""Which part of a step takes how much of its time.

Each part is timed alone, on the same rows in full play as the whole step. A reset counts as
often as episodes end in that play, with the first rays and the first observation of the new
episode. What is left of the whole step (checking actions, the gun, the result, calls from Python,
result lines) is the rest.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aimbot_lab.bench.sim_plan import BenchPlan
from aimbot_lab.bench.timing.play import Play
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import StepParts, WorldType
from aimbot_lab.worlds.registry import default_type, world_types

UNKNOWN_STEPS = 1000  # over which resets are counted where the longest episode is not known
STATES = 4  # that one timing of the parts takes the mean over


@dataclass(frozen=True)
class Shares:
    """A step taken apart."""

    world: str
    shares: Mapping[str, float]  # part -> share of the step's time; they sum to 1
    num_envs: int  # agents, where a row has several
    seconds_per_step: float  # of all rows together
    resets_per_step: float  # episodes that end in a step, per agent

    @property
    def steps_per_second(self) -> float:
        """Decisions of single agents per second of the whole step."""
        return self.num_envs / self.seconds_per_step


def measure_mixed(plan: BenchPlan) -> Shares:
    """The shares of a step in which all targets of `plan` are mixed evenly, on one thread."""
    return _measure(plan, default_type(), plan.targets)


def measure_others(plan: BenchPlan) -> tuple[Shares, ...]:
    """The shares of a step of the other worlds, in their hardest targets."""
    kinds = [world_types()[name] for name in plan.others]
    return tuple(_measure(plan, kind, (kind.hardest_target(),)) for kind in kinds)


def _measure(plan: BenchPlan, kind: WorldType, targets: Sequence[str]) -> Shares:
    scenario = Scenario(dict.fromkeys(targets, 1.0))
    play = Play.of(kind, scenario, seats=plan.mixed_num_envs)
    parts = play.kind.step_parts(play.world, scenario, play.buffers)
    _time_parts(play, parts)  # compiles them
    counted = play.world.spec.max_steps or UNKNOWN_STEPS
    resets = play.run(counted) / counted / play.seats
    rounds = [_time_parts(play, parts) for _ in range(plan.mixed_repeats)]
    best = {name: min(times[name] for times in rounds) for name in rounds[0]}
    if "reset" in best:
        best["reset"] *= resets
    step = best.pop("step")
    return Shares(kind.name, _shares(best, step), play.seats, step, resets)


def _time_parts(play: Play, parts: StepParts) -> dict[str, float]:
    """Mean seconds of the whole step and of each part, on all rows.

    Every run meets a new state, as in play: on one that it has met before, the processor would
    remember the way each branch went.
    """
    total = dict.fromkeys(("step", *parts), 0.0)
    for actions in play.actions[:STATES]:
        before = play.world.snapshot()
        for name, run in parts.items():
            started = time.perf_counter()
            run(actions)
            total[name] += time.perf_counter() - started
            play.world.restore(before)
        started = time.perf_counter()
        play.run(1)
        total["step"] += time.perf_counter() - started
    return {name: seconds / STATES for name, seconds in total.items()}


def _shares(times: Mapping[str, float], step: float) -> dict[str, float]:
    """`times` as shares of `step` or, where noise made their sum longer, of that sum."""
    whole = max(step, sum(times.values()))
    shares = {name: seconds / whole for name, seconds in times.items()}
    return shares | {"rest": max(0.0, 1.0 - sum(shares.values()))}
