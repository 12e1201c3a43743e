"""`aimbot-lab bench`: the group of benchmarks, each in a module of its own beside this."""

import click

from aimbot_lab.cli.bench.ablation import ablation
from aimbot_lab.cli.bench.bridge import bridge
from aimbot_lab.cli.bench.evaluation import evaluation
from aimbot_lab.cli.bench.panel import panel
from aimbot_lab.cli.bench.peer import peer
from aimbot_lab.cli.bench.ratings import ratings
from aimbot_lab.cli.bench.replays import replays
from aimbot_lab.cli.bench.rules import rules
from aimbot_lab.cli.bench.samplings import self_play
from aimbot_lab.cli.bench.scale import scale
from aimbot_lab.cli.bench.sim import sim
from aimbot_lab.cli.bench.train import train


@click.group(short_help="Measure speed on this machine.")
def bench() -> None:
    """Measure speed on this machine.

    \b
    Example:
      aimbot-lab bench sim
    """


bench.add_command(ablation)
bench.add_command(bridge)
bench.add_command(evaluation)
bench.add_command(panel)
bench.add_command(peer)
bench.add_command(ratings)
bench.add_command(replays)
bench.add_command(rules)
bench.add_command(scale)
bench.add_command(train)
bench.add_command(self_play)
bench.add_command(sim)
