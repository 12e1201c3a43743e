"""`aimbot-lab bench panel`: what does being watched cost a training?"""

from dataclasses import asdict
from itertools import count
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
    default=30,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Pairs of stretches of five seconds of a training, one watched and one alone.",
)
@options.as_json
def panel(pairs: int, as_json: bool) -> None:
    """Measure what being watched costs a training.

    A training on Goto is watched for five seconds, left alone for ten, and so on. Watched, it is
    asked by another process for its state and its newest agent, as by the panel. Says by how much
    more of the processor's time it takes then, how much of that is its own answering and showing,
    and what the clock says, in which other programs count too. Takes about five minutes; leave
    the machine alone meanwhile.

    \b
    Example:
      aimbot-lab bench panel --pairs 60
    """
    from aimbot_lab.bench.panel.watching import Pair, measure_watch_cost, watch_cost

    done = count(1)

    def show(pair: Pair) -> None:
        ratio = pair.watched.processor / pair.alone.processor - 1
        if not as_json:
            click.echo(f"pair {next(done)} of {pairs}: {ratio:+.2%}", err=True)

    found = watch_cost(measure_watch_cost(pairs, ended=show))
    if as_json:
        ratios = {"processor": found.processor._asdict(), "clock": found.clock._asdict()}
        document = {"schema": 3, "version": aimbot_lab.__version__, **asdict(found), **ratios}
        print_json(document)
        return
    click.echo(
        f"A million steps, medians of {found.pairs} pairs: {found.seconds_alone:.3f} s of the "
        f"processor alone, {found.seconds_watched:.3f} s watched.\n"
        f"Watched it takes {_words(found.processor)} of the processor's time, "
        f"{_words(found.clock)} on the clock.\n"
        f"Answering and showing take {found.own:.2%} of the processor's time while it is watched."
    )


def _words(ratio: "Ratio") -> str:
    return f"{ratio.difference:+.2%} [{ratio.lower:+.2%}, {ratio.upper:+.2%}]"
