"""The simulator's benchmark: all its measurements in one call."""

from dataclasses import dataclass

from aimbot_lab.bench.shares import Shares, measure_mixed, measure_others
from aimbot_lab.bench.sim_plan import BenchPlan
from aimbot_lab.bench.speed import Say, Speed, measure_speed
from aimbot_lab.bench.timing.fresh_process import Starts, measure_plain_python, measure_starts
from aimbot_lab.bench.timing.machine import Machine, this_machine


@dataclass(frozen=True)
class SimBench:
    """How fast the simulator is here."""

    machine: Machine
    rows: tuple[Speed, ...]
    mixed: Shares  # a step with all targets mixed, taken apart
    others: tuple[Shares, ...]  # a step of each other world
    starts: Starts
    plain_num_envs: int
    plain_steps_per_second: float  # of the same mixed step, uncompiled

    @property
    def ratio_to_plain_python(self) -> float:
        """How many times faster the compiled mixed step is than the same source uncompiled."""
        return self.mixed.steps_per_second / self.plain_steps_per_second


def bench_sim(plan: BenchPlan, say: Say) -> SimBench:
    """All measurements of `plan`; `say` is called with what begins."""
    say("compiling what is not in the cache yet")
    speeds = measure_speed(plan, say)
    say("taking a step apart")
    mixed, others = measure_mixed(plan), measure_others(plan)
    say("the same step in plain Python")
    plain = measure_plain_python(plan)
    if plan.starts:
        say("a cold start and a cached one, each in a process of its own")
    return SimBench(
        machine=this_machine(),
        rows=speeds,
        mixed=mixed,
        others=others,
        starts=measure_starts(plan),
        plain_num_envs=plan.plain_num_envs,
        plain_steps_per_second=plain,
    )
