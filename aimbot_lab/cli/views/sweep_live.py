"""The live table of a sweep on a terminal."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from aimbot_lab.cli.processes.terminal import quiet_keys
from aimbot_lab.cli.views.live import NOTICES_KEPT, cut_line, share_bar
from aimbot_lab.cli.views.sweep_text import fresh, number, short_names, state_line, value
from aimbot_lab.cli.views.text import duration
from aimbot_lab.foundation.shown_text import terminal_lines

if TYPE_CHECKING:
    from aimbot_lab.sweep.coordinator import SweepSnapshot
    from aimbot_lab.sweep.results.report import TrialReport

BAR, CONFIRM_BAR = 12, 24  # characters
OTHER_LINES = 12  # of the screen that the table of trials leaves free


@contextmanager
def live_sweep_view(name: str) -> Iterator["LiveSweepView"]:
    """A view that is drawn on standard error while the block runs; its table goes with it."""
    view = LiveSweepView(name, Console(stderr=True))
    live = Live(
        console=view.console, get_renderable=view.draw, refresh_per_second=4, transient=True
    )
    with quiet_keys(sys.stderr.fileno()), live:
        yield view


class LiveSweepView:
    """The trials at work, the best ones, and what else there is to know."""

    def __init__(self, name: str, console: Console) -> None:
        self.console = console
        self._name = name
        self._snapshot: SweepSnapshot | None = None
        self._notices: deque[str] = deque(maxlen=NOTICES_KEPT)

    def progress(self, snapshot: "SweepSnapshot") -> None:
        """Draw where the sweep stands."""
        self._snapshot = snapshot

    def notice(self, text: str) -> None:
        """Show `text` below the rest, until there are newer ones."""
        self._notices.append(terminal_lines(text))

    def draw(self) -> RenderableType:
        """What is shown at this moment."""
        snapshot = self._snapshot
        parts: list[RenderableType] = [cut_line(f"{self._name}: starting the workers ...", "bold")]
        if snapshot is not None:
            parts = [cut_line(f"{self._name}  {state_line(snapshot)}", "bold")]
            if snapshot.report.trials:
                parts.append(self._trials(snapshot))
            parts += [cut_line(text) for text in _confirmed(snapshot)]
            if snapshot.report.status == "confirming":
                parts.append(_confirming(snapshot))
        return Group(*parts, *(Text(notice, style="bold yellow") for notice in [*self._notices]))

    def _trials(self, snapshot: "SweepSnapshot") -> Table:
        """As many trials as the screen has room for: those at work, then the newest."""
        report = snapshot.report
        keys = list(report.trials[0].params)
        drawn = Table(box=None, pad_edge=False)
        for head in ("trial", *short_names(keys), f"{report.measure} [95 %]", "", "took"):
            drawn.add_column(head, no_wrap=True, overflow="ellipsis")
        room = max(self.console.height - OTHER_LINES, 3)
        ended = [trial for trial in report.trials if trial.state != "running"]
        running = [trial for trial in report.trials if trial.state == "running"]
        for trial in [*ended[-max(room - len(running), 1) :], *running]:
            is_best = trial.number == report.best
            drawn.add_row(
                str(trial.number),
                *(number(trial.params[key]) for key in keys),
                value(trial),
                self._state(trial, snapshot),
                "-" if trial.seconds is None else duration(trial.seconds),
                style="bold green" if is_best else None,
            )
        return drawn

    def _state(self, trial: "TrialReport", snapshot: "SweepSnapshot") -> RenderableType:
        share = snapshot.at_work.get(("search", trial.number))
        if trial.state == "running" and share is not None:
            return share_bar(share, BAR)
        is_best = trial.number == snapshot.report.best
        elsewhere = f"on {trial.host}" if trial.state == "running" and trial.host else trial.state
        return Text("best so far" if is_best else elsewhere)


def _confirmed(snapshot: "SweepSnapshot") -> Iterator[str]:
    for one in snapshot.report.confirmed:
        yield f"trial {one.label} on fresh seeds: {fresh(one)}"
    for lost in snapshot.report.unconfirmed:
        yield lost.line


def _confirming(snapshot: "SweepSnapshot") -> Table:
    """How much of the confirmation is done, with the parts of what is at work."""
    report = snapshot.report
    at_work = [share for (stage, _), share in snapshot.at_work.items() if stage == "confirm"]
    share = (report.confirm_ended + sum(at_work)) / max(report.to_confirm, 1)
    drawn = Table.grid(padding=(0, 1))
    drawn.add_row("confirming", share_bar(share, CONFIRM_BAR), f"{share:.0%}")
    return drawn
