"""`aimbot-lab bench rules`: how often are rules of promotion wrong, and how soon right?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.rules import RulesBench


@click.command(short_help="Simulate how often lessons would end by luck.")
@options.as_json
def rules(as_json: bool) -> None:
    """Simulate lessons that should not end, and how soon others do.

    By the evidence that lessons end on here, and by the usual share of the last hundred episodes
    won, compared with the threshold after each. Takes about a minute.

    \b
    Example:
      aimbot-lab bench rules
    """
    from aimbot_lab.bench.rules import RulesPlan, bench_rules

    found = bench_rules(RulesPlan(), lambda line: click.echo(line, err=True))
    if as_json:
        print_json(document(found))
    else:
        click.echo("\n\n".join((_false_promotions(found), _delays(found), _watching(found))))


def document(found: "RulesBench") -> dict[str, Any]:
    """What was found, as plain values."""
    return {"schema": 1, "version": aimbot_lab.__version__, **asdict(found)}


def _false_promotions(found: "RulesBench") -> str:
    plan = found.plan
    rows = [
        (f"{one.threshold:.2f}", f"{one.rate:.2f}", f"{one.evidence:.2%}", f"{one.window:.1%}")
        for one in found.false_promotions
    ]
    return (
        f"Lessons that were ended although the win rate never exceeded the threshold:\n"
        f"{plan.lessons:,} of {plan.episodes:,} episodes each, alpha {plan.alpha:g}\n"
        + table(("threshold", "win rate", "evidence", "last 100"), rows)
    )


def _delays(found: "RulesBench") -> str:
    rows = [(one.rate, _episodes(one.evidence), _episodes(one.window)) for one in found.delays]
    return (
        f"Episodes until a win rate above the threshold {found.plan.above_threshold:g} ends the "
        "lesson (median;\nfor one that climbs, since it crossed the threshold; negative: before)\n"
        + table(("win rate", "evidence", "last 100"), rows)
    )


def _watching(found: "RulesBench") -> str:
    plan, watching = found.plan, found.watching
    return (
        f"A watched cell that stays at its floor, {plan.floor:g}, was reported lost within "
        f"{plan.watched_episodes:,} episodes\nfor {watching.false_reports:.2%} of "
        f"{plan.watched_agents} agents (stated: at most {watching.bound:.2%}); a fall from "
        f"{plan.fall[0]:g} to {plan.fall[1]:g}\nafter {watching.episodes_to_report:.0f} episodes."
    )


def _episodes(count: float | None) -> str:
    return "never" if count is None else f"{count:,.0f}"
