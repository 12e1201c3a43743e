"""`aimbot-lab bench scale`: what do more processes bring to one training?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.scale.measurement import ExchangeSpeed, ScaleBench, ScaleSpeed
    from aimbot_lab.bench.timing.ratios import MeanRatio

WHO = "net", "processes", "threads"
MEASURED = (
    *WHO,
    "training",
    "over one process",
    "fastest turn",
    "over its fastest",
    "exchange",
    "processor",
    "over one process's",
)
SETTINGS = "num_envs", "n_steps", "batch_size", "n_epochs"


@click.command(short_help="Measure one training in several processes.")
@click.option("--quick", is_flag=True, help="Tiny trainings, to see the form of the report.")
@options.as_json
def scale(quick: bool, as_json: bool) -> None:
    """Measure one training in 1, 2 and 4 processes and with two threads, and their exchange.

    The trainings are goto's, with layers of 64 and of 128 units. They take turns, in alternating
    order, and each turn is compared with the one of one process beside it. Takes some ten minutes
    and 3 GB of memory; close other programs, and have a core for each process, else only the
    processor's time holds.

    \b
    Example:
      aimbot-lab bench scale --json > scale.json
    """
    from aimbot_lab.bench.scale.measurement import bench_scale
    from aimbot_lab.bench.scale.plan import FULL, QUICK

    found = bench_scale(QUICK if quick else FULL, lambda line: click.echo(line, err=True))
    if as_json:
        print_json(_document(found))
    else:
        click.echo("\n\n".join((_head(found), _measured(found), _ways(found))))


def _document(found: "ScaleBench") -> dict[str, Any]:
    plan = found.plan
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "machine": asdict(found.machine),
        "settings": {
            **{name: getattr(plan.training, name) for name in SETTINGS},
            "rollouts_of_a_turn": plan.rollouts,
            "turns": plan.turns,
        },
        "rows": [_entry(row) for row in found.rows],
        "exchanges": [_exchange(one) for one in found.exchanges],
    }


def _entry(row: "ScaleSpeed") -> dict[str, Any]:
    return {
        **asdict(row),
        "ratio_to_one_process": row.ratio_to_one_process._asdict(),
        "processor_ratio": row.processor_ratio._asdict(),
    }


def _exchange(one: "ExchangeSpeed") -> dict[str, Any]:
    return {**asdict(one), "ratio_to_all_reduce": one.ratios}


def _head(found: "ScaleBench") -> str:
    machine, training = found.machine, found.plan.training
    return (
        f"{machine.cpu}, {machine.cpu_count} usable cores, Python {machine.python}, "
        f"numba {machine.numba}, numpy {machine.numpy}\n"
        f"{training.num_envs} environments, rollouts of {training.n_steps} steps, "
        f"{training.n_epochs} epochs, minibatches of {training.batch_size}; "
        f"{found.plan.turns} turns of {found.plan.rollouts} rollouts"
    )


def _measured(found: "ScaleBench") -> str:
    body = [
        (
            *_who(row),
            f"{row.steps_per_second:,.0f}",
            _words(row.ratio_to_one_process),
            f"{row.fastest_steps_per_second:,.0f}",
            f"{row.fastest_ratio:.2f}",
            f"{row.exchange_share:.1%}",
            f"{row.processor_us_per_step:.2f}",
            _words(row.processor_ratio),
        )
        for row in found.rows
    ]
    return (
        "Environment steps per second, the exchange's share of the time, and microseconds of the\n"
        "processor for a step, all processes together\n" + table(MEASURED, body)
    )


def _ways(found: "ScaleBench") -> str:
    body = [
        (f"{one.floats:,}", way, f"{milliseconds:.3f}", f"{one.ratios.get(way, 1.0):.2f}")
        for one in found.exchanges
        for way, milliseconds in one.milliseconds.items()
    ]
    return "An exchange between two processes, mean of the fastest tenth\n" + table(
        ("floats", "way", "milliseconds", "over all_reduce"), body
    )


def _who(row: "ScaleSpeed") -> tuple[str, str, str]:
    return row.net, str(row.processes), str(row.threads)


def _words(ratio: "MeanRatio") -> str:
    return f"{ratio.mean:.2f} [{ratio.lower:.2f}, {ratio.upper:.2f}]"
