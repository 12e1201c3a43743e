"""`aimbot-lab evaluate`, `compare`, `league` and `plot`: how good agents are, which is better."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_runs
from aimbot_lab.cli.text import (
    check_output,
    print_json,
    print_table,
    shortened_number,
    table,
    terminal_width,
    wrapped,
    write_output,
)
from aimbot_lab.cli.view import progress
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import one_line, percent, shown_rate, shown_return
from aimbot_lab.tracking.tracker import NOTE_TAG

if TYPE_CHECKING:
    from aimbot_lab.evaluation.episodes import Score
    from aimbot_lab.experiment.analysis.comparison import Comparison, ComparisonRequest
    from aimbot_lab.experiment.analysis.configurations import ComparedConfigurations
    from aimbot_lab.experiment.analysis.evaluation import Evaluated
    from aimbot_lab.experiment.analysis.learning_curve import LearningCurve
    from aimbot_lab.experiment.runs.agents import TrackedAgent
    from aimbot_lab.foundation.episodes import Measure
    from aimbot_lab.league import League

WIN_HEAD = ("win rate [95 %]", "wins")
DRAWS, TIME_HEAD, RETURN_HEAD = "draws", "median to win", "return [95 %]"


@click.command(short_help="Measure a run's agent on new seeds.")
@click.argument("run", shell_complete=complete_runs)
@options.agent
@options.temperature
@options.episodes
@options.seed
@options.max_steps
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Whether the world's scripted players play, too.",
)
@options.as_json
@options.trust
@options.place
def evaluate(
    run: str, agent: str, as_json: bool, place: options.StorePlace, **request: Any
) -> None:
    """Evaluate the agent of RUN on new seeds: its id, the beginning of it, or "latest".

    Every target and difficulty of the run's last lesson is played on seeds that no training uses:
    by the agent at temperature 1 (sampled as in training, as in record, compare and export), at
    0.5 and at 0 (always the likeliest action), and by the world's scripted players, one of which
    acts at random. All play the same seeds. After self-play the agent also plays matches against
    scripts, the run's first snapshot and its best agent. One table shows the players over all
    cells, another one cell by cell, with intervals if the terminal is wide enough (--json always
    has them). The run keeps the result: numbers under test/, a file, and a section of its note.

    \b
    Example:
      aimbot-lab evaluate latest --episodes 500
    """
    from aimbot_lab.experiment.analysis.evaluation import evaluation_record
    from aimbot_lab.experiment.runs.agents import fetch_agent
    from aimbot_lab.tracking.history import add_to_run
    from aimbot_lab.worlds.registry import spec_of

    fetched = fetch_agent(run, agent, data_folder=place.folder, tracking_uri=place.tracking_uri)
    found = _evaluated(fetched, request, place)
    if as_json:
        print_json(found.as_json())
    else:
        measures = spec_of(fetched.config.env).measures
        click.echo(_scores(found, measures))
        if found.matches:
            from aimbot_lab.experiment.analysis import matches

            click.echo()
            print_table(matches.HEAD, matches.match_rows(found.matches), cut="against")
        for line in found.left_out:
            click.echo(one_line(f"left out: {line}"), err=True)
        click.echo(wrapped(_explained(found, measures), err=True), err=True)
    record = evaluation_record(found, fetched.run.tags.get(NOTE_TAG, ""))
    add_to_run(place.folder, found.run_id, record, tracking_uri=place.tracking_uri)


def _evaluated(
    fetched: "TrackedAgent", request: dict[str, Any], place: options.StorePlace
) -> "Evaluated":
    from aimbot_lab.experiment.analysis import evaluation
    from aimbot_lab.experiment.analysis.matches import opponents_of

    wanted = evaluation.EvaluationRequest(**request)
    matches = opponents_of(
        fetched,
        episodes=wanted.episodes,
        seed=wanted.seed,
        scripts=wanted.baselines,
        data_folder=place.folder,
        tracking_uri=place.tracking_uri,
    )
    parts = evaluation.cells_to_play(fetched, wanted, matches)
    with progress("evaluating", parts) as advance:
        return evaluation.evaluate_agent(
            fetched, wanted, matches=matches, on_cell=lambda who, cell: advance(f"{who}, {cell}")
        )


def _scores(found: "Evaluated", measures: "Sequence[Measure]") -> str:
    """The players over all cells, then by cell if there are several.

    What a world measures stands in the place of the time to win.
    """
    told = [one for one in measures if one.head]
    heads = [*([DRAWS] if found.has_draws else ()), *([one.head for one in told] or [TIME_HEAD])]
    heads = [*WIN_HEAD, *heads, RETURN_HEAD] if found.has_wins else [*heads, "episodes"]
    rows = [(name, *_numbers(one.overall, found, told)) for name, one in found.players.items()]
    parts = [table(("player", *heads), rows)]
    if len(next(iter(found.players.values())).cells) > 1:
        parts.append(_matrix(found))
    return "\n\n".join(parts)


def _matrix(found: "Evaluated") -> str:
    """The win rate, or the return, of each player in each cell; with intervals if they fit."""
    from aimbot_lab.experiment.analysis.evaluation import shown_score
    from aimbot_lab.foundation.episodes import Cell

    def without_interval(score: "Score", *, has_wins: bool) -> str:
        return percent(score.win_rate) if has_wins else shown_return(score.mean_return)

    what, width = "win rate" if found.has_wins else "mean return", terminal_width()
    cells = [*zip(*(one.cells for one in found.players.values()), strict=True)]
    text = ""
    for head, shown in ((f"{what} [95 %]", shown_score), (what, without_interval)):
        rows = [
            (
                Cell(scores[0].target, scores[0].difficulty).shown,
                *(shown(score, has_wins=found.has_wins) for score in scores),
            )
            for scores in cells
        ]
        text = table((head, *found.players), rows)
        if width is None or max(map(len, text.splitlines())) <= width:
            break
    return text


def _numbers(score: "Score", found: "Evaluated", measures: "Sequence[Measure]") -> tuple[str, ...]:
    from aimbot_lab.foundation.episodes import shown

    to_win = score.median_seconds_to_win
    own = [shown(measure, score.measures) for measure in measures]
    if not found.has_wins:
        return *own, f"{score.episodes:,}"
    return (
        shown_rate(score.win_rate, score.lower, score.upper),
        f"{score.wins:,} of {score.episodes:,}",
        *((f"{score.draws:,}",) if found.has_draws else ()),
        *(own or ["-" if to_win is None else f"{to_win:.1f} {found.time_unit}"]),
        _earned(score),
    )


def _earned(score: "Score") -> str:
    """The mean return with its interval, as far as these are known."""
    known = (score.mean_return, score.return_lower, score.return_upper)
    mean, *ends = [shortened_number(one) for one in known if one is not None] or ["-"]
    return f"{mean} [{', '.join(ends)}]" if ends else mean


def _explained(found: "Evaluated", measures: "Sequence[Measure]") -> str:
    over = "" if measures else "Time to win is over the won episodes, the return over all. "
    deployed = f"Deploy it with --temperature {found.advised:g}, as record, compare and export do."
    if (better := found.clearly_better()) is not None:
        deployed = (
            f"It was clearly better at temperature {better:g}: deploy it with --temperature "
            f"{better:g}, and give that to record, compare and export."
        )
    return one_line(
        f"{found.agent} agent of run {found.run_id} ({found.name}), saved at step {found.step:,}; "
        f"seed {found.seed}. {over}{deployed}"
    )


ARTIFACT_FOLDER = "comparisons"
IDS_IN_A_NAME = 4


@click.command(short_help="Compare runs on the same episodes.")
@click.argument("runs", nargs=-1, metavar="RUN RUN...", shell_complete=complete_runs)
@options.filters
@options.agent
@options.temperature
@options.episodes
@options.seed
@options.max_steps
@click.option(
    "--margin",
    default=0.05,
    show_default=True,
    type=options.NumberRange(0.001, 0.5),
    help="Difference in win rates, or relative difference in mean returns, within which agents "
    "count as equal.",
)
@options.choice(
    "--by",
    ("run", "config"),
    "run: each run against the first. config: runs that differ only in their seed as one, "
    "with the mean, the interquartile mean and intervals over runs.",
)
@options.output("Where to save the page.")
@options.as_json
@options.trust
@options.place
def compare(
    runs: tuple[str, ...],
    agent: str,
    output: Path | None,
    as_json: bool,
    place: options.StorePlace,
    **given: Any,
) -> None:
    """Compare each RUN with the first: ids, their beginnings, or "latest".

    All agents play the same episodes of the cells that all curricula end on (the same number of
    other episodes if an environment ignores its seed). The report has the difference in win rate,
    or in mean return where nothing can be won, in each cell with its interval and p-value; how many
    more episodes a clear answer would need; the mean win rate while learning; steps and seconds to
    each lesson; and the settings that differ. In worlds of two sides each agent also plays matches
    against the first. A page with charts is saved; every run keeps it, and the numbers as JSON.

    \b
    Example:
      aimbot-lab compare 3f2a 9c01 --episodes 500
      aimbot-lab compare --by config 3f2a 9c01 77aa 80b1
    """
    by, filters = given.pop("by"), given.pop("filters")
    runs = tuple(options.named_runs(runs, filters, place)) if filters else runs
    if len(runs) < 2:
        raise click.UsageError("at least two runs are needed; aimbot-lab runs lists them")
    if output is not None:
        check_output(output)
    from aimbot_lab.experiment.analysis.comparison import ComparisonRequest

    request = ComparisonRequest(**given)
    if by == "config":
        from aimbot_lab.experiment.analysis.configurations import configuration_page

        grouped = compared_configurations(runs, agent, request, place)
        page, document = configuration_page(grouped), grouped.as_json()
        ids = [run.run_id for one in grouped.configurations for run in one.runs]
        print_json(document) if as_json else show_configurations(grouped)
    else:
        from aimbot_lab.experiment.analysis.comparison_page import comparison_page

        found = _compared(runs, agent, request, place)
        page, document = comparison_page(found), found.as_json()
        ids = [run.run_id for run in found.runs]
        print_json(document) if as_json else _show(found)
    _keep(page, document, ids, output=output, place=place)


def _compared(
    runs: Sequence[str], which: str, request: "ComparisonRequest", place: options.StorePlace
) -> "Comparison":
    from aimbot_lab.experiment.analysis.comparison import common_task, compare_agents, direct_plans
    from aimbot_lab.experiment.analysis.learning_curve import read_curves
    from aimbot_lab.experiment.runs.agents import fetch_agent

    at: dict[str, Any] = {"data_folder": place.folder, "tracking_uri": place.tracking_uri}
    agents = [fetch_agent(run, which, **at) for run in runs]
    parts = len(agents) * len(common_task(agents, request).cells)
    parts += sum(plan.parts for plan in direct_plans(agents, request))
    curves = read_curves([(agent.run, agent.config) for agent in agents], **at)
    with progress("comparing", parts) as advance:
        return compare_agents(
            agents, curves, request, on_cell=lambda run, cell: advance(f"{run}, {cell}")
        )


def _show(found: "Comparison") -> None:
    from aimbot_lab.experiment.analysis import comparison_page as tables
    from aimbot_lab.experiment.analysis.matches import HEAD as MATCH_HEAD

    first, *others = map(tables.label, found.runs)
    runs = tables.run_rows(found)
    print_table(tables.RUN_HEAD, runs, cut="name", spare=["mean while learning"])
    for run, rows in zip(found.runs[1:], found.differences, strict=True):
        click.echo(f"\n{tables.label(run)} against {first}")
        print_table(tables.difference_head(found, run), tables.difference_rows(rows), cut="cell")
    for heading, matches in tables.match_parts(found):
        click.echo(f"\n{heading}")
        if matches:
            print_table(MATCH_HEAD, matches, cut="against")
    if lessons := tables.lesson_rows(found):
        click.echo("\nLessons")
        print_table(lessons[0], lessons[1:], cut="lesson")
    click.echo("\nSettings that differ" + ("" if found.settings else ": none"))
    if found.settings:
        settings = [(key, *values) for key, values in found.settings.items()]
        print_table(("setting", first, *others), settings, cut="setting")
    click.echo("\n" + wrapped("\n".join(tables.verdicts(found))))
    click.echo(wrapped(f"\n{tables.method(found)} {tables.curve_note(found)}", err=True), err=True)


def _keep(
    page: str,
    numbers: dict[str, Any],
    runs: Sequence[str],
    *,
    output: Path | None,
    place: options.StorePlace,
) -> None:
    """Save the page, and leave a copy and the numbers with every run."""
    from aimbot_lab.tracking.history import Addition, add_to_run

    ids = list(dict.fromkeys(runs))
    more = f"-and-{len(ids) - IDS_IN_A_NAME}-more" if len(ids) > IDS_IN_A_NAME else ""
    name = f"{ARTIFACT_FOLDER}/" + "-".join(run_id[:8] for run_id in ids[:IDS_IN_A_NAME]) + more
    path = output or place.folder.root / f"{name}.html"
    if output is None:
        path.parent.mkdir(exist_ok=True)
    write_output(page, path)
    document = json.dumps(numbers, indent=1)
    addition = Addition(texts={f"{name}.html": page, f"{name}.json": document})
    for run_id in ids:
        add_to_run(place.folder, run_id, addition, tracking_uri=place.tracking_uri)


def compared_configurations(
    runs: Sequence[str], which: str, request: "ComparisonRequest", place: options.StorePlace
) -> "ComparedConfigurations":
    """The runs by their configurations, all agents in the same episodes."""
    from aimbot_lab.experiment.analysis.comparison import common_task
    from aimbot_lab.experiment.analysis.configurations import compare_configurations
    from aimbot_lab.experiment.runs.agents import fetch_agent

    at: dict[str, Any] = {"data_folder": place.folder, "tracking_uri": place.tracking_uri}
    agents = [fetch_agent(run, which, **at) for run in runs]
    parts = len(agents) * len(common_task(agents, request).cells)
    with progress("evaluating", parts) as advance:
        return compare_configurations(
            agents, request, on_cell=lambda run, cell: advance(f"{run}, {cell}")
        )


def show_configurations(found: "ComparedConfigurations") -> None:
    """Print the runs of every configuration, then the configurations."""
    from aimbot_lab.experiment.analysis import configurations as tables

    for one in found.configurations:
        click.echo(one.label)
        rows = [tables.seed_row(run, has_wins=found.has_wins) for run in one.runs]
        print_table(tables.SEED_HEAD, rows)
        click.echo()
    print_table(tables.HEAD, tables.configuration_rows(found), cut="configuration")
    if found.settings:
        click.echo("\nSettings that differ")
        labels = [one.label for one in found.configurations]
        rows = [(key, *values) for key, values in found.settings.items()]
        print_table(("setting", *labels), rows, cut="setting")
    click.echo(wrapped(f"\n{tables.method(found)}", err=True), err=True)


FOLDER = "league"  # among the artifacts of each run


@click.command(short_help="Rate agents by matches against each other.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@options.number(
    "--games", 200, (2, 8192), "Matches of each pair; every pair plays from the same starts."
)
@options.number(
    "--snapshots",
    8,
    (2, 64),
    "Snapshots of each run, evenly spaced, including the first and the last.",
)
@click.option(
    "--difficulty", type=click.IntRange(min=1), help="Difficulty of all matches. [default: all]"
)
@options.seed
@options.output("Also save a page here.")
@options.as_json
@options.trust
@options.place
def league(
    runs: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    place: options.StorePlace,
    **given: Any,
) -> None:
    """Rate the agents of each RUN: ids, their beginnings, or "latest".

    The players are the last and the best agent of each run, snapshots of its self-play, and the
    world's scripted players. Ratings come from all games at once (Bradley-Terry, a draw is half a
    win), with 95 % intervals; greedy has 1200. The report also says whether there are cycles, which
    ratings can't express, and gives the mixture that no player beats. Each run keeps the page and
    the numbers.

    \b
    Example:
      aimbot-lab league latest
      aimbot-lab league 3f2a 9c01 --games 400 -o league.html
    """
    from aimbot_lab.league import LeagueRequest, league_page, plan_league, play_league
    from aimbot_lab.tracking.history import Addition, add_to_run

    if output is not None:
        check_output(output)
    request = LeagueRequest(**given)
    plan = plan_league(runs, request, data_folder=place.folder, tracking_uri=place.tracking_uri)
    with progress(f"{request.games} games a pair", plan.pairs) as advance:
        found = play_league(plan, on_pair=advance)
    print_json(found.as_json()) if as_json else _show_league(found)
    page = league_page(found)
    if output is not None:
        write_output(page, output)
    texts = {
        f"{FOLDER}/league.json": json.dumps(found.as_json(), indent=1),
        f"{FOLDER}/league.html": page,
        f"{FOLDER}/games.csv": found.games_text(),
    }
    for run_id in plan.run_ids:
        add_to_run(place.folder, run_id, Addition(texts=texts), tracking_uri=place.tracking_uri)


def _show_league(found: "League") -> None:
    from aimbot_lab.league import HEAD, rating_rows, score_rows

    print_table(HEAD, rating_rows(found), cut="player")
    click.echo()
    head, scores = score_rows(found)
    print_table(head, scores, cut=head[0])
    click.echo(wrapped(f"\n{found.verdict}"))
    for line in found.left_out:
        click.echo(one_line(f"left out: {line}"), err=True)


@click.command(short_help="Draw learning curves.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@options.output("The picture: a .png, .svg or .pdf file.", required=True)
@options.filters
@options.trust
@options.place
def plot(
    runs: tuple[str, ...], output: Path, filters: tuple[str, ...], place: options.StorePlace
) -> None:
    """Draw the win rate while learning of each RUN, and of the runs that match every --filter.

    If nothing can be won, the mean return is drawn. Runs that differ only in their seed are one
    line: their mean, with Student's interval over runs at 95 %.

    \b
    Examples:
      aimbot-lab plot 3f2a 9c01 -o curve.png
      aimbot-lab plot --filter experiment=goto -o curves.svg
    """
    from aimbot_lab.experiment.analysis.learning_curve import SUFFIXES, draw_curves, mean_curve

    if output.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(f"--output {output}: must end with {', '.join(SUFFIXES)}")
    check_output(output)
    groups = _curves(options.named_runs(runs, filters, place), place)
    if not any(mean_curve(curves, points=2) for curves in groups.values()):
        raise ConfigurationError(
            "the runs have recorded no win rate or return over steps that all share"
        )
    draw_curves(groups, output)
    click.echo(f"written to {output}", err=True)


def _curves(runs: list[str], place: options.StorePlace) -> "dict[str, list[LearningCurve]]":
    """The curves of each configuration by its name."""
    from aimbot_lab.experiment.analysis.configurations import (
        CONFIG_TAG,
        NamedRun,
        configuration_names,
    )
    from aimbot_lab.experiment.analysis.learning_curve import read_curves
    from aimbot_lab.experiment.runs.run_record import stored_curriculum
    from aimbot_lab.tracking.history import download_artifact, find_run

    played, groups = [], defaultdict[str, list[NamedRun]](list)
    for name in runs:
        run = find_run(place.folder, name, tracking_uri=place.tracking_uri)

        def fetch(artifact: str, run_id: str = run.run_id) -> Path:
            return download_artifact(
                place.folder, run_id, name=artifact, tracking_uri=place.tracking_uri
            )

        config = stored_curriculum(fetch).config
        played.append((run, config))
        named = NamedRun(run.name, config.seed, config.name)
        groups[run.tags.get(CONFIG_TAG, run.run_id)].append(named)
    names = configuration_names(groups)
    curves = read_curves(played, data_folder=place.folder, tracking_uri=place.tracking_uri)
    found: dict[str, list[LearningCurve]] = {name: [] for name in names.values()}
    for (run, _), curve in zip(played, curves, strict=True):
        found[names[run.tags.get(CONFIG_TAG, run.run_id)]].append(curve)
    return found
