"""What a person sees while an agent trains: a live table, or plain lines in a log."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import click

from aimbot_lab.cli.views.training_text import progress_line, promotion_line
from aimbot_lab.foundation.shown_text import one_line, terminal_lines

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import LessonReport
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

    def glance(self, snapshot: "TrainingSnapshot") -> None:
        """It goes on."""
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

    def glance(self, snapshot: "TrainingSnapshot") -> None:
        """The same."""
        self.progress(snapshot)

    def notice(self, text: str) -> None:
        """Say it at once."""
        # Past the stream's buffer: the signal may have come while that was being written.
        below_echo = "\n" if sys.stderr.isatty() else ""  # a terminal has just shown ^C
        with suppress(OSError):
            os.write(
                sys.stderr.fileno(), f"{below_echo}{_clock()} {terminal_lines(text)}\n".encode()
            )


def _clock() -> str:
    return time.strftime("%H:%M:%S")
