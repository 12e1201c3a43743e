"""`aimbot-lab run`: train by a curriculum."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.text import Fit, duration, print_json, rate, table, terminal_width

if TYPE_CHECKING:
    from aimbot_lab.experiment.document import LoadedCurriculum
    from aimbot_lab.experiment.result import RunResult
    from aimbot_lab.tracking.data_folder import DataFolder

LESSON_HEAD = ("#", "lesson", "passed at step", "episodes", "of the last", "win rate [95 %]")
EXIT_CODES = {"FINISHED": 0, "FAILED": 1, "KILLED": 130}


class RunOptions(TypedDict):
    """The options of `run` besides `--set`."""

    allow_env: tuple[str, ...]
    seed: int | None
    name: str | None
    dry_run: bool
    data_dir: Path | None
    tracking_uri: str | None
    as_json: bool


@click.command(short_help="Train an agent by a curriculum.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@options.overrides
@options.allow_env
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the run; same as --set seed=N.")
@click.option("--name", help="Name of the run in tables and charts. [default: the curriculum's]")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only print the plan: lessons, their mixes, the episodes that their tests take at assumed "
    "win rates, what may keep them from being passed, and the whole configuration.",
)
@options.data_dir
@options.tracking_uri
@options.as_json
def run(file: Path, overrides: tuple[str, ...], **given: Unpack[RunOptions]) -> int:
    """Train an agent by the curriculum in FILE and track the run.

    Ctrl-C, SIGTERM or closing the terminal saves the agent and ends the run once the present
    update is done; a second Ctrl-C ends it at once, unsaved.

    Ends with exit code 0 when all lessons are passed, 1 when the steps were spent before, 2 for
    a fault in FILE or an option, 130 when stopped.

    \b
    Example:
      aimbot-lab run curricula/goto.yaml --seed 2 --set env.rewards.spin_penalty=0.5
    """
    from aimbot_lab.experiment.document import load_curriculum

    seeds = () if given["seed"] is None else (f"seed={given['seed']}",)
    curriculum = load_curriculum(file, (*overrides, *seeds), allowed_env=given["allow_env"])
    folder = _destination(curriculum, given)
    if given["dry_run"]:
        from aimbot_lab.cli.plan import show_plan
        from aimbot_lab.experiment.plan import plan

        show_plan(plan(curriculum), as_json=given["as_json"])
        return 0
    result = _train(curriculum, folder, given)
    _show(result, given["data_dir"], as_json=given["as_json"])
    return EXIT_CODES[result.status]


def _train(curriculum: "LoadedCurriculum", folder: "DataFolder", given: RunOptions) -> "RunResult":
    from aimbot_lab.cli.stopping import stop_on_signals
    from aimbot_lab.cli.view import training_view

    name = given["name"] or curriculum.name
    with training_view(name) as view, stop_on_signals(view.notice) as stop:
        view.stage("loading")
        from aimbot_lab.experiment.run import RunRequest, run_curriculum

        request = RunRequest(curriculum, folder, given["name"], given["tracking_uri"])
        return run_curriculum(request, view, should_stop=stop, on_trouble=view.notice)


def _destination(curriculum: "LoadedCurriculum", given: RunOptions) -> "DataFolder":
    """The data folder, once all about where the run goes is found to be usable."""
    from aimbot_lab.tracking.data_folder import locate_data_folder
    from aimbot_lab.tracking.limits import checked_run_name
    from aimbot_lab.tracking.opening import check_destination

    checked_run_name(curriculum.name if given["name"] is None else given["name"])
    folder = locate_data_folder(given["data_dir"])
    check_destination(folder, curriculum.config.tracking, tracking_uri=given["tracking_uri"])
    return folder


def _show(result: "RunResult", data_dir: Path | None, *, as_json: bool) -> None:
    from aimbot_lab.experiment.result import outcome

    if as_json:
        print_json(result.as_json())
    else:
        click.echo(summary(result, terminal_width()))
    if result.status != "FINISHED":
        click.echo(outcome(result), err=True)
    if result.entries_waiting:
        click.echo(
            f"{result.entries_waiting} tracked entries wait for the tracking store; "
            "the next aimbot-lab command delivers them",
            err=True,
        )
    if result.entries_dropped:
        click.echo(f"{result.entries_dropped} entries were not tracked: no room for them", err=True)
    if result.agent_folder is not None:
        click.echo(f"the agent is not with the run, but in {result.agent_folder}", err=True)
    click.echo(f"Look at it: {way_to_look(result.tracking_uri, data_dir)}", err=as_json)


def way_to_look(tracking_uri: str, data_dir: Path | None) -> str:
    """What to paste into the shell, or open, to see the run."""
    if tracking_uri.startswith(("http://", "https://")):
        return tracking_uri
    program = "aimbot-lab" if shutil.which("aimbot-lab") else _this_program()
    if data_dir is not None:
        return f"{program} ui --data-dir {shlex.quote(str(data_dir))}"
    if tracking_uri.endswith("/mlflow.db"):
        return f"{program} ui"
    return f"{program} ui --tracking-uri {shlex.quote(tracking_uri)}"


def _this_program() -> str:
    """How this command line was called, where its folder is not on the search path."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
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
            lesson.window or "-",
            rate(lesson.win_rate, lesson.lower, lesson.upper),
        )
        for number, lesson in enumerate(result.lessons, start=1)
    ]
    cells = [
        (
            cell.target,
            cell.difficulty or "-",
            cell.episodes,
            rate(cell.win_rate, cell.lower, cell.upper),
        )
        for cell in result.cells
    ]
    head = (
        f"run {result.run_id}  {result.status}\n"
        f"seed {result.seed}  {result.steps:,} steps in {duration(result.seconds)} "
        f"({result.steps_per_second:,.0f} steps/s)"
    )
    return "\n\n".join(
        [
            head,
            table(LESSON_HEAD, lessons, Fit(width, cut="lesson", spare=["of the last"])),
            table(("target", "difficulty", "episodes", "win rate [95 %]"), cells),
        ]
    )
