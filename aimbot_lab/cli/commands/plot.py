"""`aimbot-lab plot`: learning curves as a picture."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.text import check_output
from aimbot_lab.foundation.errors import ConfigurationError

if TYPE_CHECKING:
    from aimbot_lab.experiment.analysis.learning_curve import LearningCurve


@click.command(short_help="Draw learning curves.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="The picture: a .png, .svg or .pdf file.",
)
@options.filters
@options.trust
@options.place
def plot(
    runs: tuple[str, ...], output: Path, filters: tuple[str, ...], place: options.StorePlace
) -> None:
    """Draw the win rate while learning of each RUN, and of the runs that every --filter takes.

    Runs that differ in their seed alone are one line: their mean, with its 95 % interval over
    trainings (bootstrap).

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
        raise ConfigurationError("the runs have recorded no win rate over steps that all share")
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
    from aimbot_lab.tracking.runs.history import download_artifact, find_run

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
