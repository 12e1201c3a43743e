"""What a training reports while it runs."""

from dataclasses import dataclass
from typing import Protocol

from aimbot_lab.curriculum.reports import CurriculumView, LessonReport


@dataclass(frozen=True)
class TrainingSnapshot:
    """Where a training stands after an update."""

    step: int  # environment steps taken
    total_steps: int
    seconds: float  # since training began
    steps_per_second: float  # since the last report
    view: CurriculumView


class Observer(Protocol):
    """Someone who watches a training; every call returns at once."""

    def stage(self, text: str) -> None:
        """A part of the work begins, for example building the simulator."""
        ...

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """An update was made; at steps that nothing but the training decides."""
        ...

    def glance(self, snapshot: TrainingSnapshot) -> None:
        """Where it stands between two reports, by the clock: for the eye alone."""
        ...

    def promotion(self, report: LessonReport, step: int) -> None:
        """A lesson was passed at environment step `step`."""
        ...

    def notice(self, text: str) -> None:
        """Something happened that a person should know."""
        ...


class SilentObserver:
    """An observer that keeps what it saw to itself."""

    def stage(self, text: str) -> None:
        """Say nothing."""

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """Say nothing."""

    def glance(self, snapshot: TrainingSnapshot) -> None:
        """Say nothing."""

    def promotion(self, report: LessonReport, step: int) -> None:
        """Say nothing."""

    def notice(self, text: str) -> None:
        """Say nothing."""
