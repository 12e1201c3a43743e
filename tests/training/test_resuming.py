"""A training that goes on from a checkpoint ends as if it had never been broken off."""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch as th
from tiny_training import Keeper, Sink, plan

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checkpoint import pack, state_sha256, unpack
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver
from aimbot_lab.training.settings import Cosine, Linear, SamplesSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ObservationSettings

RUNNING = NetworkSettings(layers=(16,), scaling="running")
EVERYTHING = {
    "algo": "hybrid_ppo",
    "aim": "hybrid",
    "masks": True,
    "objective": "per_branch",
    "dual_clip": 3.0,
    "reward_scale": "running",
    "network": RUNNING,
    "learning_rate": Linear(start=1e-3, end=1e-4),
    "clip_range": Cosine(start=0.3, end=0.1),
    "ent_coef": Linear(start=0.03, end=0.0),
}
VARIANTS: Mapping[str, dict[str, Any]] = {
    "ppo": {},
    "dqn, buffer overwritten": {
        "algo": "dqn",
        "options": {
            "exploration_fraction": 0.9,
            "target_update_interval": 48 * 16,
            "buffer_size": 1300,
        },
    },
    "qrdqn, running statistics": {"algo": "qrdqn", "network": RUNNING, "reward_scale": "running"},
    "hybrid_ppo, memory and all": {
        **EVERYTHING,
        "target": "attention",
        "network": NetworkSettings(
            layers=(8,),
            scaling="running",
            units=UnitsSettings(layers=(8,)),
            memory=MemorySettings(size=8),
        ),
    },
    "hybrid_ppo, kept rollouts": {
        **EVERYTHING,
        "samples": SamplesSettings(keep=3),
        "network": NetworkSettings(
            layers=(8,), scaling="running", memory=MemorySettings(size=8, burn_in=16)
        ),
    },
    "hybrid_ppo, memory in kernels": {
        **EVERYTHING,
        "engine": "fused",
        "network": NetworkSettings(
            layers=(8,), scalars=(9,), scaling="running", memory=MemorySettings(size=7)
        ),
    },
}


class Ended(NamedTuple):
    sha256: str
    steps: int
    logged: list[tuple[int, str]]
    best: str


@pytest.fixture(autouse=True)
def _checkpoints_at_every_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)


def variant(name: str) -> TrainingPlan:
    given = {"algo": name, "total_steps": 2048, **VARIANTS[name]}
    made = plan(given.pop("algo"), **given)
    if made.train.target != "none":
        units = ObservationSettings(units=True)
        made = replace(made, env=replace(made.env, observation=units, bystanders=8))
    easy = CompletionCriteria(threshold=0.02, min_lesson_length=5)
    first = Lesson(name="easy", targets={"goto": 1.0}, completion_criteria=easy)
    return TrainingPlan(made.seed, made.env, (first, *made.lessons), made.train)


def learn(training: Training, keeper: Keeper | None = None) -> Ended:
    sink = Sink()
    outcome = training.learn(
        sink, SilentObserver(), lambda: False, links=RunLinks(checkpoints=keeper)
    )
    timeless = [
        (step, repr({key: v for key, v in metrics.items() if key != names.STEPS_PER_SECOND}))
        for step, metrics in sink.logged
    ]
    best = training._best
    return Ended(outcome.state_sha256, outcome.steps, timeless, repr((best.about, best.weights)))


def disturb() -> None:
    """Whatever another process would have otherwise."""
    random.seed(99)
    np.random.seed(99)
    th.manual_seed(99)


@cache
def unbroken(name: str) -> tuple[Ended, Keeper]:
    """What a variant ends in, with its checkpoints."""
    keeper = Keeper()
    return learn(Training(variant(name)), keeper), keeper


@pytest.mark.parametrize("name", VARIANTS)
def test_from_any_rollout_the_training_ends_as_the_unbroken_one(name: str) -> None:
    ended, keeper = unbroken(name)
    steps = [checkpoint.step for checkpoint in keeper.checkpoints]
    assert steps == list(range(0, 2560, 512))  # and of its end, where the goal is not reached
    for number in (0, 3) if name == "ppo" else (3,):
        checkpoint = keeper.checkpoints[number]
        training = keeper.resumed(Training(variant(name)), checkpoint)
        disturb()
        resumed = learn(training)
        rest = [line for line in ended.logged if line[0] > checkpoint.step]
        assert resumed == ended._replace(logged=rest)


def test_from_its_last_rollout_a_training_reaches_its_goal_as_the_unbroken_one() -> None:
    """No checkpoint is kept of its end."""
    easy = CompletionCriteria(threshold=0.002, min_lesson_length=40)
    lesson = Lesson(name="easy", targets={"goto": 1.0}, completion_criteria=easy)
    made = replace(plan("ppo"), lessons=(lesson,))
    keeper = Keeper()
    ended = learn(Training(made), keeper)
    last = keeper.checkpoints[-1]
    assert 0 < last.step == ended.steps - 512
    training = Training(made)
    training.resume(last.state)
    rest = [line for line in ended.logged if line[0] > last.step]
    assert learn(training) == ended._replace(logged=rest)


@pytest.mark.parametrize("part", ["env", "progress", "model", "random", "report"])
def test_every_part_of_a_checkpoint_is_needed(part: str) -> None:
    # The kernels draw by row and step; the global generators are torch's.
    name = "ppo" if part == "random" else "hybrid_ppo, memory in kernels"
    ended, keeper = unbroken(name)
    early, late = (unpack(keeper.checkpoints[index].state) for index in (1, -2))
    training = Training(variant(name))
    training.resume(pack({**late, part: early[part]}))
    rest = [line for line in ended.logged if line[0] > keeper.checkpoints[-2].step]
    assert learn(training) != ended._replace(logged=rest)


