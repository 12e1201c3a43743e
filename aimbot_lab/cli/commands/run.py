"""`aimbot-lab run` and `aimbot-lab resume`: train by a curriculum."""

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_files, complete_runs
from aimbot_lab.cli.text import SHORT_ID, duration, print_json, terminal_width
from aimbot_lab.cli.training import (
    begun_run,
    is_one_of_several,
    launch_training,
    own_place,
    run_key,
    take_part,
    train,
    train_seeds,
)
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.shown_text import one_line, shown_speed
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import checked_run_name

if TYPE_CHECKING:
    from aimbot_lab.experiment.config.document import LoadedCurriculum
    from aimbot_lab.experiment.runs.plan import (
        CurriculumPlan,
        Expectation,
        PlannedCell,
        PlannedLesson,
    )
    from aimbot_lab.experiment.runs.resume import Change
    from aimbot_lab.experiment.runs.run_record import InitialAgent, RunRequest
    from aimbot_lab.training.processes.exchange import Rank


class RunOptions(TypedDict):
    """The options of `run` besides `--set`."""

    allow_env: tuple[str, ...]
    seed: int | None
    name: str | None
    dry_run: bool
    forecast: bool
    resume: bool
    seeds: int | None
    launch: options.LaunchOptions
    tags: tuple[str, ...]
    init_from: str | None
    start_lesson: int
    place: options.StorePlace
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
    help="Train this many seeds, starting from the curriculum's, one on each core at a time, "
    "and report their combined result. Each is a run of its own.",
)
@options.launch
@click.option(
    "--name",
    envvar="MLFLOW_RUN_NAME",
    help="Name of the run in tables and charts. [env: MLFLOW_RUN_NAME; default: the curriculum's]",
)
@options.tags
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only print the plan: lessons, their mixes, how many episodes their tests take at "
    "several win rates, what may keep them from being passed, and the whole configuration.",
)
@click.option(
    "--forecast",
    is_flag=True,
    help="Like --dry-run, and say how long the steps take on this machine: a few seconds of the "
    "training are tried in memory.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Resume the newest unfinished run of this curriculum and seed, or start a new one.",
)
@click.option(
    "--init-from",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Start from the weights and scaling of the last agent of RUN (an id, its beginning, or "
    "latest), of a folder written by `aimbot-lab export`, or of a .zip written by "
    "stable-baselines3's `save`. The optimiser starts fresh.",
)
@click.option(
    "--start-lesson",
    default=1,
    type=click.IntRange(min=1),
    help="Start with this lesson (1 is the first), leaving out those before it.",
)
@options.trust
@options.place
@options.as_json
def run(file: Path, overrides: tuple[str, ...], **given: Unpack[RunOptions]) -> int:
    """Train an agent by the curriculum in FILE and track the run.

    FILE is a path or a name; names are looked up in curricula/, here, and among the shipped files.

    Ctrl-C, SIGTERM or closing the terminal saves the agent and ends the run after the current
    update; a second Ctrl-C ends it at once, unsaved. Either way, and after a crash,
    `aimbot-lab resume` continues it as if nothing had happened.

    Exit code 0 when all lessons are passed, 1 when the steps ran out first, 2 for a mistake in FILE
    or an option, 130 when stopped.

    \b
    Examples:
      aimbot-lab run goto --seed 2 --set env.rewards.spin_penalty=0.5
      aimbot-lab run goto --seeds 5
      aimbot-lab run goto --processes 2
      aimbot-lab run goto --processes 4:16 --on ray
    """
    own = own_place(given["launch"])
    if given["seeds"] is not None and (own.count > 1 or not given["launch"].is_one_process):
        raise click.UsageError("--seeds can't be used with several processes for one training")
    if is_one_of_several(own) and not (given["dry_run"] or given["forecast"]):
        return take_part(
            own,
            lambda: _joined(file, overrides, given, own),
            given["place"],
            as_json=given["as_json"],
        )
    return _run(file, overrides, given) if own.leads else 0


def _run(file: Path, overrides: tuple[str, ...], given: RunOptions) -> int:
    """The exit code of what is asked of one process, or of one that starts several."""
    place, launch = given["place"], given["launch"]
    request = _requested(file, overrides, given, says=launch.is_one_process)
    if given["dry_run"] or given["forecast"]:
        return _show_plan(request.curriculum, given)
    if given["seeds"] is not None:
        return _train_seeds(file, overrides, request, given=given)
    config = request.curriculum.config
    if not launch.shares(config):
        request, news = newest_prepared(request) if given["resume"] else (request, "")
        on, as_json = launch.on, given["as_json"]
        return train(request, place.data_dir, as_json=as_json, news=news, on=on)
    if str(file) == "-":
        raise click.UsageError(f"{launch.option} can't be used with -")
    launch.check(config)
    newest = newest_prepared(request)[0].resume if given["resume"] else None
    words = ["run", *_words(file, overrides, given, request.start)]
    words += [] if given["name"] is None else ["--name", given["name"]]
    words += [] if given["seed"] is None else ["--seed", str(given["seed"])]
    words += ["--resume"] if given["resume"] else []
    return launch_training(
        [*words, "--json"] if given["as_json"] else words,
        launch,
        request.data_folder,
        resumed=None if newest is None else newest.run_id,
        allow_env=given["allow_env"],
    )


def _joined(
    file: Path, overrides: tuple[str, ...], given: RunOptions, own: "Rank"
) -> "tuple[RunRequest, str]":
    """What the process at `own`, one of several, is to train."""
    if (begun := begun_run(given["place"].folder, run_key())) is not None:
        from aimbot_lab.experiment.runs.resume import check_resume
        from aimbot_lab.experiment.runs.run_record import RunRequest

        if own.leads:
            return _of(*check_resume(begun, begun.curriculum(), given["place"].folder))
        return RunRequest(begun.curriculum(), given["place"].folder, resume=begun), ""
    request = replace(_requested(file, overrides, given, says=own.leads), key=run_key())
    return newest_prepared(request) if given["resume"] and own.leads else (request, "")


def _requested(
    file: Path, overrides: tuple[str, ...], given: RunOptions, *, says: bool
) -> "RunRequest":
    """The run that is asked for, checked; `says` with which agent it starts."""
    from aimbot_lab.experiment.config.document import load_curriculum
    from aimbot_lab.experiment.runs.run_record import RunRequest

    seeds = () if given["seed"] is None else (f"seed={given['seed']}",)
    curriculum = load_curriculum(
        file, (*overrides, *seeds), allowed_env=given["allow_env"], may_run=always
    )
    from aimbot_lab.tracking.journal_tracker import check_destination

    checked_run_name(curriculum.name if given["name"] is None else given["name"])
    place = given["place"]
    folder = place.folder
    check_destination(folder, curriculum.config.tracking, tracking_uri=place.tracking_uri)
    curriculum, start = _started(curriculum, folder, given)
    if start is not None and says:
        click.echo(f"starts with {start.description}", err=True)
    tags = options.parsed_tags(given["tags"])
    uri = given["place"].tracking_uri
    return RunRequest(curriculum, folder, given["name"], uri, tags=tags, start=start)


def _show_plan(curriculum: "LoadedCurriculum", given: RunOptions) -> int:
    from aimbot_lab.experiment.runs.plan import plan_curriculum, sharing_plan, tried_speed

    launch, config, sharing = given["launch"], curriculum.config, None
    others = own_place(launch).count  # by torchrun, which then starts all
    if others > 1 or launch.shares(config):
        least, most = (others * number for number in launch.processes)
        sharing = sharing_plan(config, least, most, asked=launch.words)
    plan = plan_curriculum(curriculum, sharing=sharing)
    if given["forecast"]:
        if sharing is not None:
            raise click.UsageError("--forecast tries the speed of a single process")
        plan = replace(plan, speed=tried_speed(config))
        if plan.speed is None:
            click.echo("no forecast: the training ended, or took too long to begin", err=True)
    for warning in plan.warnings:
        click.echo(one_line(f"warning: {warning}"), err=True)
    if given["as_json"]:
        print_json(plan.as_json())
    else:
        click.echo("\n\n".join(plan_text(plan, terminal_width() or WIDEST)))
    return 0


def _train_seeds(
    file: Path, overrides: tuple[str, ...], request: "RunRequest", *, given: RunOptions
) -> int:
    if given["resume"] or str(file) == "-":
        what = "--resume: aimbot-lab resume RUN resumes one" if given["resume"] else "-"
        raise click.UsageError(f"--seeds can't be used with {what}")
    config, first = request.curriculum.config, request.curriculum.config.seed
    return train_seeds(
        _words(file, overrides, given, request.start),
        range(first, first + (given["seeds"] or 1)),
        given["place"],
        name=given["name"],
        one_core=options.repeated("--set", config.one_core),
        as_json=given["as_json"],
    )


def _words(
    file: Path, overrides: tuple[str, ...], given: RunOptions, start: "InitialAgent | None"
) -> list[str]:
    """What another process is told to train: all but name, seed and how it is shown."""
    words = [str(file), *options.repeated("--set", overrides)]
    words += options.repeated("--allow-env", given["allow_env"])
    words += options.repeated("--tag", given["tags"])
    words += ["--start-lesson", str(given["start_lesson"])]
    words += [] if start is None else ["--init-from", start.ref.source]
    return words + options.place_words(given["place"])


def _started(
    curriculum: "LoadedCurriculum", folder: DataFolder, given: RunOptions
) -> "tuple[LoadedCurriculum, InitialAgent | None]":
    """The curriculum from the lesson to start with, and the agent to begin with, which fits."""
    source, lesson = given["init_from"], given["start_lesson"]
    if source is None and lesson == 1:
        return curriculum, None
    from aimbot_lab.experiment.runs.agents import check_compatible, find_initial_agent, from_lesson

    curriculum = from_lesson(curriculum, lesson)
    if source is None:
        return curriculum, None
    config = curriculum.config
    uri = given["place"].tracking_uri or config.tracking.uri
    start = find_initial_agent(source, folder, config, tracking_uri=uri)
    check_compatible(start, config)
    return curriculum, start


@click.command(short_help="Continue a run that stopped or crashed.")
@click.argument("run", shell_complete=complete_runs)
@options.overrides
@click.option(
    "--take-over",
    is_flag=True,
    help="Continue even if another process may still train RUN. That process notices and stops, "
    "unless it runs an older version: then end it yourself.",
)
@options.launch
@options.trust
@options.place
@options.as_json
def resume(
    run: str,
    overrides: tuple[str, ...],
    *,
    take_over: bool,
    launch: options.LaunchOptions,
    place: options.StorePlace,
    as_json: bool,
) -> int:
    """Resume RUN (its id, the beginning of it, or "latest") from its last checkpoint.

    It ends as if it had never been interrupted: with the same weights to the bit, unless a GPU
    learned them, and each number tracked once. Only train.total_steps, which gives it more steps,
    train.learning_rate, train.callbacks, train.device and what can't change the result, such as
    env.threads, can be changed. A run that passed its last lesson is refused, and so is one that a
    process still trains: on this machine, in any container, until that process has ended; on
    another machine until it has not renewed its lease for 60 seconds. Exit codes are those of
    `aimbot-lab run`.

    \b
    Example:
      aimbot-lab resume latest --set train.total_steps=40000000
    """
    own = own_place(launch)

    def prepare() -> "tuple[RunRequest, str]":
        return _prepared(run, overrides, take_over=take_over, place=place, own=own)

    if is_one_of_several(own):
        return take_part(own, prepare, place, as_json=as_json)
    request, news = prepare()
    resumed, config = request.resume, request.curriculum.config
    if not launch.shares(config) or resumed is None:
        return train(request, place.data_dir, as_json=as_json, news=news, on=launch.on)
    launch.check(config)
    words = ["resume", resumed.run_id, *options.repeated("--set", overrides)]
    words += options.place_words(place)
    words += ["--take-over"] if take_over else []
    words += ["--json"] if as_json else []
    return launch_training(words, launch, place.folder, resumed=resumed.run_id)


def _prepared(
    run: str, overrides: tuple[str, ...], *, take_over: bool, place: options.StorePlace, own: "Rank"
) -> "tuple[RunRequest, str]":
    """The resumption, for the process at the place `own`."""
    from aimbot_lab.experiment.runs.resume import check_resume, find_resumable
    from aimbot_lab.experiment.runs.run_record import RunRequest, close_orphan_runs

    folder = place.folder
    if own.leads:
        close_orphan_runs(folder)  # one that had ended has nothing left to resume
    found = find_resumable(run, folder, tracking_uri=place.tracking_uri)
    curriculum = found.curriculum(overrides)
    if not own.leads:  # that the run may be resumed is for the leader to find, which claims it
        return RunRequest(curriculum, folder, resume=found), ""
    uri = place.tracking_uri
    return _of(*check_resume(found, curriculum, folder, take_over=take_over, tracking_uri=uri))


def newest_prepared(request: "RunRequest") -> "tuple[RunRequest, str]":
    """The resumption of the newest resumable run, or `request` without one."""
    from aimbot_lab.experiment.runs.resume import check_resume, newest_resumable
    from aimbot_lab.experiment.runs.run_record import close_orphan_runs

    close_orphan_runs(request.data_folder)  # one that had ended has nothing left to resume
    newest = newest_resumable(request.curriculum, request.data_folder, start=request.start)
    if newest is None:
        news = f"there is no unfinished run of {request.curriculum.path}: a new one begins"
        return request, news
    return _of(*check_resume(newest, request.curriculum, request.data_folder))


def _of(request: "RunRequest", changes: "tuple[Change, ...]") -> "tuple[RunRequest, str]":
    """What is resumed, and with what changes."""
    run = request.resume
    assert run is not None
    changed = "".join(f"; {change}" for change in changes)
    return request, f"resuming run {run.run_id[:SHORT_ID]} ({run.record.name}){changed}"


MARGIN = 13  # characters before what is said of a lesson
WIDEST = 100


def plan_text(plan: "CurriculumPlan", width: int) -> Iterator[str]:
    """Head, lessons and the whole configuration, in lines of at most `width` characters."""
    config = plan.curriculum.config
    count, total = len(plan.lessons), config.train.total_steps
    rest = " and the rest of the last rollout" if total % plan.rollout_steps else ""
    yield (
        f"{config.name}: {count} {'lesson' if count == 1 else 'lessons'}, at most "
        f"{total:,} steps{rest}, seed {config.seed}; nothing was created"
    )
    if plan.speed is not None:
        longest = duration(config.train.total_steps / plan.speed)
        forecast = (
            f"here: {shown_speed(plan.speed)}, so all steps take {longest}; training ends sooner "
            "once the last lesson is passed"
        )
        yield "\n".join(textwrap.wrap(forecast, max(width, 3 * MARGIN)))
    yield "\n".join(textwrap.wrap(str(plan.cost), max(width, 3 * MARGIN)))
    keep = config.train.samples.keep
    if keep > 1:
        steps = f"{plan.epoch_samples:,} steps"
        yield f"samples: an epoch passes over the last {keep} rollouts, {steps}"
    yield "\n".join(textwrap.wrap(f"scaling: {plan.scaling}", max(width, 3 * MARGIN)))
    if plan.sharing is not None:
        yield "\n".join(textwrap.wrap(str(plan.sharing), max(width, 3 * MARGIN)))
    if plan.network:
        yield "\n".join(_network_lines(plan))
    for number, planned in enumerate(plan.lessons, start=1):
        lines = [f"lesson {number}/{count} {planned.lesson.name!r}"]
        for head, text in _lesson_lines(planned):
            lines += textwrap.wrap(
                text,
                max(width, 3 * MARGIN),
                initial_indent=f"  {head}".ljust(MARGIN),
                subsequent_indent=" " * MARGIN,
            )
        yield "\n".join(lines)
    yield f"the whole configuration:\n\n{plan.curriculum.resolved_text}".rstrip()


def _network_lines(plan: "CurriculumPlan") -> Iterator[str]:
    weights = sum(part.weights for part in plan.network)
    yield f"network: {weights:,} weights, engine {plan.engine}"
    for part in plan.network:
        yield f"  {part.name:<19} {part.inputs:>5} -> {part.outputs:<5} {part.weights:>10,} weights"


def _lesson_lines(planned: "PlannedLesson") -> Iterator[tuple[str, str]]:
    yield "mix", ", ".join(map(_cell, planned.cells))
    if planned.lesson.parameters:
        parameters = planned.lesson.parameters.items()
        yield "parameters", ", ".join(f"{name} {_parameter(value)}" for name, value in parameters)
    criteria = planned.lesson.completion_criteria
    if criteria is None:
        yield "ends", "when all steps are taken"
        return
    yield "ends", criteria.ending
    if planned.expected:
        first, *rest = planned.expected
        takes = [f"{_count(one)} at {one.win_rate:.4g}" for one in rest]
        start = f"{_count(first)} episodes at a true win rate of {first.win_rate:.4g}"
        yield "takes", f"{', '.join([start, *takes])} (medians)"


def _cell(cell: "PlannedCell") -> str:
    from aimbot_lab.foundation.episodes import Cell

    return f"{Cell(cell.target, cell.difficulty).shown} {100 * cell.share:.3g} %"


def _parameter(value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:g}"
    document = asdict(value)
    given = document["sampler_parameters"].items()
    pairs = (f"{key} {one}" for key, one in given if one is not None)
    return f"{document['sampler_type']} ({', '.join(pairs)})"


def _count(expected: "Expectation") -> str:
    return "too many" if expected.episodes is None else f"{expected.episodes:,}"
