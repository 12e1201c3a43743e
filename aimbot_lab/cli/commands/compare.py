"""`aimbot-lab compare`: which of these runs is better, and is that sure?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.compare_configurations import compared_configurations, show_configurations
from aimbot_lab.cli.views.text import check_output, print_json, table, write_output
from aimbot_lab.cli.views.view import progress

if TYPE_CHECKING:
    from aimbot_lab.experiment.analysis.comparison import Comparison, ComparisonRequest

ARTIFACT_FOLDER = "comparisons"
IDS_IN_A_NAME = 4


@click.command(short_help="Compare runs in the same episodes.")
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
    help="Difference of win rates within which two agents are alike.",
)
@click.option(
    "--by",
    type=click.Choice(["run", "config"]),
    default="run",
    show_default=True,
    help="Each run against the first; or runs that differ in their seed alone as one, with the "
    "mean, the interquartile mean and intervals over trainings.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where the page is saved.")
@options.as_json
@options.trust
@options.place
def compare(
    runs: tuple[str, ...],
    agent: str,
    output: Path | None,
    as_json: bool,
    place: options.Place,
    **given: Any,
) -> None:
    """Compare each RUN with the first: ids, their beginnings, or "latest".

    Every agent plays the same episodes of the cells that all curricula end on, or as many,
    unpaired, where an environment ignores its seed. It reports the difference in each cell with
    its interval and p-value, how many more episodes a clear answer would need, the mean win rate
    while learning, steps and seconds to each lesson, and the settings that differ. In a world of
    two sides each also plays matches against the first. A page with charts is saved; every run
    keeps it, and the numbers as JSON.

    \b
    Example:
      aimbot-lab compare 3f2a 9c01 --episodes 500
      aimbot-lab compare --by config 3f2a 9c01 77aa 80b1
    """
    by, filters = given.pop("by"), given.pop("filters")
    runs = tuple(options.named_runs(runs, filters, place)) if filters else runs
    if len(runs) < 2:
        raise click.UsageError("two runs at least are needed; aimbot-lab runs lists them")
    if output is not None:
        check_output(output)
    tell = _configurations_output if by == "config" else _runs_output
    page, numbers, ids = tell(runs, agent, given, place=place, as_json=as_json)
    _keep(page, numbers, ids, output=output, place=place)


Output = tuple[str, dict[str, Any], list[str]]  # a page, the numbers, the runs


def _configurations_output(
    runs: Sequence[str],
    which: str,
    given: dict[str, Any],
    *,
    place: options.Place,
    as_json: bool,
) -> Output:
    from aimbot_lab.experiment.analysis.comparison import ComparisonRequest
    from aimbot_lab.experiment.analysis.configurations import configuration_page

    found = compared_configurations(runs, which, ComparisonRequest(**given), place)
    print_json(found.as_json()) if as_json else show_configurations(found)
    ids = [run.run_id for one in found.configurations for run in one.runs]
    return configuration_page(found), found.as_json(), ids


def _runs_output(
    runs: Sequence[str],
    which: str,
    given: dict[str, Any],
    *,
    place: options.Place,
    as_json: bool,
) -> Output:
    from aimbot_lab.experiment.analysis.comparison import ComparisonRequest
    from aimbot_lab.experiment.analysis.comparison_page import comparison_page

    found = _compared(runs, which, ComparisonRequest(**given), place)
    print_json(found.as_json()) if as_json else _show(found)
    return comparison_page(found), found.as_json(), [run.run_id for run in found.runs]


def _compared(
    runs: Sequence[str], which: str, request: "ComparisonRequest", place: options.Place
) -> "Comparison":
    from aimbot_lab.experiment.analysis.comparison import (
        common_task,
        compare_agents,
        direct_plans,
    )
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
    click.echo(table(tables.RUN_HEAD, tables.run_rows(found)))
    for run, rows in zip(found.runs[1:], found.differences, strict=True):
        click.echo(f"\n{tables.label(run)} against {first}")
        click.echo(table(tables.difference_head(found, run), tables.difference_rows(rows)))
    for heading, matches in tables.match_parts(found):
        click.echo(f"\n{heading}")
        if matches:
            click.echo(table(MATCH_HEAD, matches))
    click.echo("\nLessons")
    head, *lessons = tables.lesson_rows(found)
    click.echo(table(head, lessons))
    click.echo("\nSettings that differ" + ("" if found.settings else ": none"))
    if found.settings:
        settings = [(key, *values) for key, values in found.settings.items()]
        click.echo(table(("setting", first, *others), settings))
    click.echo("\n" + "\n".join(tables.verdicts(found)))
    click.echo(f"\n{tables.method(found)} {tables.curve_note(found)}", err=True)


def _keep(
    page: str,
    numbers: dict[str, Any],
    runs: Sequence[str],
    *,
    output: Path | None,
    place: options.Place,
) -> None:
    """Save the page, and leave a copy and the numbers with every run."""
    from aimbot_lab.tracking.runs.history import Addition, add_to_run

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
