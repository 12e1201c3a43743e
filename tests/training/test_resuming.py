"""A training that goes on from a checkpoint ends as if it had never been broken off."""

import math
import random
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch as th
from tiny_training import Keeper, Sink, learn, plan

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checkpoint import pack, state_sha256, unpack
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks
from aimbot_lab.training.settings import Cosine, Linear, SamplesSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ObservationSettings

RUNNING = NetworkSettings(layers=(16,), scaling="running")
EVERYTHING: dict[str, Any] = {
    **{"algo": "hybrid_ppo", "aim": "hybrid", "masks": True, "objective": "per_branch"},
    **{"dual_clip": 3.0, "reward_scale": "running", "network": RUNNING},
    "learning_rate": Linear(start=1e-3, end=1e-4),
    "clip_range": Cosine(start=0.3, end=0.1),
    "ent_coef": Linear(start=0.03, end=0.0),
}


def small(memory: MemorySettings, **more: Any) -> NetworkSettings:
    return NetworkSettings(layers=(8,), scaling="running", memory=memory, **more)


OVERWRITTEN = {"exploration_fraction": 0.9, "target_update_interval": 48 * 16, "buffer_size": 1300}
VARIANTS: Mapping[str, dict[str, Any]] = {
    "ppo": {},
    "dqn, buffer overwritten": {"algo": "dqn", "options": OVERWRITTEN},
    "qrdqn, running statistics": {"algo": "qrdqn", "network": RUNNING, "reward_scale": "running"},
    "hybrid_ppo, memory and all": EVERYTHING
    | {"target": "attention"}
    | {"network": small(MemorySettings(size=8), units=UnitsSettings(layers=(8,)))},
    "hybrid_ppo, kept rollouts": EVERYTHING
    | {"samples": SamplesSettings(keep=3)}
    | {"network": small(MemorySettings(size=8, burn_in=16))},
    "hybrid_ppo, memory in kernels": EVERYTHING
    | {"engine": "fused", "network": small(MemorySettings(size=7), scalars=(9,))},
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


def learned(training: Training, keeper: Keeper | None = None) -> Ended:
    sink = Sink()
    outcome = learn(training, sink, links=RunLinks(checkpoints=keeper))
    timeless = [
        (step, repr({key: v for key, v in metrics.items() if key != names.STEPS_PER_SECOND}))
        for step, metrics in sink.logged
    ]
    best = training._best
    return Ended(outcome.state_sha256, outcome.steps, timeless, repr((best.about, best.weights)))


def rest_of(ended: Ended, checkpoint: Checkpoint) -> Ended:
    """What is to come from `checkpoint` on."""
    return ended._replace(logged=[line for line in ended.logged if line[0] > checkpoint.step])


def changed(state: bytes, name: str = "ppo", **parts: Any) -> Training:
    """The training that a variant's `state` with other parts gives."""
    training = Training(variant(name))
    training.resume(pack({**unpack(state), **parts}))
    return training


def disturb() -> None:
    """Whatever another process would have otherwise."""
    random.seed(99)
    np.random.seed(99)
    th.manual_seed(99)


@cache
def unbroken(name: str) -> tuple[Ended, Keeper]:
    """What a variant ends in, with its checkpoints."""
    keeper = Keeper()
    return learned(Training(variant(name)), keeper), keeper


@pytest.mark.parametrize("name", VARIANTS)
def test_from_any_rollout_the_training_ends_as_the_unbroken_one(name: str) -> None:
    ended, keeper = unbroken(name)
    steps = [checkpoint.step for checkpoint in keeper.checkpoints]
    assert steps == list(range(0, 2560, 512))  # and of its end, where the goal is not reached
    for number in (0, 3) if name == "ppo" else (3,):
        checkpoint = keeper.checkpoints[number]
        training = keeper.resumed(Training(variant(name)), checkpoint)
        disturb()
        assert learned(training) == rest_of(ended, checkpoint)


def test_from_its_last_rollout_a_training_reaches_its_goal_as_the_unbroken_one() -> None:
    """No checkpoint is kept of its end."""
    easy = CompletionCriteria(threshold=0.002, min_lesson_length=40)
    lesson = Lesson(name="easy", targets={"goto": 1.0}, completion_criteria=easy)
    made = replace(plan("ppo"), lessons=(lesson,))
    keeper = Keeper()
    ended = learned(Training(made), keeper)
    last = keeper.checkpoints[-1]
    assert 0 < last.step == ended.steps - 512
    assert learned(keeper.resumed(Training(made), last)) == rest_of(ended, last)


@pytest.mark.parametrize("part", ["env", "progress", "model", "random", "report"])
def test_every_part_of_a_checkpoint_is_needed(part: str) -> None:
    # The kernels draw by row and step; the global generators are torch's.
    name = "ppo" if part == "random" else "hybrid_ppo, memory in kernels"
    ended, keeper = unbroken(name)
    early, late = (keeper.checkpoints[index] for index in (1, -2))
    training = changed(late.state, name, **{part: unpack(early.state)[part]})
    assert learned(training) != rest_of(ended, late)


def test_the_best_agent_so_far_is_kept_until_there_is_a_better_one_and_seldom_looked_for() -> None:
    _, early, *_, last = unbroken("ppo")[1].checkpoints
    best = unpack(last.state)["best"]
    for rank, is_kept in (((9, 1.0), True), ((-1, 0.0), False)):
        training = changed(last.state, best={**best, "rank": rank, "about": {"step": -7}})
        learned(training)
        assert (training._best.about == {"step": -7}) == is_kept
    state = unpack(early.state)
    state["best_offers"]["last_step"] = 10_000
    state["best"].update(rank=(-1, 0.0), about={})
    training = changed(early.state, **state)
    learned(training)
    assert training._best.about["step"] == 2048


def test_a_stop_forgets_the_rollout_that_it_broke_off() -> None:
    keeper, sink, calls = Keeper(), Sink(), iter(range(1000))
    stopped = Training(variant("ppo"))
    outcome = learn(stopped, sink, should_stop=lambda: next(calls) > 75, links=keeper.links)
    assert outcome.stopped
    assert outcome.steps == keeper.checkpoints[-1].step == 1024
    assert max(step for step, _ in sink.logged) == 1024
    kept = unpack(keeper.checkpoints[-1].state)
    assert outcome.state_sha256 == state_sha256(stopped.model, kept["progress"])
    resumed = keeper.resumed(Training(variant("ppo")), keeper.checkpoints[-1])
    assert learned(resumed).sha256 == unbroken("ppo")[0].sha256


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
    ended, whole = learned(Training(short), keeper), learned(Training(longer))
    last = keeper.checkpoints[-1]
    assert last.step == ended.steps == 1024
    training = keeper.resumed(Training(longer), last)
    disturb()
    extended = learned(training)
    assert (extended.sha256, extended.steps) == (whole.sha256, whole.steps)
    assert all(step > ended.steps for step, _ in extended.logged)


def test_what_schedules_jump_to_with_more_steps_is_told() -> None:
    given, keeper = {"learning_rate": Linear(start=1e-3, end=1e-4)}, Keeper()
    learned(Training(plan("ppo", total_steps=1024, **given)), keeper)
    jump = {"train.learning_rate": (pytest.approx(5.5e-4), pytest.approx(8.875e-4))}
    for steps, jumps in ((4096, jump), (1024, {})):
        training = Training(plan("ppo", total_steps=steps, clip_range=0.2, **given))
        assert training.schedule_jumps == {}
        assert keeper.resumed(training, keeper.checkpoints[1]).schedule_jumps == jumps


def test_a_larger_replay_buffer_takes_what_the_smaller_one_held() -> None:
    keeper = Keeper()
    small, larger = (
        Training(plan("dqn", total_steps=steps, options={"buffer_size": size}))
        for steps, size in ((1024, 640), (2048, 1280))
    )
    learned(small, keeper)
    training = keeper.resumed(larger, keeper.checkpoints[-1])
    buffer = training.model.replay_buffer
    assert buffer.pos == (keeper.checkpoints[-1].step // 16) % buffer.buffer_size
    assert learned(training).steps == 2048


def test_seconds_go_on_where_they_were() -> None:
    last = unbroken("ppo")[1].checkpoints[-1].state
    report = unpack(last)["report"]
    assert 0 < report["seconds"] < 1000.0
    training = changed(last, report={**report, "seconds": report["seconds"] + 1000.0})
    assert learn(training).seconds > 1000.0


def test_a_checkpoint_of_something_else_is_refused() -> None:
    state = unbroken("ppo")[1].checkpoints[0].state
    for spoilt in (b"", pack({**unpack(state), "model": {}})):
        with pytest.raises(LabError, match="the checkpoint does not fit this training: "):
            Training(variant("ppo")).resume(spoilt)
    with pytest.raises(LabError, match="does not fit"):
        Training(plan("dqn")).resume(state)
    with pytest.raises(LabError, match=r"it has format 2, this version reads 3$"):
        changed(state, format=2)


def test_rollouts_that_are_over_in_no_time_share_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1e-9)
    for given, steps in (({}, [0, 2048]), ({"checkpoint_every": 1000}, [0, 1024, 2048])):
        learned(Training(plan("ppo", total_steps=2048, **given)), keeper := Keeper())
        assert [checkpoint.step for checkpoint in keeper.checkpoints] == steps


ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2],  # not contiguous
    np.zeros((3, 0)),
    np.array(1.5),
    np.array([2**63], np.uint64),
    np.array([True, False]),
    np.array([-1, 7], np.int8),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_and_tensors_keep_shape_kind_and_bits(array: np.ndarray) -> None:
    back = unpack(pack([array]))[0]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)
    back[...] = 0  # it may be written to
    if array.dtype != np.uint64:
        tensor = th.from_numpy(array.copy())
        again = unpack(pack({"a": tensor}))["a"]
        assert again.dtype == tensor.dtype
        assert th.equal(again, tensor)


