"""What a person sees while a sweep runs: a live table of trials, or plain lines in a log."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import click

from aimbot_lab.cli.views.sweep_text import fresh, params_text, state_line, value
from aimbot_lab.cli.views.view import wants_plain_lines
from aimbot_lab.foundation.shown_text import terminal_lines

if TYPE_CHECKING:
    from aimbot_lab.sweep.coordinator import SweepSnapshot

SECONDS_BETWEEN_LINES = 30.0
SECONDS_BETWEEN_SHARES = 5.0


class SweepView(Protocol):
    """An observer of sweeps."""

    def progress(self, snapshot: "SweepSnapshot") -> None:
        """It goes on."""
        ...

    def notice(self, text: str) -> None:
        """Show `text` at once; may be called in a signal handler, in the middle of anything."""
        ...


@contextmanager
def sweep_view(name: str) -> Iterator[SweepView]:
    """The view that suits where standard error goes."""
    if wants_plain_lines():
        yield PlainSweepView()
        return
    from aimbot_lab.cli.views.sweep_live import live_sweep_view

    with live_sweep_view(name) as view:
        yield view


class PlainSweepView:
    """A line per trial that ends, and one every half minute."""

    def __init__(self) -> None:
        self._shown: set[tuple[str, int | str]] = set()
        self._last = time.monotonic()

    def progress(self, snapshot: "SweepSnapshot") -> None:
        """Say which trials have ended, and now and then where all stands."""
        report = snapshot.report
        for trial in report.trials:
            if trial.state in ("done", "given up", "failed") and self._is_news("s", trial.number):
                why = f" ({trial.reason})" if trial.reason else ""
                text = f"{value(trial)}  {params_text(trial.params)}"
                self._say(f"trial {trial.number} {trial.state}{why}: {text}")
        for one in report.confirmed:
            if self._is_news("c", one.label):
                self._say(f"trial {one.label} on fresh seeds: {fresh(one)}")
        for lost in report.unconfirmed:
            if self._is_news("c", lost.label):
                self._say(lost.line)
        if time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._say(state_line(snapshot))

    def notice(self, text: str) -> None:
        """Say it at once."""
        # Past the stream's buffer: the signal may have come while that was being written.
        with suppress(OSError):
            os.write(sys.stderr.fileno(), f"{_clock()} {terminal_lines(text)}\n".encode())

    def _is_news(self, stage: str, label: int | str) -> bool:
        is_news = (stage, label) not in self._shown
        self._shown.add((stage, label))
        return is_news

    def _say(self, text: str) -> None:
        click.echo(f"{_clock()} {terminal_lines(text)}", err=True)


class ShareView:
    """How much of a work is done, in a line every few seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = time.monotonic()

    def share(self, share: float) -> None:
        """Say it, unless that was done a moment ago."""
        if time.monotonic() - self._last >= SECONDS_BETWEEN_SHARES:
            self._last = time.monotonic()
            click.echo(f"{_clock()} {self._name}: {share:.0%}", err=True)

    def notice(self, text: str) -> None:
        """Say it at once."""
        # Past the stream's buffer: the signal may have come while that was being written.
        with suppress(OSError):
            os.write(sys.stderr.fileno(), f"{_clock()} {terminal_lines(text)}\n".encode())


def _clock() -> str:
    return time.strftime("%H:%M:%S")
