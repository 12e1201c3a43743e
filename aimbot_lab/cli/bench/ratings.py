"""`aimbot-lab bench ratings`: do intervals of ratings cover, and are cycles found?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.ratings import RatingsBench


@click.command(short_help="Simulate how often intervals of ratings hold.")
@options.as_json
def ratings(as_json: bool) -> None:
    """Simulate leagues whose true ratings are known.

    How often the 95 % intervals of `aimbot-lab league` hold the true difference, and how often its
    test finds a cycle where there is none, and where there is one. Takes about a minute.

    \b
    Example:
      aimbot-lab bench ratings
    """
    from aimbot_lab.bench.ratings import RatingsPlan, bench_ratings

    found = bench_ratings(RatingsPlan(), lambda line: click.echo(line, err=True))
    if as_json:
        print_json(document(found))
    else:
        click.echo("\n\n".join((_coverage(found), _cycles(found))))


def document(found: "RatingsBench") -> dict[str, Any]:
    """What was found, as plain values."""
    return {"schema": 1, "version": aimbot_lab.__version__, **asdict(found)}


def _coverage(found: "RatingsBench") -> str:
    plan = found.plan
    rows = [(f"{one.rung:g}", f"{one.draws:.0%}", f"{one.share:.1%}") for one in found.coverage]
    return (
        f"95 % intervals that hold: {plan.players} players, {plan.games} games a pair, "
        f"{plan.tables} tables each\n" + table(("points a rung", "draws", "hold"), rows)
    )


def _cycles(found: "RatingsBench") -> str:
    plan = found.plan
    rows = [(f"{one.bend:g}", f"{one.draws:.0%}", f"{one.share:.1%}") for one in found.cycles]
    return (
        f"Cycles found at 5 %: {plan.cycle_players} players, {plan.games} games a pair, "
        f"{plan.cycle_tables} tables each;\none three-cycle whose scores are bent by so much\n"
        + table(("bent by", "draws", "found"), rows)
    )
