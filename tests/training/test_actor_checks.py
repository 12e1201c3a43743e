"""What `train.actors` may not be, actors that hang, and the correction for their lag."""

import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch as th
from actor_groups import OwnActors, ScriptedActors, block
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from test_shared_training import plan

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.training.actors.actor import Answer
from aimbot_lab.training.actors.block import ActorCounts, BlockRequest
from aimbot_lab.training.actors.rollouts import actor_plans, patience_with, v_trace
from aimbot_lab.training.actors.supply import (
    LEAST_SECONDS,
    TIMES_THE_SLOWEST,
    FreeRunning,
    InStep,
    Patience,
)
from aimbot_lab.training.checks import check_sharing
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.unity.settings import UnitySettings

CURRICULUM = """\
name: tiny
env: {num_envs: 64}
lessons: [{name: one, targets: {goto: 1}}]
train:
  algo: hybrid_ppo
  n_steps: 32
  batch_size: 1024
  actors: {number: 4}
"""
MEMORY = "  network: {memory: {size: 8, sequence_length: 8}}\n  actors"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("number: 4}", "number: 5}", "8:20: train.actors.number: must divide env.num_envs, 64"),
        ("number: 4}", "number: 4, rows: 8}", "8:11: train.actors: number * rows = 32"),
        ("number: 4}", "number: 4, lag: 2}", "8:28: train.actors.lag: must be at most 1"),
        ("number: 4}", "number: 4, lag: 1, preload: 3}", "train.actors.preload: must be 4 to 8"),
        ("number: 4}", "number: 4, preload: 4}", "train.actors.preload: has no effect without a"),
        ("hybrid_ppo", "ppo", "train.actors: has no effect with ppo: leave it out"),
        ("  actors", "  samples: {keep: 2}\n  actors", "train.samples.keep: must be 1 with actors"),
        ("  actors", "  reward_scale: running\n  actors", "must be a number with actors"),
        ("  actors", MEMORY, "train.actors: needs a network without memory"),
    ],
)
def test_what_actors_can_not_be_is_refused_in_a_line_with_its_place(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(CURRICULUM.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path)
    (line,) = str(caught.value).splitlines()
    assert f"{path}:" in line
    assert told in line


def test_actors_that_can_play_are_let_through(tmp_path: Path) -> None:
    given = {"number": 4, "rows": 16, "lag": 2, "correction": "vtrace", "pool": 3, "preload": 12}
    path = tmp_path / "tiny.yaml"
    path.write_text(CURRICULUM.replace("{number: 4}", json.dumps(given)), encoding="utf-8")
    assert load_curriculum(path).config.train.actors == ActorSettings(**given)


def test_a_plan_of_ones_own_is_checked_as_a_file_is_and_actors_feed_one_learner() -> None:
    with pytest.raises(ConfigurationError, match=r"train\.actors\.number: must divide"):
        Training(plan(actors=ActorSettings(number=5)), group=OwnActors())
    with pytest.raises(ConfigurationError, match="has no effect with ppo"):
        Training(plan(algo="ppo", engine="auto", actors=ActorSettings(number=2)))
    with pytest.raises(ConfigurationError, match="actors feed one learner"):
        check_sharing(plan(actors=ActorSettings(number=2)), 2)


FREE = ActorSettings(number=4, lag=2, correction="vtrace")


class Hanging(ScriptedActors):
    """Actors that play at once, but for the second block of actor 1, which never comes."""

    def __init__(self, actors: ActorSettings) -> None:
        super().__init__(lambda plan, order: block(plan.number, order.version))
        self._hanging = False
        self.all = actor_plans(plan(actors=actors))
        for one in self.all:
            self.start(one)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        super().ask(actor, what, *given)
        mine = [number for number, _ in self.orders if number == 1]
        if actor == 1 and len(mine) == 2:
            self._asked.pop()
            self._hanging = True

    def answers(self, seconds: float) -> Sequence[Answer]:
        if self._hanging and self.ended:
            self._hanging = False
            return [Answer(1, is_lost=True)]
        return super().answers(seconds)


def clock_of(step: float) -> Callable[[], float]:
    """A clock that is `step` seconds later each time that it is read."""
    ticks = count()
    return lambda: step * next(ticks)


def order(version: int) -> BlockRequest:
    return BlockRequest(version, b"weights", 0, (), 1)


class Clock:
    """A clock that is set; `patience` looks at it each second."""

    def __init__(self, **given: Any) -> None:
        self.seconds = 0.0
        self.patience = Patience(clock=lambda: self.seconds, **given)

    def go_on(self, seconds: float) -> dict[int, float]:
        """Who hangs after so many."""
        for _ in range(round(seconds)):
            self.seconds += 1.0
            hanging = self.patience.hanging()
        return hanging


def test_nobody_hangs_in_a_first_block_or_when_suspended_and_who_is_forgotten_begins_anew() -> None:
    clock = Clock()
    patience = clock.patience
    patience.asked(0)
    assert clock.go_on(1000) == {}
    patience.answered(0)
    patience.forget(0)
    patience.asked(0)
    assert clock.go_on(20_000) == {}
    patience.forget(0)
    patience.answered(0)  # a late one
    suspended = Clock()
    for _ in range(2):
        suspended.patience.asked(0)
        suspended.patience.answered(0)
    suspended.patience.asked(0)
    suspended.seconds += 10_000.0
    assert suspended.go_on(1.0) == {}


@pytest.mark.parametrize(
    ("block_took", "program", "limit"),
    [(1.0, 0.0, LEAST_SECONDS), (60.0, 0.0, TIMES_THE_SLOWEST * 60.0), (1.0, 300.0, 900.0)],
)
def test_who_hangs_takes_far_longer_than_any_block_so_far(
    block_took: float, program: float, limit: float
) -> None:
    clock = Clock(program_seconds=program)
    for actor in range(2):
        clock.patience.asked(actor)
    clock.go_on(block_took)
    for actor in range(2):
        clock.patience.answered(actor)
    clock.patience.asked(1)
    assert clock.go_on(limit) == {}
    clock.patience.asked(0)
    assert clock.go_on(1.0) == {1: limit + 1.0}


def test_a_build_that_may_be_silent_makes_more_patient() -> None:
    unity, arena = UnitySettings(num_envs=4, timeout_wait=300.0), ArenaSettings(num_envs=4)
    assert [patience_with(one)._least for one in (unity, arena)] == [900.0, LEAST_SECONDS]


def test_with_a_lag_an_actor_that_hangs_is_ended_and_begins_again() -> None:
    group, counts = Hanging(FREE), ActorCounts()
    running = FreeRunning(group, group.all, FREE, counts, Patience(clock=clock_of(1.0)))
    version = 0
    while counts.restarts == 0:
        assert version < 10_000
        running.take(order(version), lambda: counts.restarts > 0)
        version += 1
    running.close()
    assert group.ended == [1]
    assert [life for number, life in group.lives if number == 1] == [0, 1]
    said = [one for one in counts.notices if "actor 1" in one]
    assert "has played nothing for" in said[0]
    assert "begins again" in said[1]


def test_who_hangs_is_found_though_others_answer_at_every_look() -> None:
    group, patience = Hanging(FREE), Patience(clock=clock_of(4.0))
    running = FreeRunning(group, group.all, FREE, ActorCounts(), patience)
    patience.asked(1)
    patience.answered(1)
    patience.asked(1)
    for _ in range(100):
        patience.asked(0)
        group.ask(0, "block", order(0))
        running._pool.take(0, 99)  # makes room
        running._look()
    assert group.ended == [1]


def test_in_step_an_actor_that_hangs_ends_the_run_with_a_way_on() -> None:
    group = Hanging(ActorSettings(number=4))
    supply = InStep(group, 4, ActorCounts(), Patience(clock=clock_of(1.0)))
    assert supply.take(order(0), lambda: False) is not None
    with pytest.raises(RunFailedError, match=r"actor 1 has played nothing for \d+ s: resume"):
        supply.take(order(1), lambda: False)


T, N = 24, 7


class Steps(NamedTuple):
    """Random ones."""

    rewards: Any  # [T, N]
    ends: Any  # [T, N]
    values: Any  # [T, N]
    last_values: Any  # [N]
    ratios: Any  # [T, N]


def random_steps(seed: int) -> Steps:
    random = np.random.default_rng(seed)
    rewards, values, log_ratios = random.normal(size=(3, T, N)).astype(np.float32)
    last = random.normal(size=N).astype(np.float32)
    return Steps(rewards, random.random((T, N)) < 0.1, values, last, np.exp(log_ratios))


@pytest.mark.parametrize("gae_lambda", [0.95, 0.0])
def test_with_equal_policies_it_is_gae(gae_lambda: float) -> None:
    steps, gamma = random_steps(0)._replace(ratios=np.ones((T, N), np.float32)), 0.97
    box = spaces.Box(-1.0, 1.0, (1,))
    gae = RolloutBuffer(T, box, box, gamma=gamma, gae_lambda=gae_lambda, n_envs=N)
    gae.rewards, gae.values = steps.rewards.copy(), steps.values.copy()
    gae.episode_starts[1:] = steps.ends[:-1]
    gae.compute_returns_and_advantage(th.from_numpy(steps.last_values), steps.ends[-1])
    found = v_trace(**steps._asdict(), gamma=gamma, gae_lambda=gae_lambda)
    np.testing.assert_allclose(found, gae.advantages, rtol=1e-4, atol=1e-5)


def test_three_steps_by_hand_with_ratios_above_and_below_the_cuts() -> None:
    columns = np.float32([[1.0, 2.0, -1.0], [0.5, 1.0, 2.0], [0.5, 3.0, 0.25]])[..., None]
    rewards, values, ratios = columns
    steps = Steps(rewards, np.zeros((3, 1), np.bool_), values, np.float32([4.0]), ratios)
    found = v_trace(**steps._asdict(), gamma=0.5, gae_lambda=1.0)
    # d = 1 + .5 - .5 = 1; 2 + 1 - 1 = 2; -1 + 2 - 2 = -1. rho = c = .5, 2, .25.
    third = 0.25 * -1.0  # v_3 - V_3
    second = 2.0 * 2.0 + 0.5 * 2.0 * third
    first = 0.5 * 1.0 + 0.5 * 0.5 * second
    np.testing.assert_allclose(found[:, 0], [first, second, third])


def test_the_targets_are_the_sum_of_the_definition() -> None:
    steps, gamma = random_steps(1), 0.9
    targets = steps.values + v_trace(**steps._asdict(), gamma=gamma, gae_lambda=1.0)
    following = np.vstack([steps.values[1:], steps.last_values[None]])
    cut = np.minimum(2.0, steps.ratios)
    delta = cut * (steps.rewards + gamma * ~steps.ends * following - steps.values)
    for start in range(T):
        weight, total = np.ones(N), steps.values[start].astype(np.float64)
        for t in range(start, T):
            total += weight * delta[t]
            weight = weight * gamma * cut[t] * ~steps.ends[t]
        np.testing.assert_allclose(targets[start], total, rtol=1e-4, atol=1e-5)


def test_nothing_crosses_an_episodes_end() -> None:
    steps, late = random_steps(2), np.float32(np.arange(T)[:, None] > 10)
    steps.ends[10] = True
    other = steps._replace(rewards=steps.rewards + 5 * late, values=steps.values - 3 * late)
    one, two = (v_trace(**each._asdict(), gamma=0.9, gae_lambda=0.9) for each in (steps, other))
    np.testing.assert_array_equal(one[:11], two[:11])
