"""`aimbot-lab bench ablation`: what does each switch of hybrid_ppo bring by itself?"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.ablation import AblationPlan, Attempt, Spread


@click.command(short_help="Compare hybrid_ppo's switches, each by itself.")
@click.option(
    "--target",
    cls=options.TargetOption,
    type=options.TargetChoice(lambda world: world.hardest_target()),
    show_default=True,
    help="What is learned, in all its difficulties.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.7,
    show_default=True,
    help="Win rate that a training must prove to exceed.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Trainings of each variant.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=4_000_000,
    show_default=True,
    help="Environment steps after which a training has failed.",
)
@options.as_json
def ablation(target: str, threshold: float, seeds: int, steps: int, as_json: bool) -> None:
    """Train with each switch of hybrid_ppo on, alone: steps and seconds to a threshold.

    Bins are plain PPO, and the others stand against it: the same lesson, settings and seeds.
    Seconds are the processor's. Takes about ten minutes; Ctrl-C shows what is done so far.

    \b
    Example:
      aimbot-lab bench ablation --target free --threshold 0.6
    """
    from aimbot_lab.bench.ablation import AblationPlan, attempts

    plan = AblationPlan(target=target, threshold=threshold, seeds=seeds, most_steps=steps)
    done: list[Attempt] = []
    try:
        for attempt in attempts(plan, lambda line: click.echo(line, err=True)):
            done.append(attempt)
    finally:
        if done:
            _show(plan, done, as_json=as_json)


def _show(plan: "AblationPlan", done: Sequence["Attempt"], *, as_json: bool) -> None:
    from aimbot_lab.bench.ablation import summaries
    from aimbot_lab.bench.machine import this_machine

    if not as_json:
        click.echo(_head(plan))
        click.echo(_table(done))
        return
    variants: list[dict[str, Any]] = [
        {**asdict(summary), "attempts": [asdict(one) for one in done if one.variant == name]}
        for name, summary in summaries(done).items()
    ]
    print_json(
        {
            "schema": 1,
            "version": aimbot_lab.__version__,
            "machine": asdict(this_machine()),
            "plan": asdict(plan),
            "variants": variants,
        }
    )


def _head(plan: "AblationPlan") -> str:
    return (
        f"{plan.target.capitalize()}, all difficulties, until a win rate above {plan.threshold:g} "
        f"is proved; median [lowest, highest] of {plan.seeds} seeds\n"
    )


def _table(done: Sequence["Attempt"]) -> str:
    from aimbot_lab.bench.ablation import summaries

    head = ("variant", "reached", "steps", "seconds of processor")
    body = [
        (
            name,
            f"{summary.reached} of {summary.trained}",
            _shown(summary.steps, ",.0f"),
            _shown(summary.seconds, ".1f"),
        )
        for name, summary in summaries(done).items()
    ]
    return table(head, body)


def _shown(spread: "Spread", form: str) -> str:
    ends = (spread.median, spread.lowest, spread.highest)
    middle, low, high = ("never" if end is None else format(end, form) for end in ends)
    return f"{middle} [{low}, {high}]"
