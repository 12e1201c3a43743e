"""At which steps the lesson changed, for a metric that has them exactly."""

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation import metric_names as names


class LessonChanges:
    """The lessons of `progress` that began since the last `take`, by environment step.

    At such a step the lesson before was passed, as `LessonReport.ended_at_step` says, or an earlier
    one began again; reports come only after updates.
    """

    def __init__(self, progress: CurriculumProgress) -> None:
        self._progress = progress
        self._lesson = progress.lesson
        self._changes: dict[int, int] = {}

    def begin_rollout(self) -> None:
        """Take the present lesson as known: a training may have gone on from another state."""
        self._lesson = self._progress.lesson

    def look(self, step: int) -> None:
        """Note whether the lesson changed at `step`."""
        if self._progress.lesson != self._lesson:
            self._lesson = self._progress.lesson
            self._changes[step] = self._lesson

    def take(self, *, reported_at: int | None) -> list[tuple[int, dict[str, float]]]:
        """Steps and the metric at each, less the step that a report has as well."""
        taken = [
            (step, {names.LESSON_NUMBER: lesson + 1.0})
            for step, lesson in self._changes.items()
            if step != reported_at
        ]
        self._changes.clear()
        return taken
