"""What `run` and `resume` share: a training in view, and how it ended."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli.views.text import Fit, duration, print_json, table, terminal_width
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.statistics.intervals import shown_rate

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.crew import Crew
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.result import RunResult
    from aimbot_lab.training.actors.group import ActorGroup

WIN_RATE_HEAD = "win rate [95 %]"
LESSON_HEAD = (
    *("#", "lesson", "passed at step", "episodes", "asks for", "evidence", "of the last"),
    WIN_RATE_HEAD,
)
EXIT_CODES = {"FINISHED": 0, "FAILED": 1, "KILLED": 130}
LOOK = "Look at it: "
SHORT_ID = 12  # characters of a run's id that a person is shown to type


def train(
    request: "RunRequest",
    data_dir: Path | None,
    *,
    as_json: bool,
    news: str = "",
    crew: "Crew | None" = None,
    on: str | None = None,
) -> int:
    """The exit code of a training, which is shown while it runs and summarised at its end.

    `news` is said before it begins. This process leads the others of `crew`; its actors, if it has
    any, are `on` Ray or processes of this machine.
    """
    from aimbot_lab.cli.processes.stopping import STOPPING, STOPPING_TOGETHER, stop_on_signals
    from aimbot_lab.cli.views.view import training_view

    words = STOPPING_TOGETHER if crew is not None and crew.is_shared else STOPPING
    with training_view(request.run_name) as view, stop_on_signals(view.notice, words) as stop:
        if news:
            view.notice(news)
        view.stage("loading")
        from aimbot_lab.experiment.runs.crew import Crew
        from aimbot_lab.experiment.runs.run import run_curriculum

        with _placed_actors(request, on) as group:
            crew = crew or Crew(actors=group)
            result = run_curriculum(
                request, view, should_stop=stop, on_outage=view.notice, crew=crew
            )
    _show(result, data_dir, as_json=as_json)
    return EXIT_CODES[result.status]


def _placed_actors(
    request: "RunRequest", on: str | None
) -> "AbstractContextManager[ActorGroup | None]":
    actors = request.curriculum.config.train.actors
    if on is None or actors is None:
        return nullcontext()
    from aimbot_lab.cluster.actors import connected_actors

    return connected_actors(actors.number)


def _show(result: "RunResult", data_dir: Path | None, *, as_json: bool) -> None:
    from aimbot_lab.experiment.runs.result import outcome

    if as_json:
        print_json(result.as_json())
    else:
        click.echo(summary(result, terminal_width()))
    if result.status != "FINISHED":
        click.echo(one_line(outcome(result)), err=True)
    for line in _shortcomings(result):
        click.echo(one_line(line), err=True)
    if way := resume_command(result, data_dir):
        click.echo(f"To resume it: {way}", err=True)
    click.echo(f"{LOOK}{view_command(result.tracking_uri, data_dir)}", err=as_json)


def _shortcomings(result: "RunResult") -> list[str]:
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
    return lines


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
            shown_rate(lesson.win_rate, lesson.lower, lesson.upper) + lesson.level,
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
        f"({result.steps_per_second:,.0f} steps/s)"
    )
    fit = Fit(width, cut="lesson", spare=["of the last", WIN_RATE_HEAD])
    return "\n\n".join(
        [
            head,
            table(LESSON_HEAD, lessons, fit),
            table(("target", "difficulty", "episodes", WIN_RATE_HEAD), cells),
        ]
    )
