"""Steps per second of a world under random play."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from aimbot_lab.bench.sim_plan import BenchPlan
from aimbot_lab.bench.timing.play import Play
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.registry import default_type, world_types

Say = Callable[[str], None]  # takes a line of progress


@dataclass(frozen=True)
class Speed:
    """How fast one target runs with so many rows and threads."""

    world: str
    target: str
    num_envs: int  # agents, where a row has several
    threads: int
    steps_per_second: float  # decisions of single agents


class Cell(NamedTuple):
    """What is measured by itself."""

    world: str
    target: str
    num_envs: int
    threads: int


def measure_speed(plan: BenchPlan, say: Say) -> tuple[Speed, ...]:
    """Steps per second for each target, number of rows and number of threads of `plan`.

    The repeats of one measurement are spread over the whole time, so that a busy moment of the
    machine does not hit all of them.
    """
    cells = list(_cells(plan))
    say(f"setting up {len(cells)} worlds")
    plays = list(_plays(cells))
    best = [float("inf")] * len(cells)
    say(f"steps per second: {len(cells) * plan.repeats * plan.seconds:.0f} s or somewhat more")
    for _ in range(plan.repeats):
        best = [
            min(old, play.time_step(plan.seconds)) for old, play in zip(best, plays, strict=True)
        ]
    measured = zip(cells, plays, best, strict=True)
    return tuple(Speed(*cell, play.seats / seconds) for cell, play, seconds in measured)


def _cells(plan: BenchPlan) -> Iterator[Cell]:
    played = [(default_type().name, target) for target in plan.targets]
    played += [(world, world_types()[world].hardest_target()) for world in plan.others]
    for (world, target), *sizes in product(played, plan.num_envs, plan.threads):
        yield Cell(world, target, *sizes)


def _plays(cells: list[Cell]) -> Iterator[Play]:
    for world, target, num_envs, threads in cells:
        yield Play.of(
            world_types()[world], Scenario({target: 1.0}), seats=num_envs, threads=threads
        )
