"""The rule of ML-Agents against a plain transcription of what its package does."""

import json
from collections import deque
from typing import Any

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, lesson

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation.episodes import (
    LOSS,
    WIN,
    EpisodeBatch,
    EpisodeResult,
    format_result_line,
)
from tests.episode_batches import ended_batch

STEPS = 40  # of a trace


class Trainer:
    """What ML-Agents keeps and asks, in its own terms; `advance` is one environment step."""

    def __init__(self, curriculum: list[dict[str, Any]], max_steps: int) -> None:
        self.curriculum = curriculum
        self.max_steps = max_steps
        lengths = [one["min_lesson_length"] for one in curriculum if one]
        self.reward_buffer: deque[float] = deque(maxlen=max(1, *lengths))
        self.smoothed_value = 0.0
        self.lesson_num = 0

    def advance(self, finished: list[float], steps: int) -> None:
        for reward in finished:
            self.reward_buffer.appendleft(reward)
        criteria = self.curriculum[self.lesson_num]
        if not criteria or self.lesson_num + 1 >= len(self.curriculum):
            return
        progress = float(steps) / float(self.max_steps)
        must_increment, self.smoothed_value = self.need_increment(criteria, progress)
        if must_increment:
            self.lesson_num += 1
            self.reward_buffer.clear()

    def need_increment(self, criteria: dict[str, Any], progress: float) -> tuple[bool, float]:
        smoothing = self.smoothed_value
        if len(self.reward_buffer) < criteria["min_lesson_length"]:
            return False, smoothing
        if criteria["measure"] == "progress":
            return progress > criteria["threshold"], smoothing
        if len(self.reward_buffer) < 1:
            return False, smoothing
        measure = np.mean(self.reward_buffer)
        if np.isnan(measure):
            return False, smoothing
        if criteria["signal_smoothing"]:
            measure = 0.25 * smoothing + 0.75 * measure
            smoothing = measure
        return bool(measure > criteria["threshold"]), smoothing


def random_curriculum(rng: np.random.Generator) -> list[dict[str, Any]]:
    def criteria() -> dict[str, Any]:
        progress = rng.random() < 0.15
        return {
            "measure": "progress" if progress else "reward",
            "threshold": float(rng.uniform(0, 0.9) if progress else rng.normal(0.2, 0.5)),
            "min_lesson_length": int(rng.integers(0, 12)),
            "signal_smoothing": bool(rng.random() < 0.5),
        }

    return [criteria() for _ in range(int(rng.integers(1, 5)))] + [{}]


def as_lessons(curriculum: list[dict[str, Any]]) -> list[Lesson]:
    return [
        lesson(
            f"lesson {number}",
            completion_criteria=CompletionCriteria(rule="ml-agents", **one) if one else None,
        )
        for number, one in enumerate(curriculum)
    ]


def batch(rewards: list[float], scenarios: list[int], rank: int) -> EpisodeBatch:
    count = len(rewards)
    outcomes = [WIN if reward > 0 else LOSS for reward in rewards]
    return ended_batch(
        [
            format_result_line(EpisodeResult(outcome, "goto", 1, episode_return=reward))
            for outcome, reward in zip(outcomes, rewards, strict=True)
        ],
        order=range(rank, rank + count),
        scenario=scenarios,
        running=[rank + count],
        running_scenario=max(scenarios, default=1),
    )


@pytest.mark.parametrize("part", range(2))
def test_the_lessons_are_those_of_a_transcription(part: int) -> None:
    moves = 0
    for trace in range(100):
        rng = np.random.default_rng([part, trace])
        curriculum = random_curriculum(rng)
        trainer = Trainer(curriculum, max_steps=8 * STEPS)
        progress = CurriculumProgress(as_lessons(curriculum), DIFFICULTIES, total_steps=8 * STEPS)
        progress.begin_scenario(scenario := 1)
        rank = 0
        for step in range(8, 8 * STEPS + 1, 8):
            rewards = rng.normal(0.3, 0.6, rng.integers(0, 4)).tolist()
            old = rng.integers(max(1, scenario - 1), scenario + 1, len(rewards)).tolist()
            trainer.advance(rewards, step)
            progress.add(batch(rewards, old, rank), step=step)
            rank += len(rewards)
            assert progress.lesson == trainer.lesson_num
            if progress.wants_scenario:
                progress.begin_scenario(scenario := scenario + 1)
        moves += progress.lesson
    assert moves > 100


def begun(**criteria: Any) -> CurriculumProgress:
    """A curriculum of two lessons whose first has these criteria, in its first scenario."""
    asked = CompletionCriteria(rule="ml-agents", **criteria)
    lessons = [lesson("a", completion_criteria=asked), lesson("b")]
    progress = CurriculumProgress(lessons, DIFFICULTIES)
    progress.begin_scenario(1)
    return progress


def test_the_smoothed_value_and_the_window_outlive_a_stop() -> None:
    before = begun(measure="reward", threshold=5.0)
    before.add(batch([0.25] * 150, [1] * 150, 0), step=8)
    after = begun(measure="reward", threshold=5.0)
    after.resume(json.loads(json.dumps(before.state())))
    assert after.state() == before.state()
    kept = after.state()["ml_agents"]
    assert kept == {"values": [0.25] * 100, "smoothing": 0.75 * 0.25}


@pytest.mark.parametrize("smoothing", [True, False])
def test_elo_is_the_running_rating_in_place_of_the_mean(smoothing: bool) -> None:
    """The code path of the reward otherwise: least length, smoothing from 0, a strict threshold."""
    asked = {"measure": "elo", "threshold": 1210.0, "min_lesson_length": 3}
    progress = begun(**asked, signal_smoothing=smoothing)
    rng, rating, smoothed, played = np.random.default_rng(3), 1200.0, 0.0, 0
    for step in range(1, 400):
        count = int(rng.integers(0, 2))
        played += count
        rating += count * float(rng.uniform(-0.5, 1.0))
        ended = batch([1.0] * count, [1] * count, step)._replace(rating=rating)
        progress.add(ended, step=step)
        if played < 3:
            continue
        smoothed = 0.25 * smoothed + 0.75 * rating
        expected = smoothed if smoothing else rating
        assert (progress.lesson == 1) == (expected > 1210.0)
        if progress.lesson == 1:
            break
    assert progress.lesson == 1


def test_without_a_running_rating_elo_passes_nothing() -> None:
    progress = begun(measure="elo", threshold=-1e6, min_lesson_length=0)
    progress.add(batch([1.0] * 5, [1] * 5, 0), step=1)
    assert progress.lesson == 0


def test_episodes_of_no_scenario_count_for_nothing() -> None:
    """Mirrored matches are such; those of an earlier lesson's scenario count."""
    progress = begun(measure="reward", threshold=5.0)
    progress.begin_scenario(2)
    progress.add(batch([0.25, 0.5, 0.75], [0, 1, 2], 0), step=8)
    assert progress.state()["ml_agents"]["values"] == [0.75, 0.5]