def test_keys_tuples_numbers_and_texts_keep_their_kind() -> None:
    tree = {
        "state": {0: {"step": th.tensor(3.0)}, 1: {}},
        "betas": (0.9, 0.999),
        "big": 2**127,
        "none": None,
        "$tuple": "a key like a mark",
        "texts": np.array(["a=1", "b=2"]),
        "number": np.float32(0.1),
    }
    back = unpack(pack(OrderedDict(tree)))
    assert list(back) == list(tree)
    assert list(back["state"]) == [0, 1]
    assert back["betas"] == (0.9, 0.999)
    assert back["big"] == 2**127
    assert back["none"] is None
    assert back["$tuple"] == "a key like a mark"
    assert back["texts"].tolist() == ["a=1", "b=2"]
    assert back["number"] == np.float32(0.1)
    assert isinstance(back["number"], np.float32)


def test_plain_values_come_back_to_the_bit() -> None:
    numbers = [math.nan, -0.0, math.inf, -math.inf, 5e-324, -(2**70), True, None]
    tree = {"": (numbers, ()), -7: [{}, "\0 é\ud800", {0: ((1,), [])}], "a": {"a": {"a": [[]]}}}
    # By text, because NaN is not equal to itself.
    assert repr(unpack(pack(tree))) == repr(tree)


def test_what_would_need_a_pickle_is_refused() -> None:
    with pytest.raises(TypeError, match="can't be packed: function"):
        pack({"schedule": lambda: 0})


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x04.", pack([1])[:-3], pack([1, {}])[:20], b"{" * 100_000],
    ids=["nothing", "pickle", "end missing", "beginning", "noise"],
)
def test_bytes_of_anything_else_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no packed tree"):
        unpack(data)
