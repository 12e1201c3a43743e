"""The live table of a training on a terminal."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from aimbot_lab.cli.processes.terminal import quiet_keys
from aimbot_lab.cli.views.text import duration
from aimbot_lab.cli.views.training_text import measured_text, promotion_line, time_left
from aimbot_lab.foundation.shown_text import one_line, terminal_lines
from aimbot_lab.foundation.statistics.intervals import shown_rate

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import CellReport, CurriculumView, LessonReport
    from aimbot_lab.training.observer import TrainingSnapshot

WIDEST_BAR = 72
WIN_BAR = 24  # characters of a win rate's bar, where there is room
MIN_WIN_BAR = 12
NOTICES_KEPT = 3
BESIDE_WIN_BAR = 44  # characters of the other columns of the win rates


@contextmanager
def live_view(name: str) -> Iterator["LiveView"]:
    """A view that is drawn on standard error while the block runs; its table goes with it."""
    view = LiveView(name, Console(stderr=True))
    live = Live(
        console=view.console, get_renderable=view.draw, refresh_per_second=8, transient=True
    )
    with quiet_keys(sys.stderr.fileno()), live:
        yield view


class LiveView:
    """Stages and promotions as lines, and the present state, to be drawn below them.

    No row is wider than the terminal, because rich counts lines to draw over them.
    """

    def __init__(self, name: str, console: Console) -> None:
        self.console = console
        self._name = one_line(name)
        self._stage = "starting"
        self._snapshot: TrainingSnapshot | None = None
        self._notices: deque[str] = deque(maxlen=NOTICES_KEPT)

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

    def notice(self, text: str) -> None:
        """Show `text` below the rest, until there are newer ones."""
        self._notices.append(terminal_lines(text))  # drawn by the thread that refreshes

    def draw(self) -> RenderableType:
        """What is shown at this moment."""
        snapshot = self._snapshot
        if snapshot is None:
            parts: list[RenderableType] = [cut_line(f"{self._name}: {self._stage} ...", "bold")]
        else:
            parts = self._training(snapshot)
        return Group(*parts, *(Text(notice, style="bold yellow") for notice in [*self._notices]))

    def _training(self, snapshot: "TrainingSnapshot") -> list[RenderableType]:
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
    left, speed = time_left(snapshot), f"{snapshot.steps_per_second:,.0f}"
    steps = f"{snapshot.step:,} of {snapshot.total_steps:,}"
    whole = f"step {steps}   {speed} steps/s   {duration(snapshot.seconds)} gone, {left}"
    return whole if len(whole) <= width else f"{steps}  {speed}/s  {left}"


def share_bar(share: float, width: int) -> ProgressBar:
    """A bar of `width` characters that is full at a share of 1."""
    return ProgressBar(total=1.0, completed=min(share, 1.0), width=width)


def _win_rates(view: "CurriculumView", console: Console) -> Table:
    pooled = view.win_rate
    won = shown_rate(pooled.win_rate, pooled.lower, pooled.upper)
    rows = [("all", pooled.win_rate, won, str(view.window))]
    if len(view.cells) > 1:
        rows += map(_cell_row, view.cells)
    against = "" if view.threshold is None else f"against {view.threshold:g}"
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
    name = f"{cell.target} {cell.difficulty}" if cell.difficulty else cell.target
    won = shown_rate(cell.win_rate, cell.lower, cell.upper)
    return name, cell.win_rate, won, str(cell.episodes)
