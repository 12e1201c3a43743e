"""`aimbot-lab bench evaluation`: what does evaluation while training cost?"""

from dataclasses import asdict

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json


@click.command(short_help="Measure what evaluation while training costs.")
@click.option(
    "--every",
    default=500_000,
    show_default=True,
    type=click.IntRange(1, 10**9),
    help="Environment steps between two evaluations.",
)
@click.option(
    "--episodes",
    default=50,
    show_default=True,
    type=click.IntRange(30, 10_000),
    help="Episodes of each difficulty in an evaluation.",
)
@click.option(
    "--steps",
    default=2_000_000,
    show_default=True,
    type=click.IntRange(1, 10**9),
    help="Environment steps of a training.",
)
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Trainings with evaluation, and as many without.",
)
@options.as_json
def evaluation(every: int, episodes: int, steps: int, repeats: int, as_json: bool) -> None:
    """Measure what `evaluation: {every: N, episodes: M}` costs, in seconds of the processor.

    The same training of --steps on Goto, with it and without by turns, --repeats times each. Takes
    about two minutes.

    \b
    Example:
      aimbot-lab bench evaluation --every 200000
    """
    from aimbot_lab.bench.evaluation import measure_evaluation_cost
    from aimbot_lab.evaluation.settings import EvaluationSettings

    settings = EvaluationSettings(every=every, episodes=episodes)
    found = measure_evaluation_cost(settings, steps=steps, repeats=repeats)
    if as_json:
        print_json({"schema": 1, "version": aimbot_lab.__version__, **asdict(found)})
        return
    click.echo(
        f"A training of {steps:,} steps, medians of {repeats}: {found.seconds_without:.2f} s "
        f"without evaluation, {found.seconds_with:.2f} s with it ({found.share:+.1%}).\n"
        f"{found.evaluations} evaluations of {found.episodes} episodes, "
        f"{1000 * found.seconds_an_evaluation:.0f} ms each."
    )
