"""Lessons, result lines, and a game that feeds them to a curriculum one after another."""

import numpy as np

from aimbot_lab.curriculum.progress import (
    EPISODES_NAME,
    EVENTS_NAME,
    CurriculumProgress,
    KeptRecord,
    read_record,
)
from aimbot_lab.curriculum.reports import Check
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeResult, format_result_line
from tests.episode_batches import ended_batch

DIFFICULTIES = {"goto": 5, "attack": 5, "free": 0, "stay": 0}


def lesson(name: str, **changes: object) -> Lesson:
    criteria = {"threshold": 0.3, "min_lesson_length": 10} | changes.pop("criteria", {})  # type: ignore[operator]
    about = {"targets": {"goto": 1.0}, "completion_criteria": CompletionCriteria(**criteria)}
    return Lesson(name=name, **(about | changes))  # type: ignore[arg-type]


EASY = {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}
TWO_CELLS = {"goto": (1.0, 1.0, 0.0, 0.0, 0.0)}


def line(
    won: bool, difficulty: int = 1, target: str = "goto", *, reward: float | None = None
) -> str:
    return format_result_line(
        EpisodeResult(WIN if won else LOSS, target, difficulty, episode_return=reward)
    )


class Game:
    """Feeds episodes that begin and end one after another."""

    def __init__(self, progress: CurriculumProgress, scenario: int = 1) -> None:
        self.progress = progress
        self.scenario = scenario
        self.rank = 0
        self.kept: dict[str, bytes] = {}  # what the curriculum has recorded, by file
        progress.begin_scenario(scenario)

    def begin_next(self) -> None:
        """Do what the curriculum wants of the world."""
        if self.progress.wants_scenario:
            self.scenario += 1
            self.progress.begin_scenario(self.scenario)

    def play(self, *lines: str, step: int = 0, rating: float | None = None) -> Check | None:
        count = len(lines)
        ranks = np.arange(self.rank, self.rank + count)
        self.rank += count
        check = self.progress.add(
            ended_batch(
                lines,
                order=ranks,
                scenario=self.scenario,
                running=[self.rank],
                running_scenario=self.scenario,
            )._replace(rating=rating),
            step=step,
        )
        for name, text, place in self.progress.record:
            self.kept[name] = self.kept.get(name, b"")[:place] + text.encode()
        return check

    @property
    def record(self) -> KeptRecord:
        """What the curriculum has recorded, read back."""
        texts = (self.kept.get(name, b"").decode() for name in (EPISODES_NAME, EVENTS_NAME))
        return read_record(*texts)
