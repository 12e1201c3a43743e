"""`aimbot-lab run`: train by a curriculum."""

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_files, complete_runs
from aimbot_lab.cli.views.training import train

if TYPE_CHECKING:
    from aimbot_lab.experiment.config.document import LoadedCurriculum
    from aimbot_lab.experiment.runs.starting import InitialAgent
    from aimbot_lab.tracking.data_folder import DataFolder


class RunOptions(TypedDict):
    """The options of `run` besides `--set`."""

    allow_env: tuple[str, ...]
    seed: int | None
    name: str | None
    dry_run: bool
    resume: bool
    seeds: int | None
    tags: tuple[str, ...]
    init_from: str | None
    start_lesson: int
    place: options.Place
    as_json: bool


@click.command(short_help="Train an agent by a curriculum.")
@click.argument(
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    shell_complete=complete_files("curriculum"),
)
@options.overrides
@options.allow_env
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the run; same as --set seed=N.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=1000),
    help="Train so many seeds, from the curriculum's on, one beside the other on each core, and "
    "report their common result. Each is a run of its own.",
)
@click.option("--name", help="Name of the run in tables and charts. [default: the curriculum's]")
@options.tags
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only print the plan: lessons, their mixes, the episodes that their tests take at assumed "
    "win rates, what may keep them from being passed, and the whole configuration.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Resume the newest unfinished run of this curriculum and seed; start one if there "
    "is none.",
)
@click.option(
    "--init-from",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Begin with the last agent of RUN (an id, the beginning of it, or latest), or with the "
    "one in a folder that `aimbot-lab export` wrote: its weights and scaling, a new optimiser.",
)
@click.option(
    "--start-lesson",
    default=1,
    type=click.IntRange(min=1),
    help="Leave out the lessons before this one, counted from 1.",
)
@options.place
@options.as_json
def run(file: Path, overrides: tuple[str, ...], **given: Unpack[RunOptions]) -> int:
    """Train an agent by the curriculum in FILE and track the run.

    FILE is a path or a name: a file curricula/NAME.yaml or NAME.yaml here, else a shipped one.

    Ctrl-C, SIGTERM or closing the terminal saves the agent and ends the run once the present
    update is done; a second Ctrl-C ends it at once, unsaved. Either way, and after a crash,
    `aimbot-lab resume` continues it as if nothing had happened.

    Ends with exit code 0 when all lessons are passed, 1 when the steps were spent before, 2 for
    a fault in FILE or an option, 130 when stopped.

    \b
    Examples:
      aimbot-lab run goto --seed 2 --set env.rewards.spin_penalty=0.5
      aimbot-lab run goto --seeds 5
    """
    from aimbot_lab.cli.commands.resume import resume_newest
    from aimbot_lab.experiment.config.document import load_curriculum
    from aimbot_lab.experiment.runs.request import RunRequest

    seeds = () if given["seed"] is None else (f"seed={given['seed']}",)
    curriculum = load_curriculum(file, (*overrides, *seeds), allowed_env=given["allow_env"])
    folder = _destination(curriculum, given)
    curriculum, start = _started(curriculum, folder, given)
    if given["dry_run"]:
        return _show_plan(curriculum, as_json=given["as_json"])
    tags = options.parsed_tags(given["tags"])
    if given["seeds"] is not None:
        return _train_seeds(file, overrides, curriculum, start=start, given=given)
    request = RunRequest(
        curriculum, folder, given["name"], given["place"].tracking_uri, tags=tags, start=start
    )
    begin = resume_newest if given["resume"] else train
    return begin(request, given["place"].data_dir, as_json=given["as_json"])


def _show_plan(curriculum: "LoadedCurriculum", *, as_json: bool) -> int:
    from aimbot_lab.cli.views.plan import show_plan
    from aimbot_lab.experiment.runs.plan import plan_curriculum

    show_plan(plan_curriculum(curriculum), as_json=as_json)
    return 0


def _train_seeds(
    file: Path,
    overrides: tuple[str, ...],
    curriculum: "LoadedCurriculum",
    *,
    start: "InitialAgent | None",
    given: RunOptions,
) -> int:
    from aimbot_lab.cli.processes.seeds import SeedsRequest, train_seeds
    from aimbot_lab.experiment.config.one_core import one_core_overrides

    if given["resume"] or str(file) == "-":
        what = "--resume: aimbot-lab resume RUN resumes one" if given["resume"] else "-"
        raise click.UsageError(f"--seeds can't be used with {what}")
    words = [str(file), *_each("--set", overrides), *_each("--allow-env", given["allow_env"])]
    words += _each("--tag", given["tags"])
    words += ["--start-lesson", str(given["start_lesson"])]
    words += [] if start is None else ["--init-from", start.ref.source]
    for option, value in zip(("--data-dir", "--tracking-uri"), given["place"], strict=True):
        words += [] if value is None else [option, str(value)]
    one_core = _each("--set", one_core_overrides(curriculum.config))
    first, seeds = curriculum.config.seed, given["seeds"] or 1
    request = SeedsRequest(words, one_core, given["name"], first_seed=first, seeds=seeds)
    return train_seeds(request, given["place"], as_json=given["as_json"])


def _each(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _started(
    curriculum: "LoadedCurriculum", folder: "DataFolder", given: RunOptions
) -> "tuple[LoadedCurriculum, InitialAgent | None]":
    """The curriculum from the lesson to start with, and the agent to begin with, which fits."""
    source, lesson = given["init_from"], given["start_lesson"]
    if source is None and lesson == 1:
        return curriculum, None
    from aimbot_lab.experiment.runs.starting import (
        check_compatible,
        find_initial_agent,
        from_lesson,
    )

    curriculum = from_lesson(curriculum, lesson)
    if source is None:
        return curriculum, None
    start = find_initial_agent(source, folder, tracking_uri=_store(curriculum, given))
    check_compatible(start, curriculum.config)
    click.echo(f"starts with {start.description}", err=True)
    return curriculum, start


def _store(curriculum: "LoadedCurriculum", given: RunOptions) -> str | None:
    """The address that a run of `curriculum` is tracked at, if any is named."""
    return given["place"].tracking_uri or curriculum.config.tracking.uri


def _destination(curriculum: "LoadedCurriculum", given: RunOptions) -> "DataFolder":
    """The data folder, once all about where the run goes is found to be usable."""
    from aimbot_lab.tracking.limits import checked_run_name
    from aimbot_lab.tracking.runs.opening import check_destination

    checked_run_name(curriculum.name if given["name"] is None else given["name"])
    place = given["place"]
    folder = place.folder
    check_destination(folder, curriculum.config.tracking, tracking_uri=place.tracking_uri)
    return folder
