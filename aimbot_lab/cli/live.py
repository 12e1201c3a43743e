"""The live table of a training on a terminal."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from aimbot_lab.cli.text import duration, rate
from aimbot_lab.cli.view import BAR, promotion_line, time_left

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import CellReport, CurriculumView, LessonReport
    from aimbot_lab.training.observer import TrainingSnapshot


class LiveView:
    """Draws stages and promotions as lines, and the present state below them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the table off the terminal; the lines stay."""
        self._live.stop()

    def stage(self, text: str) -> None:
        """Show what begins."""
        self._live.update(Text(f"{self._name}: {text} ...", style="bold"))

    def promotion(self, report: "LessonReport", step: int) -> None:
        """Leave a line about the passed lesson."""
        self._console.print(Text(f"✓ {promotion_line(report, step)}", style="green"))

    def progress(self, snapshot: "TrainingSnapshot") -> None:
        """Draw where the training stands."""
        view = snapshot.view
        head = Text.assemble(
            (f"{self._name}  ", "bold"),
            f"lesson {view.lesson + 1} of {view.lessons}: ",
            (view.name, "bold cyan"),
        )
        steps = Text(
            f"step {snapshot.step:,} of {snapshot.total_steps:,}   "
            f"{snapshot.steps_per_second:,.0f} steps/s   {duration(snapshot.seconds)} gone, "
            f"{time_left(snapshot)}"
        )
        parts = Group(head, steps, _bar(snapshot.step / snapshot.total_steps, 72), _win_rates(view))
        self._live.update(parts)


def _bar(share: float, width: int) -> ProgressBar:
    return ProgressBar(total=1.0, completed=min(share, 1.0), width=width)


def _win_rates(view: "CurriculumView") -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("", "win rate", "95 % interval", "episodes"):
        table.add_column(column, justify="left")
    pooled = view.win_rate
    threshold = "" if view.threshold is None else f", threshold {view.threshold:g}"
    won = rate(pooled.win_rate, pooled.lower, pooled.upper)
    table.add_row("all", _bar(pooled.win_rate or 0.0, BAR), won + threshold, str(view.window))
    if len(view.cells) > 1:
        for cell in view.cells:
            table.add_row(*_cell_row(cell))
    return table


def _cell_row(cell: "CellReport") -> tuple[str, ProgressBar, str, str]:
    name = f"{cell.target} {cell.difficulty}" if cell.difficulty else cell.target
    won = rate(cell.win_rate, cell.lower, cell.upper)
    return name, _bar(cell.win_rate or 0.0, BAR), won, str(cell.episodes)
