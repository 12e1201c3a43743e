"""`aimbot-lab convert`: a curriculum from an ML-Agents trainer file."""

from pathlib import Path

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.files import write_output
from aimbot_lab.foundation.shown_text import one_line


@click.command(short_help="Make a curriculum of an ML-Agents file.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write, replaced where it exists. [default: standard output]",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=options.TargetChoice(lambda world: world.default_target()),
    help="What its lessons play; repeatable, then in equal parts. [default: goto]",
)
@click.option("--behavior", metavar="NAME", help="Which behavior is meant. [default: the first]")
def convert(
    file: Path, output: Path | None, targets: tuple[str, ...], behavior: str | None
) -> None:
    """Write the curriculum that does what the ML-Agents trainer FILE (`-`: standard input) says.

    Lessons end by ML-Agents' own rule. What has no counterpart or had to change is listed on
    standard error, a line each.

    \b
    Example:
      aimbot-lab convert trainer_config.yaml -o curricula/mine.yaml --target goto
    """
    from aimbot_lab.experiment.ml_agents.conversion import convert as converted

    text, notes = converted(file, targets=targets, behavior=behavior)
    for note in notes:
        click.echo(one_line(note), err=True)
    write_output(text, output)
