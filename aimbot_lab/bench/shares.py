"""Which part of a step takes how much of its time.

Each part is timed alone, on the same rows in full play as the whole step. A reset counts as
often as episodes end in that play, with the first rays and the first observation of the new
episode. What is left of the whole step (checking actions, the gun, the result, calls from Python,
result lines) is the rest.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from aimbot_lab.bench.plan import BenchPlan
from aimbot_lab.bench.play import Play
from aimbot_lab.foundation.world import Float32Array, Scenario
from aimbot_lab.worlds.arena.allocate import new_tables
from aimbot_lab.worlds.arena.core.parts import (
    begin_all,
    cast_all_rays,
    move_all,
    observe_all,
    reward_all,
)
from aimbot_lab.worlds.arena.presets.files import load_presets
from aimbot_lab.worlds.arena.scenario import scenario_tables
from aimbot_lab.worlds.arena.settings import ArenaSettings

STATES = 4  # that one timing of the parts takes the mean over


@dataclass(frozen=True)
class Shares:
    """A step taken apart."""

    shares: Mapping[str, float]  # part -> share of the step's time; they sum to 1
    num_envs: int
    seconds_per_step: float  # of all rows together
    resets_per_step: float  # episodes that end in a step, per row

    @property
    def steps_per_second(self) -> float:
        """Decisions of single environments per second of the whole step."""
        return self.num_envs / self.seconds_per_step


def measure_shares(plan: BenchPlan) -> Shares:
    """The shares of a step in which all targets of `plan` are mixed evenly, on one thread."""
    settings = ArenaSettings(num_envs=plan.mixed_num_envs)
    scenario = Scenario(dict.fromkeys(plan.targets, 1.0))
    play = Play(settings, load_presets(), scenario=scenario)
    parts = _parts(play, scenario)
    _time_parts(play, parts)  # compiles them
    counted = round(settings.time_limit / settings.decision_seconds)
    resets = play.run(counted) / counted / settings.num_envs
    rounds = [_time_parts(play, parts) for _ in range(plan.mixed_repeats)]
    best = {name: min(times[name] for times in rounds) for name in rounds[0]}
    best["reset"] *= resets
    step = best.pop("step")
    return Shares(_shares(best, step), settings.num_envs, step, resets)


def _parts(play: Play, scenario: Scenario) -> dict[str, Callable[[Float32Array], None]]:
    """For each part, what runs it on all rows with given actions [B, 4]."""
    state, buffers, settings = play.arena.state, play.buffers, play.arena.settings
    tables = new_tables(settings, load_presets())
    drawn_from = scenario_tables(scenario, settings, tables.presets, number=1)
    tables = tables._replace(scenario=drawn_from)
    scratch = np.zeros((4, state.ray_cos.shape[1]), np.float32)
    span = 0, settings.num_envs
    every_row = buffers._replace(finished=np.ones(settings.num_envs, np.bool_))
    return {
        "rays": lambda _: cast_all_rays(state, scratch, span),
        "movement": lambda actions: move_all(state, actions, span),
        "reward": lambda actions: reward_all(state, tables, actions, buffers, span),
        "observation": lambda _: observe_all(state, tables, buffers.observations, span),
        "reset": lambda _: begin_all(state, tables, scratch, every_row, span),
    }


def _time_parts(
    play: Play, parts: Mapping[str, Callable[[Float32Array], None]]
) -> dict[str, float]:
    """Mean seconds of the whole step and of each part, on all rows.

    Every run meets a new state, as in play: on one that it has met before, the processor would
    remember the way each branch went.
    """
    total = dict.fromkeys(("step", *parts), 0.0)
    for actions in play.actions[:STATES]:
        before = play.arena.snapshot()
        for name, run in parts.items():
            started = time.perf_counter()
            run(actions)
            total[name] += time.perf_counter() - started
            play.arena.restore(before)
        started = time.perf_counter()
        play.run(1)
        total["step"] += time.perf_counter() - started
    return {name: seconds / STATES for name, seconds in total.items()}


def _shares(times: Mapping[str, float], step: float) -> dict[str, float]:
    """`times` as shares of `step` or, where noise made their sum longer, of that sum."""
    whole = max(step, sum(times.values()))
    shares = {name: seconds / whole for name, seconds in times.items()}
    return shares | {"rest": max(0.0, 1.0 - sum(shares.values()))}
