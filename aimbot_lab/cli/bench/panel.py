"""`aimbot-lab bench panel`: what does being watched cost a training?"""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json

if TYPE_CHECKING:
    from aimbot_lab.bench.panel.watching import Ratio


@click.command(short_help="Measure what the panel costs a training.")
@click.option(
    "--pairs",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Pairs of trainings of about ten seconds, one watched and one alone.",
)
@options.as_json
def panel(pairs: int, as_json: bool) -> None:
    """Measure what being watched costs a training.

    The same training on Goto with one seed, watched and alone, by turns; which comes first changes
    from pair to pair. Watched, it is asked by another process for its state and its newest agent,
    as by the panel. Takes about four minutes; leave the machine alone meanwhile.

    \b
    Example:
      aimbot-lab bench panel --pairs 30
    """
    from aimbot_lab.bench.panel.watching import measure_watch_cost, watch_cost

    done = []
    for pair in measure_watch_cost(pairs):
        done.append(pair)
        if not as_json:
            ratio = pair.watched.processor / pair.alone.processor - 1
            click.echo(f"pair {len(done)} of {pairs}: {ratio:+.2%}", err=True)
    found = watch_cost(done)
    if as_json:
        ratios = {"processor": found.processor._asdict(), "clock": found.clock._asdict()}
        document = {"schema": 2, "version": aimbot_lab.__version__, **asdict(found), **ratios}
        print_json(document)
        return
    click.echo(
        f"A million steps, medians of {found.pairs} pairs: {found.seconds_alone:.3f} s of the "
        f"processor alone, {found.seconds_watched:.3f} s watched.\n"
        f"Watched it takes {_words(found.processor)} of the processor's time, "
        f"{_words(found.clock)} on the clock."
    )


def _words(ratio: "Ratio") -> str:
    return f"{ratio.difference:+.2%} [{ratio.lower:+.2%}, {ratio.upper:+.2%}]"
