"""`aimbot-lab bench panel`: what does being watched cost a training?"""

from dataclasses import asdict

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json


@click.command(short_help="Measure what the panel costs a training.")
@click.option(
    "--windows",
    default=10,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Windows of six seconds in which the training is watched, and as many in which it is not.",
)
@options.as_json
def panel(windows: int, as_json: bool) -> None:
    """Measure what being watched costs a training, in seconds of the processor.

    One training on Goto, which is watched by turns: it shows its state and its newest agent as for
    the panel. Takes about two minutes.

    \b
    Example:
      aimbot-lab bench panel --windows 30
    """
    from aimbot_lab.bench.panel.watching import measure_watch_cost

    found = measure_watch_cost(windows)
    if as_json:
        print_json({"schema": 1, "version": aimbot_lab.__version__, **asdict(found)})
        return
    click.echo(
        f"A million steps, medians of {found.windows} windows: {found.seconds_without:.3f} s of "
        f"the processor alone, {found.seconds_with:.3f} s watched.\n"
        f"Watched it takes {found.difference:+.2%} [{found.lower:+.2%}, {found.upper:+.2%}]."
    )
