"""What actors bring and cost, measured: `make actors`."""

import os
from dataclasses import replace
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from test_shared_training import Record

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.training.actors.settings import ActorSettings
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.plan import TrainingPlan
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule

LONG = "AIMBOT_LAB_LONG_TESTS"
pytestmark = pytest.mark.skipif(LONG not in os.environ, reason=f"takes long; set {LONG}=1")
CURRICULA = Path(__file__).parents[2] / "curricula"
SEEDS = range(1, 4)
TOTAL_STEPS = 20_000_000  # of the curriculum
IN_STEP = ActorSettings(number=4)
FREE = ActorSettings(number=4, lag=2, correction="vtrace")


def steps_to_goal(actors: ActorSettings, seed: int) -> int:
    """Steps that `goto.yaml` takes."""
    config = load_curriculum(CURRICULA / "goto.yaml", (f"seed={seed}",)).config
    train = replace(config.train, actors=actors)
    made = TrainingPlan(seed, config.env, config.lessons, train, config.forgetting)
    return Training(made).learn(Record(), SilentObserver(), lambda: False).steps


def test_goto_is_learned_at_lag_2_by_a_learner_that_is_slower_than_its_actors() -> None:
    """The worst case: each rollout is as old as the lag allows. Prints what that costs."""
    steps = [[steps_to_goal(actors, seed) for actors in (IN_STEP, FREE)] for seed in SEEDS]
    ratios = np.array([free / in_step for in_step, free in steps])
    print(f"steps in step and at lag 2: {steps}; ratios {ratios.round(2)}")  # noqa: T201
    assert all(free < TOTAL_STEPS for _, free in steps)


def steps_per_second(actors: ActorSettings) -> float:
    """Of a training in a world that hangs for half a second in 5 % of its rollouts."""
    env = GymnasiumSettings(
        id="Hiccuping-v0", module="hiccuping_world", win=WinRule(return_above=14.0), num_envs=8
    )
    train = TrainSettings(
        algo="hybrid_ppo",
        total_steps=40 * 8 * 64,
        n_steps=64,
        batch_size=256,
        n_epochs=2,
        network=NetworkSettings(layers=(16,)),
        actors=actors,
    )
    made = TrainingPlan(1, env, (Lesson(name="one", targets={"task": 1.0}),), train)
    training = Training(made)
    first: list[tuple[float, int]] = []

    def begun() -> bool:
        if not first and training.model.num_timesteps >= 4 * 8 * 64:  # all actors play by now
            first.append((monotonic(), training.model.num_timesteps))
        return False

    training.learn(Record(), SilentObserver(), begun)
    ((began, steps),) = first
    return (training.model.num_timesteps - steps) / (monotonic() - began)


def test_free_actors_of_hiccuping_worlds_make_1_4_times_the_steps_of_those_in_step() -> None:
    in_step, free = map(
        steps_per_second,
        (ActorSettings(number=8), ActorSettings(number=8, lag=2, correction="vtrace")),
    )
    print(f"steps a second: {in_step:.0f} in step, {free:.0f} free")  # noqa: T201
    assert free >= 1.4 * in_step
