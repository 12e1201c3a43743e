"""`bench sim`: steps per second of the worlds, the time of a step by part, and of a start."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from aimbot_lab.bench.turns import Report, Say, Table, by_turns, printed_number, seconds_of
from aimbot_lab.foundation.world import Scenario, seats_of, step_buffers
from aimbot_lab.foundation.world_type import RandomAgent, StepParts, WorldSettings, WorldType
from aimbot_lab.worlds.registry import default_type, make_world, type_of, world_types

SEED = 20_240_229
PREPARED_STEPS = 64  # random actions, played again and again
WARM_UP_STEPS = 10
UNKNOWN_STEPS = 1000  # over which resets are counted where the longest episode is not known
START = (
    "import time; begun = time.perf_counter(); from aimbot_lab.bench.sim import first_step; "
    "first_step(); print(time.perf_counter() - begun)"
)
STATES = 4  # that one timing of the parts takes the mean over


def other_worlds() -> tuple[str, ...]:
    """Worlds that are measured beside the one that is meant where none is named."""
    kinds = world_types().values()
    return tuple(one.name for one in kinds if one.benched and one is not default_type())


@dataclass(frozen=True)
class SimPlan:
    """How much is measured, and how long."""

    targets: tuple[str, ...] = field(default_factory=lambda: (*default_type().targets(None),))
    others: tuple[str, ...] = field(default_factory=other_worlds)
    """Worlds of which the hardest target is measured, too."""
    num_envs: tuple[int, ...] = (1, 16, 256, 1024, 4096)
    threads: tuple[int, ...] = (1, 2)
    repeats: int = 25  # of each measurement; the best one counts
    seconds: float = 0.02  # of one repeat: short, so that a busy machine leaves some in peace
    mixed_num_envs: int = 1024  # rows in which the step is taken apart
    mixed_repeats: int = 120  # in which the best counts, of each part and of plain Python
    plain_num_envs: int = 24  # rows of the plain Python version
    plain_seconds: float = 0.004  # that one repeat of it takes
    starts: bool = True  # measure a cold and a cached start


FULL = SimPlan()
_TINY: Any = {"mixed_num_envs": 64, "mixed_repeats": 1, "plain_num_envs": 6, "starts": False}
QUICK = SimPlan(num_envs=(1, 16), threads=(1,), repeats=1, seconds=0.01, **_TINY)


class Play:
    """Rows of a world in the midst of random play, whose episodes end at all times."""

    def __init__(self, settings: WorldSettings, scenario: Scenario) -> None:
        self.kind, self.scenario = type_of(settings), scenario
        self.world = self.kind.make(settings)
        self.seats = seats_of(self.world)
        self.buffers = step_buffers(self.world)
        agent = RandomAgent(self.world.spec, SEED)
        self.actions = [agent(self.buffers.observations) for _ in range(PREPARED_STEPS)]
        self._next = 0
        self.kind.spread_episodes(self.world, scenario, seed=SEED, play=self.run)
        self.run(WARM_UP_STEPS)

    @classmethod
    def of(cls, kind: WorldType, scenario: Scenario, *, seats: int, threads: int = 1) -> "Play":
        """A world of `kind` with that many agents, as far as its rows divide them."""
        agents = kind.spec(kind.settings()).agents
        return cls(kind.settings(num_envs=max(1, seats // agents), threads=threads), scenario)

    def run(self, steps: int) -> int:
        """How many episodes ended in the next `steps` steps of random play."""
        step, buffers, ended = self.world.step, self.buffers, 0
        for index in range(self._next, self._next + steps):
            ended += len(step(self.actions[index % PREPARED_STEPS], buffers).cell)
        self._next = (self._next + steps) % PREPARED_STEPS
        return ended

    def time_step(self, seconds: float) -> float:
        """Seconds that one step of all rows takes, measured for about `seconds`."""
        steps = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds or steps == 0:
            chunk = max(1, min(steps, 1000))
            self.run(chunk)
            steps += chunk
        return elapsed / steps

    def time_parts(self, parts: StepParts) -> dict[str, float]:
        """Mean seconds of the whole step, as "step", and of each part by itself, on all rows.

        Every run meets a new state, as in play: on one that it has met before, the processor would
        remember the way each branch went.
        """
        world: Any = self.world
        arrays, total = world.arrays(), dict.fromkeys(("step", *parts), 0.0)
        for actions in self.actions[:STATES]:
            before = [array.copy() for array in arrays.values()]
            for name, run in parts.items():
                total[name] += seconds_of(partial(run, actions), time.perf_counter)
                for array, kept in zip(arrays.values(), before, strict=True):
                    array[...] = kept  # `restore` would have the next step prepare its call
            total["step"] += seconds_of(partial(self.run, 1), time.perf_counter)
        return {name: seconds / STATES for name, seconds in total.items()}


def bench_sim(plan: SimPlan, say: Say) -> Report:
    """All measurements of `plan`; `say` is called with what begins."""
    say("compiling what is not in the cache yet")
    rows = _speeds(plan, say)
    say("taking a step apart")
    mixed = _shares(plan, default_type(), plan.targets)
    kinds = [world_types()[name] for name in plan.others]
    others = {kind.name: _shares(plan, kind, (kind.hardest_target(),)) for kind in kinds}
    say("the same step in plain Python")
    plain = printed_number(
        "from aimbot_lab.bench import sim; print(sim.plain_steps_per_second("
        f"{plan.plain_num_envs}, {plan.mixed_repeats}, seconds={plan.plain_seconds}))",
        NUMBA_DISABLE_JIT="1",
    )
    starts: dict[str, float | None] = {"cold": None, "cached": None}
    if plan.starts:
        say("a cold start and a cached one, each in a process of its own")
        with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as folder:
            cold, *cached = (printed_number(START, NUMBA_CACHE_DIR=folder) for _ in range(4))
        starts = {"cold": cold, "cached": min(cached)}
    python = {"num_envs": plan.plain_num_envs, "threads": 1}
    document = {
        "rows": rows,
        "shares": mixed["shares"],
        "mixed_step": mixed["step"],
        "other_worlds": others,
        "plain_python_step": python | {"steps_per_second": plain},
        "ratio_to_plain_python": mixed["step"]["steps_per_second"] / plain,
        "compile_seconds": starts,
    }
    return Report(document, list(_tables(document)))


def _speeds(plan: SimPlan, say: Say) -> list[dict[str, Any]]:
    """Steps per second of each target, number of rows and of threads."""
    played = [(default_type().name, target) for target in plan.targets]
    played += [(world, world_types()[world].hardest_target()) for world in plan.others]
    say(f"setting up {len(played) * len(plan.num_envs) * len(plan.threads)} worlds")
    plays = {}
    for (world, target), seats, threads in product(played, plan.num_envs, plan.threads):
        kind, scenario = world_types()[world], Scenario({target: 1.0})
        play = Play.of(kind, scenario, seats=seats, threads=threads)
        plays[world, target, seats, threads] = play
    say(f"steps per second: takes {len(plays) * plan.repeats * plan.seconds:.2g} s or more")
    steps = {cell: partial(play.time_step, plan.seconds) for cell, play in plays.items()}
    names = "world", "target", "num_envs", "threads"  # agents, where a row has several
    return [
        dict(zip(names, cell, strict=True)) | {"steps_per_second": plays[cell].seats / min(seconds)}
        for cell, seconds in by_turns(steps, plan.repeats).items()
    ]


def _shares(plan: SimPlan, kind: WorldType, targets: Sequence[str]) -> dict[str, Any]:
    """The shares of a step in which `targets` are mixed evenly, on one thread.

    A reset counts as often as episodes end, with the first rays and the first observation of the
    new episode. What is left of the whole step (checking actions, the gun, the result, calls from
    Python, result lines) is the rest; noise may leave nothing.
    """
    play = Play.of(kind, Scenario(dict.fromkeys(targets, 1.0)), seats=plan.mixed_num_envs)
    parts = kind.step_parts(play.world, play.scenario, play.buffers)
    play.time_parts(parts)  # compiles them
    counted = play.world.spec.max_steps or UNKNOWN_STEPS
    resets = play.run(counted) / counted / play.seats  # per agent and step
    rounds = [play.time_parts(parts) for _ in range(plan.mixed_repeats)]
    best = {name: min(times[name] for times in rounds) for name in rounds[0]}
    if "reset" in best:
        best["reset"] *= resets
    step = best.pop("step")
    whole = max(step, sum(best.values()))
    shares = {name: seconds / whole for name, seconds in best.items()}
    shares["rest"] = max(0.0, 1.0 - sum(shares.values()))
    about = {"num_envs": play.seats, "threads": 1, "steps_per_second": play.seats / step}
    return {"shares": shares, "step": about | {"resets_per_step": resets}}


def plain_steps_per_second(num_envs: int, repeats: int, *, seconds: float) -> float:
    """The best of `repeats` measurements, with all targets mixed evenly; for the JIT off."""
    scenario = Scenario(dict.fromkeys(FULL.targets, 1.0))
    # Random words wrap round on purpose; uncompiled, numpy would warn of it.
    with np.errstate(over="ignore"):
        play = Play(default_type().settings(num_envs=num_envs), scenario)
        return num_envs / min(play.time_step(seconds) for _ in range(repeats))


def first_step() -> None:
    """Make a world and step it once."""
    world = make_world(default_type().settings(num_envs=16))
    world.set_scenario(Scenario(dict.fromkeys(default_type().targets(None), 1.0)))
    spec, buffers = world.spec, step_buffers(world)
    world.reset(0, buffers.observations)
    world.step(np.zeros((16, len(spec.branches) + spec.continuous), np.float32), buffers)


def _tables(document: Mapping[str, Any]) -> Iterator[Table]:
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in document["rows"]:
        line = {name: row[name] for name in ("world", "target", "threads")}
        line = lines.setdefault(tuple(line.values()), line)
        line[str(row["num_envs"])] = row["steps_per_second"]
    yield Table("Steps per second by number of environments", lines.values())
    usual = {"shares": document["shares"], "step": document["mixed_step"]}
    for name, one in {default_type().name: usual, **document["other_worlds"]}.items():
        step, shares = one["step"], one["shares"]
        title = (
            f"Where a step's time goes: world {name}, {step['num_envs']} environments, 1 thread; "
            "each part timed alone on the same rows, the rest is what is left of the whole step"
        )
        ns = 1e9 / step["steps_per_second"]
        rows = [{"part": part, "share": own, "ns": own * ns} for part, own in shares.items()]
        yield Table(title, rows)
    environments, threads, plain = document["plain_python_step"].values()
    title = (
        "The kernels' own source with the compiler off, as plain Python; how many times as fast "
        "the compiled one is"
    )
    row = {"environments": environments, "threads": threads, "steps per second": plain}
    yield Table(title, [{**row, "compiled": document["ratio_to_plain_python"]}])
    starts = "Seconds from import to first step: cold, the kernels are compiled (-: not measured)"
    yield Table(starts, [document["compile_seconds"]])
