"""A training in lines of plain text: where it stands, and which lessons were passed."""

from typing import TYPE_CHECKING

from aimbot_lab.cli.views.text import cut, duration
from aimbot_lab.foundation.statistics.intervals import shown_rate

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import CurriculumView, LessonReport
    from aimbot_lab.training.observer import TrainingSnapshot


def promotion_line(report: "LessonReport", step: int, *, width: int | None = None) -> str:
    """A passed lesson and its proof in one line, in fewer words to keep to `width`."""
    won = shown_rate(report.win_rate, report.lower, report.upper) + report.level
    where = f" at step {step:,}"
    begin = f"passed {report.name!r}{where} after {report.episodes:,} episodes"
    proofs = (report.proof(won), report.proof()) if report.measure else (f"win rate {won}", won)
    lines = [f"{begin}: {proof}" for proof in proofs]
    fitting = [line for line in lines if width is None or len(line) <= width]
    if width is None or fitting:
        return fitting[0]
    rest = f"{where}: {proofs[-1]}"
    return cut(report.name, width - len(rest)) + rest


def progress_line(snapshot: "TrainingSnapshot") -> str:
    """Where a training stands, in one line."""
    return (
        f"step {snapshot.step:,} of {snapshot.total_steps:,}  {lesson_line(snapshot.view)}  "
        f"{snapshot.steps_per_second:,.0f} steps/s  {time_left(snapshot)}"
    )


def lesson_line(view: "CurriculumView") -> str:
    """The lesson, its win rate with interval, and the threshold."""
    won = shown_rate(view.win_rate.win_rate, view.win_rate.lower, view.win_rate.upper)
    against = "" if view.threshold is None else f" against {view.threshold:g}"
    lesson = f"lesson {view.lesson + 1}/{view.lessons} {view.name!r}"
    return f"{lesson} win rate {won}{against}{measured_text(view)}"


def measured_text(view: "CurriculumView") -> str:
    """What a lesson is measured by, where it is not evidence of a win rate."""
    if (measured := view.measured) is None:
        return ""
    value = "-" if measured.value is None else f"{measured.value:.4g}"
    return f"  {measured.measure} {value} against {measured.threshold:g}"


def time_left(snapshot: "TrainingSnapshot") -> str:
    """Time until the last step at the present speed; passing all lessons ends it sooner."""
    left = (snapshot.total_steps - snapshot.step) / max(snapshot.steps_per_second, 1.0)
    return f"at most {duration(max(left, 0.0))} left"
