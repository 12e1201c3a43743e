"""What a training counts of its episodes and shows of itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_training import Sink, learn

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.evidence import Outcome
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell, WinRate, wilson
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.callbacks import report_callback
from aimbot_lab.training.callbacks.report_callback import EpisodeTally, WinTally
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.run_hooks import SilentObserver, TrainingSnapshot
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import make_world
from tests.episode_batches import ended_batch

LONGEST = 100  # steps of an episode
ROWS, STEPS = 256, 110
SETTINGS = ArenaSettings(num_envs=ROWS, time_limit=LONGEST / 10, goto_win_radius=14.0)
TRAIN = TrainSettings(
    total_steps=ROWS * STEPS,
    n_steps=10,
    batch_size=2560,
    n_epochs=1,
    learning_rate=1e-12,  # changes no action: all that is counted is of one agent
    network=NetworkSettings(layers=(8,)),
)


class Watcher(SilentObserver):
    """Keeps the first win rate that is shown over a hundred episodes or more."""

    def __init__(self) -> None:
        self.first: TrainingSnapshot | None = None

    def progress(self, snapshot: TrainingSnapshot) -> None:
        if self.first is None and snapshot.view.window >= 100:
            self.first = snapshot


def evaluation(model: Any) -> tuple[WinRate, WinRate]:
    """The win rate of the first episode of each of many rows, each played to its end.

    And that of all episodes that end in the first half of the longest.
    """
    world = make_world(SETTINGS)
    env = WorldVecEnv(world, TRAIN.aim_bins, seed=99)
    world.set_scenario(Scenario({"goto": 1.0}))
    wins: list[bool] = []
    early: list[bool] = []
    for _ in range(3):
        observations = env.reset()
        won: dict[int, bool] = {}
        for step in range(LONGEST):
            actions, _ = model.predict(observations, deterministic=False)
            observations, _, _, infos = env.step(actions)
            assert env.episodes is not None
            for row in env.episodes.row.tolist():
                won.setdefault(row, bool(infos[row]["is_success"]))
                early += [bool(infos[row]["is_success"])] * (step < LONGEST / 2)
        assert len(won) == ROWS
        wins += won.values()
    return wilson(sum(wins), len(wins)), wilson(sum(early), len(early))


EASY, HARD = Cell("goto", 1), Cell("goto", 3)


def outcomes(cell: Cell | None, wins: int, losses: int) -> list[Outcome]:
    return [Outcome(won, cell) for won in [True] * wins + [False] * losses]


def test_points_wait_for_thirty_episodes_of_all_and_of_each_cell() -> None:
    tally = WinTally()
    tally.add(outcomes(EASY, 29, 0))
    assert tally.take() == {}
    tally.add(outcomes(EASY, 0, 29))
    found = tally.take()
    assert found["learning/win_rate"] == found["learning/win_rate/goto/1"] == 0.5
    assert found["learning/win_rate_lower"] < 0.5 < found["learning/win_rate_upper"]
    assert tally.take() == {}
    points, seldom = [], WinTally()
    for _ in range(6):
        seldom.add([*outcomes(EASY, 40, 0), *outcomes(HARD, 0, 10), *outcomes(None, 0, 1)])
        points.append(seldom.take())
    assert [("learning/win_rate/goto/3" in point) for point in points] == [False, False, True] * 2
    assert all(point["learning/win_rate"] == 40 / 51 for point in points)


def test_every_episode_is_in_one_point_also_over_a_stop() -> None:
    generator = np.random.default_rng(3)
    tally, wins, shown = WinTally(), 0, 0.0
    for size in generator.integers(0, 60, 50):
        won = generator.random(size) < 0.6
        wins += int(won.sum())
        tally.add(Outcome(bool(one), None) for one in won)
        kept = WinTally()
        kept.resume(tally.state())
        tally = kept
        counted = {row[0]: row[2] for row in tally.state()}.get("", 0)
        shown += tally.take().get("learning/win_rate", 0.0) * counted
    left = {row[0]: row[3] for row in tally.state()}.get("", 0)
    assert round(shown) + left == wins


WON = "Warning|Result|Win|seconds=2.0|return=4.0"
DRAWN = "Warning|Result|Draw|seconds=3.0|return=0.0"
LOST = "Warning|Result|Lose|seconds=5.0|return=-1.0"


def tally() -> EpisodeTally:
    return EpisodeTally(("reward",), ("seconds",))


def test_columns_of_the_world_are_tracked_as_means() -> None:
    counted = tally()
    counted.add(ended_batch([WON], order=[0], running=[1]))
    counted.add(ended_batch([LOST], order=[1], running=[2]))
    metrics = counted.take()
    assert metrics["rollout/seconds"] == 3.5
    assert metrics["rollout/return"] == 1.5
    assert metrics["rollout/episodes"] == 2.0
    assert counted.take() == {}


GOTO_3 = "|target=goto|difficulty=3"


@pytest.mark.parametrize("has_draws", [False, True])
def test_draws_are_a_share_of_each_cell_and_of_all_where_the_world_has_draws_or_there_was_one(
    has_draws: bool,
) -> None:
    counted = EpisodeTally(("reward",), ("seconds",), has_draws=has_draws)
    counted.add(ended_batch([WON], order=[0], running=[1]))
    assert ("rollout/draw_rate" in counted.take()) is has_draws
    counted.add(ended_batch([WON + GOTO_3, DRAWN + GOTO_3, DRAWN], order=[0, 1, 2], running=[3]))
    metrics = counted.take()
    assert metrics["rollout/draw_rate"] == pytest.approx(2 / 3)
    assert metrics["rollout/draw_rate/goto/3"] == 0.5
    counted.add(ended_batch([WON + GOTO_3], order=[4], running=[5]))
    assert counted.take()["rollout/draw_rate/goto/3"] == 0.0


def test_a_stored_tally_goes_on() -> None:
    whole, before, after = tally(), tally(), tally()
    first = ended_batch([WON, DRAWN + GOTO_3], order=[0, 3], running=[1, 4])
    for one in (whole, before):
        one.add(first)
    after.resume(unpack(pack(before.state())))
    for one in (whole, after):
        one.add(ended_batch([LOST + GOTO_3], order=[1], running=[2]))
    np.testing.assert_equal(after.take(), whole.take())


def test_the_first_win_rate_that_is_shown_is_that_of_the_agent() -> None:
    lesson = Lesson(name="one", targets={"goto": 1.0})
    training = Training(TrainingPlan(seed=3, env=SETTINGS, lessons=(lesson,), train=TRAIN))
    watcher = Watcher()
    learn(training, observer=watcher)
    assert watcher.first is not None
    assert watcher.first.step == ROWS * LONGEST  # as soon as the first losses are known
    shown = watcher.first.view.win_rate
    true, early = evaluation(training.model)
    assert shown.lower <= true.upper
    assert true.lower <= shown.upper
    assert early.lower > true.upper
    assert early.win_rate == 1.0


ROLLOUT = 32 * 32  # of a whole small training
GOTO = {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}


class Shown(SilentObserver):
    def __init__(self) -> None:
        self.promoted: list[tuple[str, int]] = []
        self.snapshots: list[TrainingSnapshot] = []
        self.glances: list[TrainingSnapshot] = []

    def promotion(self, report: Any, step: int) -> None:
        self.promoted.append((report.name, step))

    def progress(self, snapshot: TrainingSnapshot) -> None:
        self.snapshots.append(snapshot)

    def glance(self, snapshot: TrainingSnapshot) -> None:
        self.glances.append(snapshot)


def small(total_steps: int, *, threshold: float = 0.9) -> Training:
    criteria = CompletionCriteria(threshold=threshold, min_lesson_length=10)
    # The FireBase is won from afar, so that even an untrained agent wins now and then.
    env = ArenaSettings(num_envs=32, goto_win_radius=12.0, time_limit=5.0)
    both: Any = {"targets": {"goto": 1.0}, "completion_criteria": criteria}
    lessons = (Lesson(name="one", difficulty=GOTO, **both), Lesson(name="two", **both))
    train = replace(TRAIN, total_steps=total_steps, n_steps=32, batch_size=512, learning_rate=1e-3)
    return Training(TrainingPlan(seed=1, env=env, lessons=lessons, train=train))


def test_lessons_are_passed_in_order_at_their_steps_and_end_the_training() -> None:
    training, sink, shown = small(65_536, threshold=0.02), Sink(), Shown()
    outcome = learn(training, sink, observer=shown)
    names_of, at = zip(*shown.promoted, strict=True)
    assert names_of == ("one", "two")
    assert training.progress.finished
    assert not outcome.stopped
    assert outcome.steps == -(-at[-1] // ROLLOUT) * ROLLOUT < 65_536
    numbers = [(step, each[names.LESSON_NUMBER]) for step, each in sink.logged if len(each) == 1]
    assert numbers == [(at[0], 2.0)]
    assert [one.ended_at_step for one in training.progress.lesson_reports] == [*at]
    steps = [step for step, _ in sink.logged]
    assert steps == sorted(set(steps))
    assert steps[-1] == outcome.steps


def test_metrics_name_win_rates_lesson_rewards_and_the_learner() -> None:
    training, sink, shown = small(2048), Sink(), Shown()
    learn(training, sink, observer=shown)
    steps = [step for step, _ in sink.logged]
    assert steps == sorted(set(steps))
    assert steps[-1] == shown.snapshots[-1].step == 2048
    last = sink.logged[-1][1]
    wanted = {
        *(names.LEARNING_WIN_RATE, names.LEARNING_WIN_RATE_LOWER, names.LESSON_WIN_RATE),
        *(names.of_cell(names.LEARNING_WIN_RATE, EASY), names.LESSON_NUMBER, "lesson/log_evidence"),
        *(names.EPISODE_LENGTH, names.reward_term("spin_penalty"), names.STEPS_PER_SECOND),
        *("train/loss", "train/entropy_loss"),
    }
    assert wanted <= set(last)
    assert last["lesson/log_evidence"] == training.progress.view.log_evidence
    assert "lesson/evidence" not in last  # which reads as odds


@pytest.mark.parametrize(("seconds", "steps"), [(0.0, [1024, 2048]), (1e9, [])])
def test_a_long_training_is_seen_between_its_reports(
    monkeypatch: pytest.MonkeyPatch, seconds: float, steps: list[int]
) -> None:
    monkeypatch.setattr(report_callback, "GLANCE_SECONDS", seconds)
    training, sink, shown = small(report_callback.MAX_POINTS * 10_000), Sink(), Shown()
    learn(training, sink, observer=shown, should_stop=lambda: training.model.num_timesteps >= 3000)
    assert (sink.logged, shown.snapshots) == ([], [])
    assert [glance.step for glance in shown.glances] == steps
