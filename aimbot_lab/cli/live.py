"""The live tables of a training and of a sweep; rich is loaded with them, on a terminal alone."""

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from aimbot_lab.cli.stopping import quiet_keys
from aimbot_lab.cli.text import (
    RETURN_HEAD,
    confirmed_lines,
    duration,
    measured_text,
    number,
    promotion_line,
    short_names,
    state_line,
    time_left,
    value,
)
from aimbot_lab.foundation.shown_text import (
    one_line,
    shown_measure,
    shown_rate,
    shown_return,
    shown_speed,
    terminal_lines,
)

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import CellReport, CurriculumView, LessonReport
    from aimbot_lab.sweep.coordinator import SweepSnapshot
    from aimbot_lab.sweep.report import TrialReport
    from aimbot_lab.training.run_hooks import TrainingSnapshot

WIDEST_BAR = 72
WIN_BAR = 24  # characters of a win rate's bar, where there is room
MIN_WIN_BAR = 12
NOTICES_KEPT = 3
BESIDE_WIN_BAR = 44  # characters of the other columns of the win rates
BAR, CONFIRM_BAR = 12, 24  # characters, in the table of a sweep
OTHER_LINES = 12  # of the screen that the table of trials leaves free
DRAWINGS_PER_SECOND = 8


class Drawing(ABC):
    """The present state and the newest notices, drawn anew over what was drawn before.

    No row is wider than the terminal, because rich counts lines to draw over them.
    """

    def __init__(self, name: str, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._name = one_line(name)
        self._notices: deque[str] = deque(maxlen=NOTICES_KEPT)

    def notice(self, text: str) -> None:
        """Show `text` below the rest, until there are newer ones."""
        self._notices.append(terminal_lines(text))  # drawn by the thread that refreshes

    def draw(self) -> RenderableType:
        """What is shown at this moment."""
        notices = [Text(notice, style="bold") for notice in [*self._notices]]
        return Group(*self._state(), *notices)

    @abstractmethod
    def _state(self) -> list[RenderableType]:
        """Where the work stands."""


Drawn = TypeVar("Drawn", bound=Drawing)


@contextmanager
def drawn(view: Drawn) -> Iterator[Drawn]:
    """Draw `view` on standard error while the block runs; its table goes with it."""
    live = Live(
        console=view.console,
        get_renderable=view.draw,
        refresh_per_second=DRAWINGS_PER_SECOND,
        transient=True,
    )
    with quiet_keys(sys.stderr.fileno()), live:
        yield view


class LiveView(Drawing):
    """A training: stages and promotions as lines, and the present state, drawn below them."""

    _stage = "starting"
    _snapshot: "TrainingSnapshot | None" = None

    def stage(self, text: str) -> None:
        """Show what begins."""
        self._stage, self._snapshot = text, None

    def promotion(self, report: "LessonReport", step: int) -> None:
        """Leave a line about the passed lesson."""
        line = promotion_line(report, step, width=self.console.width - 2)
        self.console.print(cut_line(f"✓ {line}", style="green"))

    def progress(self, snapshot: "TrainingSnapshot") -> None:
        """Draw where the training stands."""
        self._snapshot = snapshot

    def glance(self, snapshot: "TrainingSnapshot") -> None:
        """The same."""
        self.progress(snapshot)

    def _state(self) -> list[RenderableType]:
        if (snapshot := self._snapshot) is None:
            return [cut_line(f"{self._name}: {self._stage} ...", "bold")]
        view, width = snapshot.view, self.console.width
        head = Text.assemble(
            (f"{self._name}  ", "bold"),
            f"lesson {view.lesson + 1} of {view.lessons}: ",
            (one_line(view.name), "bold cyan"),
            measured_text(view),
            no_wrap=True,
            overflow="ellipsis",
        )
        # In a table, because a bar by itself does not end its line.
        bar = Table.grid()
        share = snapshot.step / snapshot.total_steps
        bar.add_row(share_bar(share, min(WIDEST_BAR, width)))
        return [head, cut_line(_steps(snapshot, width)), bar, _win_rates(view, self.console)]


def cut_line(text: str, style: str = "") -> Text:
    """`text` as one row, cut at the edge of the terminal."""
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def _steps(snapshot: "TrainingSnapshot", width: int) -> str:
    left, speed = time_left(snapshot), snapshot.steps_per_second
    steps = f"{snapshot.step:,} of {snapshot.total_steps:,}"
    whole = f"step {steps}   {shown_speed(speed)}   {duration(snapshot.seconds)} elapsed, {left}"
    return whole if len(whole) <= width else f"{steps}  {speed:,.0f}/s  {left}"


def share_bar(share: float, width: int) -> ProgressBar:
    """A bar of `width` characters that is full at a share of 1."""
    return ProgressBar(total=1.0, completed=min(share, 1.0), width=width)


def _win_rates(view: "CurriculumView", console: Console) -> Table:
    """Win rates of all cells together and of each, or the return where there are none."""
    if not view.has_wins:
        table = Table(RETURN_HEAD, "episodes", box=None, pad_edge=False)
        table.add_row(shown_return(view.mean_return), str(view.window))
        return table
    pooled = view.win_rate
    won = shown_rate(pooled.win_rate, pooled.lower, pooled.upper)
    rows = [("all", pooled.win_rate, won, str(view.window))]
    if len(view.cells) > 1:
        rows += map(_cell_row, view.cells)
    against = (
        "" if view.threshold is None else f"against {shown_measure('win_rate', view.threshold)}"
    )
    width = min(WIN_BAR, console.width - BESIDE_WIN_BAR)
    has_bars = width >= MIN_WIN_BAR
    table = Table(box=None, pad_edge=False)
    for head in ("", *[against] * has_bars, "win rate [95 %]", "episodes"):
        table.add_column(head, no_wrap=True, overflow="ellipsis")
    for name, win_rate, won, episodes in rows:
        bar = _win_bar(win_rate or 0.0, view.threshold, width, console)
        table.add_row(name, *[bar] * has_bars, won, episodes)
    return table


def _win_bar(share: float, threshold: float | None, width: int, console: Console) -> Text:
    """A bar that is full at a share of 1, with a mark at `threshold`, and green from there on."""
    line, mark = "-|" if console.options.ascii_only else "━┃"
    colour = "bar.finished" if share >= (threshold or 0.0) else "bar.complete"
    full, rest = round(share * width), line if console.color_system else " "
    bar = Text.assemble(
        (line * full, "cyan" if threshold is None else colour), (rest * (width - full), "bar.back")
    )
    if threshold is None:
        return bar
    place = min(round(threshold * width), width - 1)
    return Text.assemble(bar[:place], (mark, "bold"), bar[place + 1 :])


def _cell_row(cell: "CellReport") -> tuple[str, float | None, str, str]:
    from aimbot_lab.foundation.episodes import Cell

    won = shown_rate(cell.win_rate, cell.lower, cell.upper)
    return Cell(cell.target, cell.difficulty).shown, cell.win_rate, won, str(cell.episodes)


class LiveSweepView(Drawing):
    """A sweep: the trials at work, the best ones, and what else there is to know."""

    _snapshot: "SweepSnapshot | None" = None

    def progress(self, snapshot: "SweepSnapshot") -> None:
        """Draw where the sweep stands."""
        self._snapshot = snapshot

    def _state(self) -> list[RenderableType]:
        if (snapshot := self._snapshot) is None:
            return [cut_line(f"{self._name}: starting the workers ...", "bold")]
        parts: list[RenderableType] = [cut_line(f"{self._name}  {state_line(snapshot)}", "bold")]
        if snapshot.report.trials:
            parts.append(self._trials(snapshot))
        parts += [cut_line(text) for _, text in confirmed_lines(snapshot.report)]
        if snapshot.report.status == "confirming":
            report = snapshot.report
            at_work = [
                share for (stage, _), share in snapshot.at_work.items() if stage == "confirm"
            ]
            share = (report.confirm_ended + sum(at_work)) / max(report.to_confirm, 1)
            drawn = Table.grid(padding=(0, 1))
            drawn.add_row("confirming", share_bar(share, CONFIRM_BAR), f"{100 * share:.0f} %")
            parts.append(drawn)
        return parts

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
                _trial_state(trial, snapshot),
                "-" if trial.seconds is None else duration(trial.seconds),
                style="bold green" if is_best else None,
            )
        return drawn


def _trial_state(trial: "TrialReport", snapshot: "SweepSnapshot") -> RenderableType:
    share = snapshot.at_work.get(("search", trial.number))
    if trial.state == "running" and share is not None:
        return share_bar(share, BAR)
    is_best = trial.number == snapshot.report.best
    elsewhere = f"on {trial.host}" if trial.state == "running" and trial.host else trial.state
    return Text("best so far" if is_best else elsewhere)
