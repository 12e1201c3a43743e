"""Acting of many snapshots at once beside acting of one on as many rows."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.bench.self_play.plan import SelfPlayBenchPlan
from aimbot_lab.bench.train_plan import SEED
from aimbot_lab.foundation.world import Float32Array, Scenario, WorldSpec, step_buffers
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.self_play.past_selves import PastSelves
from aimbot_lab.training.self_play.pool import SnapshotPool


@dataclass(frozen=True)
class ActingSpeed:
    """How long snapshots take to act once."""

    rows: int
    networks: int
    threads: int
    seconds_per_step: float
    ratio_to_one_network: float


def measure_acting(plan: SelfPlayBenchPlan) -> tuple[ActingSpeed, ...]:
    """Of one network and of as many as there are at once, with each number of threads."""
    return tuple(speed for threads in plan.threads for speed in _speeds(plan, threads))


def _speeds(plan: SelfPlayBenchPlan, threads: int) -> list[ActingSpeed]:
    """One network and many by turns; of each the best repeat counts."""
    seen, spec = _seen(plan), _spec(plan)
    snapshots = {count: _seated(plan, threads, count) for count in (1, plan.at_once)}
    best = dict.fromkeys(snapshots, float("inf"))
    masks = np.ones((len(seen), sum(spec.branches)), np.bool_)
    actions = np.zeros((len(seen), len(spec.branches) + spec.continuous), np.float32)

    def timed(one: PastSelves, steps: int) -> float:
        started = time.perf_counter()
        for _ in range(steps):
            one.act(seen, masks, actions)
        return (time.perf_counter() - started) / steps

    for one in snapshots.values():
        timed(one, 1)  # compiles, and loads the weights
    for _ in range(2 * plan.repeats):
        for count, one in snapshots.items():
            best[count] = min(best[count], timed(one, plan.acting_steps))
    return [
        ActingSpeed(plan.opposite, count, threads, seconds, seconds / best[1])
        for count, seconds in best.items()
    ]


def _seen(plan: SelfPlayBenchPlan) -> Float32Array:
    """Observations [B, D] of first states."""
    world = plan.world.make(plan.world.single_settings(_settings(plan)))
    world.set_scenario(Scenario({next(iter(world.spec.targets)): 1.0}))
    buffers = step_buffers(world)
    world.reset(SEED, buffers.observations)
    return buffers.observations


def _settings(plan: SelfPlayBenchPlan) -> Any:
    return plan.world.settings(num_envs=plan.opposite)


def _spec(plan: SelfPlayBenchPlan) -> WorldSpec:
    return plan.world.spec(plan.world.self_play_settings(_settings(plan), 0.0))


def _seated(plan: SelfPlayBenchPlan, threads: int, networks: int) -> PastSelves:
    """So many snapshots in all matches."""
    train, spec, pool = plan.train(threads), _spec(plan), SnapshotPool()
    fill(pool, new_policy(train, spec).state_dict(), networks)
    played = plan.world.self_play_targets
    found = PastSelves(pool, spec, train, played=played, seed=SEED)
    found.engine, found.line_up = "fused", tuple(range(networks))
    found.begin(plan.opposite)
    found.seat(np.arange(plan.opposite), [played[0]] * plan.opposite)
    return found


def fill(pool: SnapshotPool, weights: Any, count: int) -> None:
    """Have `count` snapshots that differ, made of `weights`."""
    for number in range(count):
        factor = 1.0 + 0.01 * number
        pool.take({name: tensor * factor for name, tensor in weights.items()}, step=number)