def test_the_best_agent_so_far_is_kept_until_there_is_a_better_one() -> None:
    made = variant("ppo")
    state = unpack(unbroken("ppo")[1].checkpoints[-1].state)
    for rank, expected in (((9, 1.0), {"step": -7}), ((-1, 0.0), None)):
        state["best"].update(rank=rank, about={"step": -7})
        training = Training(made)
        training.resume(pack(state))
        learn(training)
        assert (training._best.about == expected) == (expected is not None)


def test_the_best_agent_is_looked_for_as_seldom_as_before() -> None:
    state = unpack(unbroken("ppo")[1].checkpoints[1].state)
    state["best_offers"]["last_step"] = 10_000
    state["best"].update(rank=(-1, 0.0), about={})
    training = Training(variant("ppo"))
    training.resume(pack(state))
    learn(training)
    assert training._best.about["step"] == 2048


def test_a_stop_forgets_the_rollout_that_it_broke_off() -> None:
    made, keeper, sink = variant("ppo"), Keeper(), Sink()
    stopped = Training(made)
    calls = iter(range(1000))
    outcome = stopped.learn(sink, SilentObserver(), lambda: next(calls) > 75, links=keeper.links)
    assert outcome.stopped
    assert outcome.steps == keeper.checkpoints[-1].step == 1024
    assert max(step for step, _ in sink.logged) == 1024
    kept = unpack(keeper.checkpoints[-1].state)
    assert outcome.state_sha256 == state_sha256(stopped.model, kept["progress"])
    training = Training(made)
    training.resume(keeper.checkpoints[-1].state)
    assert learn(training).sha256 == unbroken("ppo")[0].sha256


CONSTANT: Mapping[str, dict[str, Any]] = {
    "ppo": {"network": RUNNING, "reward_scale": "running"},
    "dqn": {"options": {"exploration_initial_eps": 0.05, "buffer_size": 5000}, "network": RUNNING},
    "hybrid_ppo": {"aim": "hybrid", "masks": True, "network": RUNNING, "engine": "fused"},
}


@pytest.mark.parametrize("algo", CONSTANT)
def test_more_steps_after_the_end_go_on_there_and_bring_what_a_longer_training_has(
    algo: str,
) -> None:
    goal = CompletionCriteria(threshold=0.99, min_lesson_length=5)
    lesson = Lesson(name="hard", targets={"goto": 1.0}, completion_criteria=goal)
    short, longer = (
        replace(plan(algo, total_steps=steps, **CONSTANT[algo]), lessons=(lesson,))
        for steps in (1024, 2048)
    )
    keeper = Keeper()
    ended, whole = learn(Training(short), keeper), learn(Training(longer))
    last = keeper.checkpoints[-1]
    assert last.step == ended.steps == 1024
    training = Training(longer)
    training.resume(last.state, keeper.parts.__getitem__)
    disturb()
    extended = learn(training)
    assert (extended.sha256, extended.steps) == (whole.sha256, whole.steps)
    assert all(step > ended.steps for step, _ in extended.logged)


def test_what_schedules_jump_to_with_more_steps_is_told() -> None:
    def made(steps: int, **given: Any) -> TrainingPlan:
        return plan("ppo", total_steps=steps, **given)

    rate, keeper = Linear(start=1e-3, end=1e-4), Keeper()
    learn(Training(made(1024, learning_rate=rate)), keeper)
    training = Training(made(4096, learning_rate=rate, clip_range=0.2))
    assert training.schedule_jumps == {}
    training.resume(keeper.checkpoints[1].state)
    assert training.schedule_jumps == {
        "train.learning_rate": (pytest.approx(5.5e-4), pytest.approx(8.875e-4))
    }
    again = Training(made(1024, learning_rate=rate))
    again.resume(keeper.checkpoints[1].state)
    assert again.schedule_jumps == {}


def test_a_larger_replay_buffer_takes_what_the_smaller_one_held() -> None:
    keeper = Keeper()
    learn(Training(plan("dqn", total_steps=1024, options={"buffer_size": 640})), keeper)
    training = Training(plan("dqn", total_steps=2048, options={"buffer_size": 1280}))
    training.resume(keeper.checkpoints[-1].state, keeper.parts.__getitem__)
    buffer = training.model.replay_buffer
    assert buffer.pos == (keeper.checkpoints[-1].step // 16) % buffer.buffer_size
    assert learn(training).steps == 2048


def test_seconds_go_on_where_they_were() -> None:
    state = unpack(unbroken("ppo")[1].checkpoints[-1].state)
    assert 0 < state["report"]["seconds"] < 1000.0
    state["report"]["seconds"] += 1000.0
    training = Training(variant("ppo"))
    training.resume(pack(state))
    again = training.learn(Sink(), SilentObserver(), lambda: False)
    assert again.seconds > 1000.0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: b"",
        lambda state: pack({**unpack(state), "model": {}}),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(spoil: Any) -> None:
    first = unbroken("ppo")[1].checkpoints[0]
    with pytest.raises(LabError, match="the checkpoint does not fit this training: "):
        Training(variant("ppo")).resume(spoil(first.state))
    with pytest.raises(LabError, match="does not fit"):
        Training(plan("dqn")).resume(first.state)


def test_rollouts_that_are_over_in_no_time_share_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1e-9)
    keeper = Keeper()
    learn(Training(plan("ppo", total_steps=2048)), keeper)
    assert [checkpoint.step for checkpoint in keeper.checkpoints] == [0, 2048]  # begin and end
    often = Keeper()
    learn(Training(plan("ppo", total_steps=2048, checkpoint_every=1000)), often)
    assert [checkpoint.step for checkpoint in often.checkpoints] == [0, 1024, 2048]
