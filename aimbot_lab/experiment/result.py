"""What a run came to: for its caller, for `--json`, and as the note on the run's page."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aimbot_lab.curriculum.reports import CellReport, LessonReport
from aimbot_lab.tracking.tracker import RunStatus


@dataclass(frozen=True)
class RunResult:
    """How a run ended and where it is tracked."""

    run_id: str
    name: str
    status: RunStatus  # FINISHED: reached its goal; FAILED: did not; KILLED: stopped
    tracking_uri: str
    experiment_id: str
    seed: int
    steps: int  # environment steps
    seconds: float  # of training
    steps_per_second: float
    state_sha256: str  # of weights, optimiser and curriculum state
    lessons: tuple[LessonReport, ...]
    cells: tuple[CellReport, ...]  # of the last lesson begun
    held_back_by: tuple[CellReport, ...]  # cells that have not passed and are weakest
    entries_waiting: int  # tracked numbers and files that have not reached the store

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}


def percent(rate: float | None) -> str:
    """A win rate as a person reads it."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def cell_name(target: str, difficulty: int) -> str:
    """A cell as a person reads it."""
    return f"{target} {difficulty}" if difficulty else target


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def note(result: RunResult, curriculum: str) -> str:
    """The run in Markdown: outcome, lessons, cells, and how to run it again."""
    lessons = [
        (
            number,
            lesson.name.replace("|", "/"),
            "-" if lesson.ended_at_step is None else f"{lesson.ended_at_step:,}",
            f"{lesson.episodes:,}",
            percent(lesson.win_rate),
            f"{percent(lesson.lower)} to {percent(lesson.upper)}",
        )
        for number, lesson in enumerate(result.lessons, start=1)
    ]
    cells = [
        (
            cell_name(cell.target, cell.difficulty),
            cell.episodes,
            percent(cell.win_rate),
            f"{percent(cell.lower)} to {percent(cell.upper)}",
        )
        for cell in result.cells
    ]
    return "\n\n".join(
        [
            f"**{outcome(result)}** {result.steps:,} steps in {result.seconds:.0f} s "
            f"({result.steps_per_second:,.0f} a second), seed {result.seed}.",
            "### Lessons",
            _table(
                ("#", "lesson", "passed at step", "episodes", "win rate", "95 % interval"), lessons
            ),
            "### Last lesson by target and difficulty",
            _table(("cell", "episodes", "win rate", "95 % interval"), cells),
            "Win rates are taken over the last episodes of a lesson, in the order in which they "
            "began, so that early wins do not count before the losses that began with them.",
            f"Run it again: `aimbot-lab run {curriculum} --seed {result.seed}`. "
            "`curriculum.yaml` is the file as written, `resolved.yaml` with every default.",
        ]
    )


def outcome(result: RunResult) -> str:
    """One sentence on how the run ended."""
    passed = sum(lesson.ended_at_step is not None for lesson in result.lessons)
    if result.status == "KILLED":
        return f"Stopped in lesson {len(result.lessons)} ({result.lessons[-1].name})."
    if result.status == "FINISHED":
        whole = passed == len(result.lessons)
        return f"All {passed} lessons passed." if whole else "All steps taken."
    held = ", ".join(
        f"{cell_name(cell.target, cell.difficulty)} at {percent(cell.win_rate)}"
        for cell in result.held_back_by
    )
    return (
        f"Steps spent in lesson {len(result.lessons)} ({result.lessons[-1].name}); "
        f"held back by {held}."
    )
