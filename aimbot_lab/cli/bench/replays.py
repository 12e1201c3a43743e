"""`aimbot-lab bench replays`: what does keeping replays cost a training?"""

from dataclasses import asdict

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json


@click.command(short_help="Measure what keeping replays costs a training.")
@click.option(
    "--rollouts",
    default=40,
    show_default=True,
    type=click.IntRange(2, 100_000),
    help="Rollouts of a training that keep replays, and as many between them that do not.",
)
@options.as_json
def replays(rollouts: int, as_json: bool) -> None:
    """Measure what keeping replays costs a training, in seconds of the processor.

    One PPO training on Goto, in which every other rollout keeps replays. Takes about two minutes.

    \b
    Example:
      aimbot-lab bench replays --rollouts 100
    """
    from aimbot_lab.bench.replays import measure_replay_cost

    found = measure_replay_cost(rollouts)
    if as_json:
        print_json({"schema": 1, "version": aimbot_lab.__version__, **asdict(found)})
        return
    click.echo(
        f"A rollout and its update, medians of {found.rollouts}: {found.seconds_without:.4f} s "
        f"without replays, {found.seconds_with:.4f} s with them.\n"
        f"Of that, keeping takes {found.share:.3%}, timed by itself. The medians differ by "
        f"{found.difference:+.2%} [{found.lower:+.2%}, {found.upper:+.2%}].\n"
        f"When a lesson ends, three replays of whole episodes take "
        f"{1000 * found.seconds_a_lesson:.0f} ms."
    )
