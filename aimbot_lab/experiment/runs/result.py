"""What a run came to for its caller and for `--json`."""

from dataclasses import asdict, dataclass
from typing import Any

from aimbot_lab.curriculum.forgetting_monitor import Regression
from aimbot_lab.curriculum.reports import CellReport, LessonReport
from aimbot_lab.tracking.tracker import RunStatus

RESULT_NAME = "result.json"  # among the run's artifacts
NOT_KEPT = frozenset(
    {
        *("run_id", "tracking_uri", "experiment_id", "seconds", "steps_per_second"),
        *("entries_waiting", "entries_refused", "entries_dropped", "tracking_fault"),
        *("agent_folder", "resumes_at"),
    }
)


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
    lessons: tuple[LessonReport, ...]  # all of the curriculum, in order
    cells: tuple[CellReport, ...]  # of the last lesson begun
    held_back_by: tuple[CellReport, ...]  # cells that have not passed and are weakest
    # (where win rates are tested)
    regressions: tuple[Regression, ...]  # what was lost of earlier lessons, and what came back
    entries_waiting: int  # tracked numbers and files that have not reached the store
    entries_refused: int = 0  # tracked numbers and files that the store will never take
    tracking_fault: str | None = None  # why entries wait, were refused or were dropped
    entries_dropped: int = 0  # tracked numbers and files that the disk had no room for
    agent_folder: str | None = None  # where the agents lie that the run could not keep
    init_from: str | None = None  # the run, or the folder, whose agent it began with
    resumes_at: int | None = None  # the step it would go on from; None: finished, or can't be
    missing: str = ""  # what the last lesson begun lacks, where that is not `held_back_by`

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}

    def kept(self) -> dict[str, Any]:
        """What the run keeps of it: plain values that do not depend on the machine or the store."""
        return {key: value for key, value in self.as_json().items() if key not in NOT_KEPT}


def percent(rate: float | None) -> str:
    """A win rate as a person reads it."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def cell_name(target: str, difficulty: int) -> str:
    """A cell as a person reads it."""
    return f"{target} {difficulty}" if difficulty else target


def outcome(result: RunResult) -> str:
    """One sentence on how the run ended."""
    passed = sum(lesson.ended_at_step is not None for lesson in result.lessons)
    if passed == len(result.lessons):
        return f"All {passed} lessons passed."
    lesson = f"lesson {passed + 1} ({result.lessons[passed].name})"
    if result.status == "KILLED":
        return f"Stopped in {lesson}."
    if result.status == "FINISHED":
        return "All steps taken."
    held = ", ".join(
        f"{cell_name(cell.target, cell.difficulty)} "
        + (f"at {percent(cell.win_rate)}" if cell.episodes else "(no episode counted yet)")
        for cell in result.held_back_by
    )
    why = f"; held back by {held}" if held else ""
    if result.missing:
        why = f"; missing: {result.missing}"
    return f"Steps spent in {lesson}{why}."
