"""A whole small training, without files or tracking."""

from dataclasses import replace
from typing import Any

import pytest
from tiny_training import Sink

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.callbacks import report_callback
from aimbot_lab.training.callbacks.report_callback import MAX_POINTS
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings

ROWS = 32
ROLLOUT = 32 * ROWS
EASY = {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}


class Watcher(SilentObserver):
    def __init__(self) -> None:
        self.promoted: list[str] = []
        self.promoted_at: list[int] = []
        self.snapshots: list[Any] = []
        self.glances: list[Any] = []

    def promotion(self, report: Any, step: int) -> None:
        self.promoted.append(report.name)
        self.promoted_at.append(step)

    def progress(self, snapshot: Any) -> None:
        self.snapshots.append(snapshot)

    def glance(self, snapshot: Any) -> None:
        self.glances.append(snapshot)


def plan(threshold: float = 0.02, total_steps: int = 8192, seed: int = 1) -> TrainingPlan:
    criteria = CompletionCriteria(threshold=threshold, min_lesson_length=10)
    # The FireBase is won from afar, so that even an untrained agent wins now and then.
    env = ArenaSettings(num_envs=ROWS, goto_win_radius=12.0, time_limit=5.0)
    return TrainingPlan(
        seed=seed,
        env=env,
        lessons=(
            Lesson(
                name="one", targets={"goto": 1.0}, difficulty=EASY, completion_criteria=criteria
            ),
            Lesson(name="two", targets={"goto": 1.0}, completion_criteria=criteria),
        ),
        train=TrainSettings(
            total_steps=total_steps,
            n_steps=32,
            batch_size=512,
            n_epochs=2,
            network=NetworkSettings(layers=(16,)),
            torch_threads=1,
        ),
    )


def learn(training: Training, stop_after: int | None = None) -> tuple[Any, Sink, Watcher]:
    sink, watcher = Sink(), Watcher()

    def should_stop() -> bool:
        return stop_after is not None and training.model.num_timesteps >= stop_after

    links = RunLinks(record=sink)
    return training.learn(sink, watcher, should_stop, links=links), sink, watcher


def test_lessons_are_passed_in_order_at_their_steps_and_end_the_training() -> None:
    training = Training(plan(total_steps=65_536))
    outcome, sink, watcher = learn(training)
    assert watcher.promoted == ["one", "two"]
    assert training.progress.finished
    assert not outcome.stopped
    assert outcome.steps == -(-watcher.promoted_at[-1] // ROLLOUT) * ROLLOUT < 65_536
    numbers = [(at, each[names.LESSON_NUMBER]) for at, each in sink.logged if len(each) == 1]
    assert numbers == [(watcher.promoted_at[0], 2.0)]
    assert [one.ended_at_step for one in training.progress.lesson_reports] == watcher.promoted_at
    steps = [step for step, _ in sink.logged]
    assert steps == sorted(set(steps))
    assert steps[-1] == outcome.steps


def test_metrics_name_win_rates_lesson_rewards_and_the_learner() -> None:
    training = Training(plan(threshold=0.9, total_steps=2048))
    _, sink, watcher = learn(training)
    steps = [step for step, _ in sink.logged]
    assert steps == sorted(set(steps))
    assert steps[-1] == 2048
    last = sink.logged[-1][1]
    wanted = {
        names.LEARNING_WIN_RATE,
        names.LEARNING_WIN_RATE_LOWER,
        names.of_cell(names.LEARNING_WIN_RATE, Cell("goto", 1)),
        names.LESSON_WIN_RATE,
        names.LESSON_NUMBER,
        "lesson/log_evidence",
        names.EPISODE_LENGTH,
        names.reward_term("spin_penalty"),
        names.STEPS_PER_SECOND,
        "train/loss",
        "train/entropy_loss",
    }
    assert wanted <= set(last)
    assert last["lesson/log_evidence"] == training.progress.view.log_evidence
    assert "lesson/evidence" not in last  # which reads as odds
    assert watcher.snapshots[-1].step == 2048


def test_a_long_training_is_seen_between_its_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_callback, "GLANCE_SECONDS", 0.0)
    training = Training(plan(threshold=0.9, total_steps=MAX_POINTS * 10_000))
    _, sink, watcher = learn(training, stop_after=3000)
    assert (sink.logged, watcher.snapshots) == ([], [])
    assert [glance.step for glance in watcher.glances] == [1024, 2048]
    monkeypatch.setattr(report_callback, "GLANCE_SECONDS", 1e9)
    again = Training(plan(threshold=0.9, total_steps=MAX_POINTS * 10_000))
    _, _, watcher = learn(again, stop_after=3000)
    assert watcher.glances == []


def test_a_stop_ends_at_once_and_is_told_apart() -> None:
    outcome, *_ = learn(Training(plan(threshold=0.9)), stop_after=1000)
    assert outcome.stopped
    assert outcome.steps < 1000 + 2 * ROWS


def test_a_training_that_diverges_says_so() -> None:
    wild = plan(threshold=0.9)
    wild = replace(wild, train=replace(wild.train, learning_rate=1e30))
    with pytest.raises(RunFailedError, match=r"diverged at step [\d,]+.*learning_rate"):
        learn(Training(wild))
