"""`aimbot-lab compare --by config`, and the table that ends `run --seeds`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import table
from aimbot_lab.cli.views.view import progress

if TYPE_CHECKING:
    from aimbot_lab.experiment.analysis.comparison import ComparisonRequest
    from aimbot_lab.experiment.analysis.configurations import ComparedConfigurations


def compared_configurations(
    runs: Sequence[str], which: str, request: "ComparisonRequest", place: options.Place
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
    """Print the trainings of every configuration, then the configurations."""
    from aimbot_lab.experiment.analysis import configurations as tables

    for one in found.configurations:
        click.echo(one.label)
        click.echo(table(tables.SEED_HEAD, list(map(tables.seed_row, one.runs))))
        click.echo()
    click.echo(table(tables.HEAD, list(map(tables.configuration_row, found.configurations))))
    if found.settings:
        click.echo("\nSettings that differ")
        labels = [one.label for one in found.configurations]
        rows = [(key, *values) for key, values in found.settings.items()]
        click.echo(table(("setting", *labels), rows))
    click.echo(f"\n{tables.method(found)}", err=True)
