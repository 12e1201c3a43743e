"""A training by self-play: snapshots, who is met, games, every part of a network, and breaks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import load
from tiny_training import Keeper, learn

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.experiment.runs.agents import log_agents
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.agents.agent_files import BestAgent
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.fused.actor import ActorStack
from aimbot_lab.training.networks.settings import MemorySettings, UnitsSettings
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.self_play.pool import RecentScores
from aimbot_lab.training.self_play.session import Standing, candidates, chances_of, drawn_line_up
from aimbot_lab.training.settings import (
    NetworkSettings,
    SamplesSettings,
    SelfPlaySettings,
    TrainingPlan,
    TrainSettings,
)
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import WORLDS

ROLLOUT = 12 * 16  # 8 matches and 4 mirrored ones, 16 steps
SELF_PLAY = SelfPlaySettings(save_steps=2 * ROLLOUT, swap_steps=ROLLOUT, at_once=2, window=3)
TRAIN = TrainSettings(
    **{"algo": "hybrid_ppo", "masks": True, "total_steps": 6 * ROLLOUT, "n_steps": 16},
    **{"batch_size": 96, "n_epochs": 1, "network": NetworkSettings(layers=(16,))},
)
SHORT = replace(TRAIN, total_steps=ROLLOUT)
FIRST = Lesson(
    name="first",
    targets={"still": 1.0},
    completion_criteria=CompletionCriteria(measure="progress", threshold=0.4, min_lesson_length=0),
)
SECOND = Lesson(name="second", targets={"self": 2.0, "reference": 1.0, "greedy": 1.0})


def duel(**given: Any) -> Any:
    return WORLDS["duel"].settings(num_envs=8, learner="home", time_limit=1.0, **given)


def plan(**changes: object) -> TrainingPlan:
    made = TrainingPlan(1, duel(), (FIRST, SECOND), TRAIN, self_play=SELF_PLAY)
    return replace(made, **changes)


def everything() -> TrainingPlan:
    network = NetworkSettings(
        **{"layers": (8,), "scaling": "running", "scalars": (8,)},
        **{
            "units": UnitsSettings(layers=(8,)),
            "memory": MemorySettings(size=6, sequence_length=8),
        },
    )
    train = replace(
        TRAIN,
        **{"total_steps": 4 * ROLLOUT, "aim": "hybrid", "objective": "per_branch"},
        **{"dual_clip": 3.0, "target": "attention", "network": network},
        samples=SamplesSettings(keep=2),
    )
    return plan(train=train, env=duel(observation={"units": True}), lessons=(SECOND,))


class Numbers:
    """Keeps the metrics that a training logs."""

    def __init__(self) -> None:
        self.logged: dict[int, dict[str, float]] = {}

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        self.logged.setdefault(step, {}).update(metrics)


def learned(training: Training, sink: Numbers | None = None, **links: object) -> Training:
    learn(training, sink, links=RunLinks(**links))
    return training


def session_of(training: Training) -> Any:
    assert training.self_play is not None
    return training.self_play


def same_arrays(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


@pytest.fixture(scope="module")
def sink() -> Numbers:
    return Numbers()


@pytest.fixture(scope="module")
def training(sink: Numbers) -> Training:
    """A training that has ended."""
    return learned(Training(plan()), sink)


def test_snapshots_are_taken_when_due_and_where_a_lesson_begins(training: Training) -> None:
    self_play = session_of(training)
    passed = training.progress.lesson_reports[0].ended_at_step
    assert passed is not None
    assert passed % ROLLOUT
    lesson = (passed // ROLLOUT + 1) * ROLLOUT
    # 0 and every second rollout, and one where the second lesson began.
    assert self_play.pool.state() == sorted({0, lesson, 2 * ROLLOUT, 4 * ROLLOUT})
    assert self_play.pool.snapshots[self_play.past_selves.reference].step == lesson
    first, last = self_play.pool.snapshots[0], self_play.pool.snapshots[-1]
    assert not same_arrays(first.weights, last.weights)


def test_a_lesson_ends_by_the_running_rating_that_ml_agents_would_have() -> None:
    criteria = CompletionCriteria(
        rule="ml-agents", measure="elo", threshold=1190.0, min_lesson_length=5
    )
    first = replace(FIRST, targets={"self": 1.0}, completion_criteria=criteria)
    sink = Numbers()
    training = learned(Training(plan(lessons=(first, SECOND))), sink)
    self_play, record = session_of(training), training.progress.lesson_reports[0]
    assert record.ended_at_step is not None
    assert record.ended_at_step % ROLLOUT  # at a step, as episodes end
    last = max(step for step, one in sink.logged.items() if "rating/ml_agents" in one)
    assert 1000.0 < sink.logged[last]["rating/ml_agents"] < 1400.0
    running = self_play.past_selves.running.state()
    assert running["learner"] == self_play.running_rating
    met = {row[1] for row in self_play.past_selves.games.rows()}
    assert running["opponents"].keys() == met | {one.name for one in self_play.pool.snapshots}


def test_games_are_of_the_learner_between_snapshots_and_give_a_rating(
    training: Training, sink: Numbers
) -> None:
    self_play = session_of(training)
    rows = list(self_play.past_selves.games.rows())
    assert {row[0] for row in rows} <= {f"learner-{number:06d}" for number in range(4)}
    met = {row[1] for row in rows}
    assert {"still", "greedy"} <= met
    assert any(name.startswith("snapshot-") for name in met)
    rated = {step: one for step, one in sink.logged.items() if "rating/elo" in one}
    assert sorted(rated) == [2 * ROLLOUT, 4 * ROLLOUT]
    for one in rated.values():
        assert one["rating/lower"] <= one["rating/elo"] <= one["rating/upper"]
        assert one["rating/games"] > 0


@pytest.mark.parametrize("made", [plan, everything])
def test_a_training_that_goes_on_ends_with_the_same_pool_games_and_weights(
    made: Callable[[], TrainingPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # at each rollout
    kept = Keeper()
    whole = learned(Training(made()), checkpoints=kept)
    resumed = learned(kept.resumed(Training(made()), kept.checkpoints[2]))
    assert same_arrays(*(x.model.policy.state_dict() for x in (whole, resumed)))
    one, other = session_of(whole), session_of(resumed)
    assert other.pool.state() == one.pool.state()
    assert other.past_selves.games.text() == one.past_selves.games.text()
    assert other.past_selves.running.state() == one.past_selves.running.state()
    for mine, theirs in zip(one.pool.snapshots, other.pool.snapshots, strict=True):
        assert same_arrays(mine.weights, theirs.weights)


def test_pool_and_games_are_artifacts_of_the_run(tmp_path: Path) -> None:
    training, tracker = learned(Training(plan(train=SHORT, lessons=(SECOND,)))), MemoryTracker()
    log_agents(training, tracker, data_folder=DataFolder(tmp_path))
    pool = {name for name in tracker.artifacts if name.startswith("pool/")}
    assert pool == {"pool/snapshots.csv", "pool/snapshot-000000.safetensors"}
    assert tracker.artifacts["pool/snapshots.csv"] == b"snapshot,step\nsnapshot-000000,0\n"
    assert tracker.artifacts["games.csv"].startswith(b"player,opponent,wins,draws,losses\n")
    kept = load(tracker.artifacts["pool/snapshot-000000.safetensors"])
    assert same_arrays(session_of(training).pool.snapshots[0].weights, kept)


def test_the_best_agent_is_the_snapshot_that_is_most_surely_good(tmp_path: Path) -> None:
    """The highest lower end wins, among those that were met often: two lucky games say little."""
    training = learned(Training(plan(train=SHORT, lessons=(SECOND,))))
    self_play = session_of(training)
    for step in (10, 20, 30):
        weights_then = {k: v + step for k, v in self_play.pool.snapshots[0].weights.items()}
        self_play.pool.take(weights_then, step=step)
    games = self_play.past_selves.games
    games.resume([])
    others = BestAgent()
    games.add("learner-000000", "snapshot-000000", 1.0)
    assert self_play.best(others) is others  # no snapshot but the first was met
    games.resume(
        [
            ["learner-000000", "snapshot-000000", 80, 0, 20],
            ["learner-000001", "snapshot-000000", 90, 0, 10],
            ["learner-000001", "snapshot-000001", 50, 0, 50],
            ["learner-000001", "snapshot-000002", 15, 0, 16],  # better, and less surely so
            ["learner-000001", "snapshot-000003", 0, 0, 2],  # lucky twice
        ]
    )
    best = self_play.best(others)
    assert best.about["snapshot"] == "snapshot-000001"
    assert best.about["step"] == 10
    assert 1200.0 < best.about["lower"] < best.about["rating"] < best.about["upper"]
    saved = training.save_agents(tmp_path)
    kept = load(saved["best"][0].read_bytes())
    assert same_arrays(self_play.pool.snapshots[1].weights, kept)
    assert json.loads(saved["best"][1].read_text())["about"]["snapshot"] == "snapshot-000001"


def test_who_sits_in_a_match_stays_until_it_ends() -> None:
    training = Training(plan(lessons=(SECOND,)))
    self_play = session_of(training)
    self_play.begin(training.model.policy.state_dict(), engine="torch")
    past = self_play.past_selves
    past.begin(8)
    past.seat(np.arange(8), ["self"] * 8)
    self_play.pool.take(training.model.policy.state_dict(), step=5)
    past.line_up, before = (1,), past.state()["sits"].copy()
    past.seat(np.array([2]), ["self"])
    after = past.state()["sits"]
    assert after[2] == 1
    assert (np.delete(after, 2) == np.delete(before, 2)).all()


def standing(scores: list[float], points: list[float]) -> Standing:
    return Standing(lambda: np.array(scores), lambda: np.array(points))


NOTHING = standing([], [])


def sampled(sampling: object) -> SelfPlaySettings:
    return TypeAdapter(SelfPlaySettings).validate_python({"window": "all", "sampling": sampling})


def test_a_line_up_is_drawn_from_the_window_or_the_newest_share() -> None:
    random = np.random.default_rng(1)
    drawn = [drawn_line_up(SELF_PLAY, 9, random, NOTHING) for _ in range(60)]
    assert {len(one) for one in drawn} == {2}
    assert {number for one in drawn for number in one} == {6, 7, 8}
    assert candidates(replace(SELF_PLAY, window="all"), 9) == range(9)
    assert drawn_line_up(SELF_PLAY, 1, random, NOTHING) == (0,)
    assert candidates(sampled({"newest": {"share": 0.3}}), 10) == range(7, 10)
    assert candidates(sampled({"newest": {}}), 1) == range(1)


def test_pfsp_meets_those_that_beat_it_or_match_it_and_rating_those_near_it() -> None:
    known = standing([0.9, 0.5, 0.1], [])
    hard = chances_of(sampled({"pfsp": {"power": 1}}), range(3), known)
    np.testing.assert_allclose(hard, 0.02 + 0.94 * np.array([0.1, 0.5, 0.9]) / 1.5)
    even = chances_of(sampled({"pfsp": {"weighting": "even"}}), range(3), known)
    np.testing.assert_allclose(even, 0.02 + 0.94 * np.array([0.09, 0.25, 0.09]) / 0.43)
    near = chances_of(sampled({"rating": {"spread": 100}}), range(3), standing([], [-400, 0, 100]))
    assert near[1] > near[2] > near[0] >= 0.02  # each keeps two percent
    assert near.sum() == pytest.approx(1.0)
    many = chances_of(sampled({"pfsp": {}}), range(80), standing([1.0] * 80, []))
    np.testing.assert_allclose(many, 1 / 80)


def test_old_games_weigh_half_after_256_more() -> None:
    recent = RecentScores()
    assert recent.expected(2).tolist() == [0.5, 0.5]
    recent.add(1, 1.0)
    assert recent.expected(2).tolist() == [0.5, 0.75]
    for _ in range(256):
        recent.add(1, 0.0)
    games = (1 - 0.5 ** (257 / 256)) / (1 - 0.5 ** (1 / 256))
    assert recent.expected(2)[1] == pytest.approx((0.5 + 0.5) / (games + 1))
    other = RecentScores()
    other.resume(recent.state())
    assert other.expected(2).tolist() == recent.expected(2).tolist()


@pytest.mark.parametrize("sampling", ["newest", {"pfps": {}}, {"pfsp": {}, "newest": {}}, 3])
def test_a_sampling_that_there_is_not_is_refused(sampling: object) -> None:
    with pytest.raises(ValidationError, match="must be uniform, or a mapping with newest, pfsp"):
        sampled(sampling)


def test_the_kernel_of_past_selves_runs_once_before_training_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran, act = list[int](), ActorStack.act
    monkeypatch.setattr(
        ActorStack, "act", lambda me, *a, **named: ran.append(len(me.rows)) or act(me, *a, **named)
    )
    itself = Lesson(name="itself", targets={"self": 1.0})
    for ratio, expected in ((0.5, [1]), (1.0, [])):
        ran.clear()
        self_play = replace(SELF_PLAY, play_against_latest_model_ratio=ratio)
        train = replace(SHORT, batch_size=64)  # of which either is a multiple
        training = Training(plan(train=train, lessons=(itself,), self_play=self_play))
        session_of(training).begin(training.model.policy.state_dict(), engine="fused")
        assert ran == expected
