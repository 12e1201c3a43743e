"""A run in plain text: where it stands, which lessons were passed, and how it ended."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli.text import Fit, cut, duration, print_json, table, terminal_width
from aimbot_lab.foundation.shown_text import one_line, shown_rate, shown_return, shown_speed

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import CurriculumView, LessonReport
    from aimbot_lab.experiment.runs.result import RunResult
    from aimbot_lab.training.run_hooks import TrainingSnapshot

WIN_RATE_HEAD, RETURN_HEAD = "win rate [95 %]", "mean return"
LESSON_HEAD = (
    *("#", "lesson", "passed at step", "episodes", "asks for", "evidence", "of the last"),
)
LOOK = "Look at it: "
SHORT_ID = 12  # characters of a run's id that a person is shown to type


def promotion_line(report: "LessonReport", step: int, *, width: int | None = None) -> str:
    """A passed lesson and its proof in one line, in fewer words to keep to `width`."""
    won = shown_rate(report.win_rate, report.lower, report.upper) + report.level
    where = f" at step {step:,}"
    begin = f"passed {report.name!r}{where} after {report.episodes:,} episodes"
    proofs = (report.proof(won), report.proof()) if report.measure else (f"win rate {won}", won)
    lines = [f"{begin}: {proof}" for proof in proofs]
    fitting = [line for line in lines if width is None or len(line) <= width]
    if width is None or fitting:
        return fitting[0]
    rest = f"{where}: {proofs[-1]}"
    return cut(report.name, width - len(rest)) + rest


def progress_line(snapshot: "TrainingSnapshot") -> str:
    """Where a training stands, in one line."""
    return (
        f"step {snapshot.step:,} of {snapshot.total_steps:,}  {lesson_line(snapshot.view)}  "
        f"{shown_speed(snapshot.steps_per_second)}  {time_left(snapshot)}"
    )


def lesson_line(view: "CurriculumView") -> str:
    """The lesson, its win rate with interval, and the threshold; its return without wins."""
    if not view.has_wins:
        earned = f"return {shown_return(view.mean_return)}"
        return (
            f"lesson {view.lesson + 1}/{view.lessons} {view.name!r} {earned}{measured_text(view)}"
        )
    won = shown_rate(view.win_rate.win_rate, view.win_rate.lower, view.win_rate.upper)
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


def show_result(result: "RunResult", data_dir: Path | None, *, as_json: bool) -> None:
    """Print how a run ended, what is missing of it, and how to resume it and to look at it."""
    from aimbot_lab.experiment.runs.result import outcome

    if as_json:
        print_json(result.as_json())
    else:
        click.echo(summary(result, terminal_width()))
    if result.status != "FINISHED":
        click.echo(one_line(outcome(result)), err=True)
    lines = []
    why = f" ({result.tracking_fault})" if result.tracking_fault else ""
    if result.entries_waiting:
        lines.append(
            f"{result.entries_waiting} tracked entries wait for the tracking store{why}; "
            "the next aimbot-lab command tries to deliver them"
        )
    if result.entries_refused:
        lines.append(f"the tracking store refused {result.entries_refused} entries for good{why}")
    if result.entries_dropped:
        lines.append(f"{result.entries_dropped} entries were not tracked: no room for them")
    if result.agent_folder is not None:
        lines.append(f"the agent is not with the run, but in {result.agent_folder}")
    for line in lines:
        click.echo(one_line(line), err=True)
    if way := resume_command(result, data_dir):
        click.echo(f"To resume it: {way}", err=True)
    click.echo(f"{LOOK}{view_command(result.tracking_uri, data_dir)}", err=as_json)


def resume_command(result: "RunResult", data_dir: Path | None) -> str:
    """The command that resumes a run; empty where it can't be resumed."""
    if result.resumes_at is None:
        return ""
    arguments = ["resume", result.run_id[:SHORT_ID]]
    if result.status == "FAILED":  # its steps are spent
        arguments += ["--set", f"train.total_steps={2 * result.steps}"]
    return _command(arguments, data_dir)


def view_command(tracking_uri: str, data_dir: Path | None) -> str:
    """What to paste into the shell, or open, to see the run."""
    if tracking_uri.startswith(("http://", "https://")):
        return tracking_uri
    if data_dir is not None or tracking_uri.endswith("/mlflow.db"):
        return _command(["ui"], data_dir)
    return _command(["ui", "--tracking-uri", tracking_uri], None)


def _command(arguments: Sequence[str], data_dir: Path | None) -> str:
    program = "aimbot-lab" if shutil.which("aimbot-lab") else _this_program()
    where = [] if data_dir is None else ["--data-dir", str(data_dir)]
    return f"{program} {shlex.join([*arguments, *where])}"


def _this_program() -> str:
    """How this command line was called, where its folder is not on the search path."""
    called = Path(sys.argv[0])
    if called.suffix == ".py":  # this package, or the training of a command with several
        return f"{shlex.quote(sys.executable)} -m aimbot_lab"
    return shlex.quote(str(called))


def summary(result: "RunResult", width: int | None) -> str:
    """The run in two short tables, at most `width` characters wide where that can be had."""
    lessons = [
        (
            number,
            lesson.name,
            "-" if lesson.ended_at_step is None else f"{lesson.ended_at_step:,}",
            f"{lesson.episodes:,}",
            lesson.asked or "-",
            lesson.found or "-",
            f"{lesson.window:,}" if lesson.window else "-",
            shown_rate(lesson.win_rate, lesson.lower, lesson.upper) + lesson.level
            if result.has_wins
            else shown_return(lesson.mean_return),
        )
        for number, lesson in enumerate(result.lessons, start=1)
    ]
    cells = [
        (
            cell.target,
            cell.difficulty or "-",
            f"{cell.episodes:,}",
            shown_rate(cell.win_rate, cell.lower, cell.upper),
        )
        for cell in result.cells
    ]
    head = (
        f"run {result.run_id}  {result.status}\n"
        f"seed {result.seed}  {result.steps:,} steps in {duration(result.seconds)} of training "
        f"({shown_speed(result.steps_per_second)})"
    )
    worth = WIN_RATE_HEAD if result.has_wins else RETURN_HEAD
    fit = Fit(width, cut="lesson", spare=["of the last", worth])
    parts = [head, table((*LESSON_HEAD, worth), lessons, fit)]
    if result.has_wins:
        parts.append(table(("target", "difficulty", "episodes", WIN_RATE_HEAD), cells))
    return "\n\n".join(parts)
