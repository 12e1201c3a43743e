"""What actors bring and cost, measured: `make actors`."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_shared_training import Record
from tiny_training import learn

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.training.actors import rollouts
from aimbot_lab.training.actors.actor import LocalActors
from aimbot_lab.training.actors.block import Block
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.settings import ActorSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule

pytestmark = [pytest.mark.campaign, pytest.mark.usefixtures("trusted")]
CURRICULA = Path(__file__).parents[2] / "curricula"
SEEDS = range(1, 5)
KILL_SECONDS = 10.0  # between two deaths of actors
CAMPAIGN_SECONDS = 300.0
TOTAL_STEPS = 20_000_000  # of the curriculum
IN_STEP = ActorSettings(number=4)
FREE = ActorSettings(number=4, lag=2, correction="vtrace")


def steps_to_goal(actors: ActorSettings, seed: int) -> int:
    """Steps that `goto.yaml` takes."""
    config = load_curriculum(CURRICULA / "goto.yaml", (f"seed={seed}",)).config
    train = replace(config.train, actors=actors)
    made = TrainingPlan(seed, config.env, config.lessons, train, config.forgetting)
    return learn(Training(made)).steps


def test_goto_is_learned_at_lag_2_by_a_learner_that_is_slower_than_its_actors() -> None:
    """The worst case: each rollout is old before it is learned from. Prints what that costs."""
    steps = [[steps_to_goal(actors, seed) for actors in (IN_STEP, FREE)] for seed in SEEDS]
    ratios = np.array([free / in_step for in_step, free in steps])
    mean = np.exp(np.log(ratios).mean())
    print(f"steps in step and at lag 2: {steps}; ratios {ratios.round(2)}: {mean:.2f}")  # noqa: T201
    assert all(free < TOTAL_STEPS for _, free in steps)


def plan_in(world: str, win: float, rows: int, actors: ActorSettings, **train: Any) -> TrainingPlan:
    """A training in a world of `hiccuping_world`."""
    env = GymnasiumSettings(
        id=world, module="hiccuping_world", win=WinRule(return_above=win), num_envs=rows
    )
    sizes = {"algo": "hybrid_ppo", "n_steps": 64, "network": NetworkSettings(layers=(16,))}
    settings = TrainSettings(**sizes, actors=actors, **train)
    return TrainingPlan(1, env, (Lesson(name="one", targets={"task": 1.0}),), settings)


def steps_per_second(actors: ActorSettings) -> float:
    """Of a training in a world that hangs for half a second in 5 % of its rollouts."""
    sizes = {"total_steps": 40 * 8 * 64, "batch_size": 256, "n_epochs": 2}
    training = Training(plan_in("Hiccuping-v0", 14.0, 8, actors, **sizes))
    first: list[tuple[float, int]] = []

    def begun() -> bool:
        if not first and training.model.num_timesteps >= 4 * 8 * 64:  # all actors play by now
            first.append((monotonic(), training.model.num_timesteps))
        return False

    learn(training, should_stop=begun)
    ((began, steps),) = first
    return (training.model.num_timesteps - steps) / (monotonic() - began)


def test_free_actors_of_hiccuping_worlds_make_1_4_times_the_steps_of_those_in_step() -> None:
    in_step, free = (steps_per_second(replace(actors, number=8)) for actors in (IN_STEP, FREE))
    print(f"steps a second: {in_step:.0f} in step, {free:.0f} free")  # noqa: T201
    assert free >= 1.4 * in_step


class Played(NamedTuple):
    """What came of actors that played for a while."""

    blocks: list[str]  # sha256 of what each that was learned from holds, in order
    blocks_per_second: float
    wins: list[bool]  # of the episodes that counted
    restarts: int
    dropped: int  # episodes


def played(
    monkeypatch: pytest.MonkeyPatch, seconds: float, *, kill: Callable[[LocalActors], None]
) -> Played:
    """Eight actors of two rows each, from when all play; `kill` is called every KILL_SECONDS."""
    sizes = {"total_steps": 10**9, "batch_size": 512, "n_epochs": 1}
    made = plan_in("Uneven-v0", 0.5, 16, replace(FREE, number=8), **sizes)
    group, record, blocks, times = LocalActors(), Record(), [], []
    fill = rollouts.fill

    def noted(model: Any, taken: list[Block]) -> None:
        now = monotonic()
        times.extend([now] * len(taken))
        blocks.extend(sha256(one.columns["observations"].tobytes()).hexdigest() for one in taken)
        fill(model, taken)

    monkeypatch.setattr(rollouts, "fill", noted)
    training: Any = Training(made, group=group)
    deaths = [0]

    def over() -> bool:
        if not times:
            return False
        passed = monotonic() - times[0]
        if passed > KILL_SECONDS * (deaths[0] + 1):
            deaths[0] += 1
            kill(group)
        return passed > seconds

    learn(training, record, should_stop=over, links=RunLinks(record=record))
    counts = training.env.world.counts
    head, *lines = [line.split(",") for line in record.files["episodes.csv"].splitlines()]
    wins = [line[head.index("won")] == "1" for line in lines]
    rate = len(blocks) / (times[-1] - times[0])
    return Played(blocks, rate, wins, counts.restarts, counts.episodes_dropped)


def test_actors_killed_every_10_s_are_missed_little_and_no_block_comes_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prints win rates, which so few deaths hardly move: `test_free_actors.py` has many more."""
    random = np.random.default_rng(1)

    def kill_one(group: LocalActors) -> None:
        pids = group.pids
        os.kill(pids[int(random.choice(sorted(pids)))], signal.SIGKILL)

    calm = played(monkeypatch, 60.0, kill=lambda _: None)
    killed = played(monkeypatch, CAMPAIGN_SECONDS, kill=kill_one)
    for name, one in ("undisturbed", calm), ("killed", killed):
        print(  # noqa: T201
            f"{name}: {one.blocks_per_second:.1f} blocks a second, {one.restarts} deaths, "
            f"{one.dropped} episodes dropped, {np.mean(one.wins):.4f} of {len(one.wins)} won"
        )
    assert killed.restarts >= 0.9 * CAMPAIGN_SECONDS / KILL_SECONDS - 1
    assert len(set(killed.blocks)) == len(killed.blocks)
    assert killed.blocks_per_second >= 0.8 * calm.blocks_per_second
