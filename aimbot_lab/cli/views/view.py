"""What a person sees while an agent trains: a live table, or plain lines in a log."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import click

from aimbot_lab.cli.views.text import cut, duration, rate
from aimbot_lab.foundation.shown_text import one_line, terminal_lines

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import CurriculumView, LessonReport
    from aimbot_lab.training.observer import TrainingSnapshot

SECONDS_BETWEEN_LINES = 5.0


class View(Protocol):
    """An observer of trainings that also takes a word from elsewhere."""

    def stage(self, text: str) -> None:
        """A part of the work begins."""
        ...

    def progress(self, snapshot: "TrainingSnapshot") -> None:
        """An update was made."""
        ...

    def promotion(self, report: "LessonReport", step: int) -> None:
        """A lesson was passed."""
        ...

    def notice(self, text: str) -> None:
        """Show `text` at once; may be called in a signal handler, in the middle of anything."""
        ...


def wants_plain_lines() -> bool:
    """Whether standard error is no terminal that can be drawn on, or NO_COLOR is set."""
    dumb = os.environ.get("TERM") == "dumb"
    return bool(os.environ.get("NO_COLOR")) or dumb or not sys.stderr.isatty()


@contextmanager
def training_view(name: str) -> Iterator[View]:
    """The view that suits where standard error goes."""
    if wants_plain_lines():
        yield PlainView()
        return
    from aimbot_lab.cli.views.live import live_view

    with live_view(name) as view:
        yield view


class PlainView:
    """One line per event, and one every few seconds of training."""

    def __init__(self) -> None:
        self._last = 0.0

    def stage(self, text: str) -> None:
        """Say what begins."""
        click.echo(f"{_clock()} {terminal_lines(text)}", err=True)

    def promotion(self, report: "LessonReport", step: int) -> None:
        """Say which lesson was passed."""
        click.echo(f"{_clock()} {one_line(promotion_line(report, step))}", err=True)

    def progress(self, snapshot: "TrainingSnapshot") -> None:
        """Say where the training stands, unless that was said a moment ago."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            click.echo(f"{_clock()} {one_line(progress_line(snapshot))}", err=True)

    def notice(self, text: str) -> None:
        """Say it at once."""
        # Past the stream's buffer: the signal may have come while that was being written.
        below_echo = "\n" if sys.stderr.isatty() else ""  # a terminal has just shown ^C
        with suppress(OSError):
            os.write(
                sys.stderr.fileno(), f"{below_echo}{_clock()} {terminal_lines(text)}\n".encode()
            )


def promotion_line(report: "LessonReport", step: int, *, width: int | None = None) -> str:
    """A passed lesson in one line; where it must not exceed `width`, in fewer words."""
    won = rate(report.win_rate, report.lower, report.upper)
    line = f"passed {report.name!r} at step {step:,}: win rate {won}"
    if width is None or len(line) <= width:
        return line
    rest = f" at step {step:,}: {won}"
    return cut(report.name, width - len(rest)) + rest


def progress_line(snapshot: "TrainingSnapshot") -> str:
    """Where a training stands, in one line."""
    return (
        f"step {snapshot.step:,} of {snapshot.total_steps:,}  {lesson_line(snapshot.view)}  "
        f"{snapshot.steps_per_second:,.0f} steps/s  {time_left(snapshot)}"
    )


def lesson_line(view: "CurriculumView") -> str:
    """The lesson, its win rate with interval, and the threshold."""
    won = rate(view.win_rate.win_rate, view.win_rate.lower, view.win_rate.upper)
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


def _clock() -> str:
    return time.strftime("%H:%M:%S")
