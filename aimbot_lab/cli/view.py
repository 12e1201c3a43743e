"""What a person sees while work goes on: a live table on a terminal, or plain lines in a log."""

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli.text import (
    confirmed_lines,
    params_text,
    progress_line,
    promotion_line,
    state_line,
    value,
)
from aimbot_lab.foundation.shown_text import one_line, terminal_lines

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import LessonReport
    from aimbot_lab.sweep.coordinator import SweepObserver, SweepSnapshot
    from aimbot_lab.training.run_hooks import Observer, TrainingSnapshot

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_STATES = 30.0  # of a sweep, whose trials have lines of their own
Advance = Callable[[str], None]


def wants_plain_lines() -> bool:
    """Whether standard error can't be drawn on, or NO_COLOR is set."""
    dumb = os.environ.get("TERM") == "dumb"
    return bool(os.environ.get("NO_COLOR")) or dumb or not sys.stderr.isatty()


@contextmanager
def training_view(name: str) -> "Iterator[Observer]":
    """The view of a training that suits where standard error goes."""
    if wants_plain_lines():
        yield PlainView()
        return
    from aimbot_lab.cli.live import LiveView, drawn

    with drawn(LiveView(name)) as view:
        yield view


@contextmanager
def sweep_view(name: str) -> "Iterator[SweepObserver]":
    """The view of a sweep that suits where standard error goes."""
    if wants_plain_lines():
        yield PlainSweepView()
        return
    from aimbot_lab.cli.live import LiveSweepView, drawn

    with drawn(LiveSweepView(name)) as view:
        yield view


class PlainLines:
    """Lines with the time of day; those on where the work stands only every few `seconds`."""

    def __init__(self, seconds: float, *, last: float | None = None) -> None:
        self._seconds = seconds
        self._last = time.monotonic() if last is None else last

    def notice(self, text: str) -> None:
        """Say it at once; may be called in a signal handler, in the middle of anything."""
        # Past the stream's buffer: the signal may have come while that was being written.
        below_echo = "\n" if sys.stderr.isatty() else ""  # a terminal has just shown ^C
        with suppress(OSError):
            os.write(
                sys.stderr.fileno(), f"{below_echo}{_clock()} {terminal_lines(text)}\n".encode()
            )

    def _say(self, text: str) -> None:
        click.echo(f"{_clock()} {terminal_lines(text)}", err=True)

    def is_due(self) -> bool:
        """Whether it is time for a line on where the work stands."""
        is_due = time.monotonic() - self._last >= self._seconds
        if is_due:
            self._last = time.monotonic()
        return is_due


class PlainView(PlainLines):
    """A training: one line per event, and one every few seconds of training."""

    def __init__(self) -> None:
        super().__init__(SECONDS_BETWEEN_LINES, last=0.0)

    def stage(self, text: str) -> None:
        """Say what begins."""
        self._say(text)

    def promotion(self, report: "LessonReport", step: int) -> None:
        """Say which lesson was passed."""
        self._say(one_line(promotion_line(report, step)))

    def progress(self, snapshot: "TrainingSnapshot") -> None:
        """Say where the training stands, unless that was said a moment ago."""
        if self.is_due():
            self._say(one_line(progress_line(snapshot)))

    def glance(self, snapshot: "TrainingSnapshot") -> None:
        """The same."""
        self.progress(snapshot)


class PlainSweepView(PlainLines):
    """A sweep: a line per trial that ends, and one every half minute."""

    def __init__(self) -> None:
        super().__init__(SECONDS_BETWEEN_STATES)
        self._shown: set[tuple[str, int | str]] = set()

    def progress(self, snapshot: "SweepSnapshot") -> None:
        """Say which trials have ended, and now and then where all stands."""
        report = snapshot.report
        for trial in report.trials:
            if trial.state in ("done", "given up", "failed") and self._is_news("s", trial.number):
                why = f" ({trial.reason})" if trial.reason else ""
                text = f"{value(trial)}  {params_text(trial.params)}"
                self._say(f"trial {trial.number} {trial.state}{why}: {text}")
        for label, line in confirmed_lines(report):
            if self._is_news("c", label):
                self._say(line)
        if self.is_due():
            self._say(state_line(snapshot))

    def _is_news(self, stage: str, label: int | str) -> bool:
        is_news = (stage, label) not in self._shown
        self._shown.add((stage, label))
        return is_news


class ShareView(PlainLines):
    """How much of the work `name` is done, in a line every few seconds."""

    def __init__(self, name: str) -> None:
        super().__init__(SECONDS_BETWEEN_LINES)
        self._name = name

    def share(self, share: float) -> None:
        """Say it, unless that was done a moment ago."""
        if self.is_due():
            self._say(f"{self._name}: {100 * share:.0f} %")


@contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """Call what is given with a few words after each of `total` parts of the work."""
    if wants_plain_lines():
        numbers, lines = itertools.count(1), PlainLines(SECONDS_BETWEEN_LINES)

        def advance(words: str) -> None:
            done = next(numbers)
            if lines.is_due():
                click.echo(f"{title}: {words}, {done} of {total} done", err=True)

        yield advance
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda words: bar.update(task, advance=1, description=f"{title}: {words}")


def _clock() -> str:
    return time.strftime("%H:%M:%S")
