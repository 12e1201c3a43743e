"""`aimbot-lab bench train`: how fast is a whole training?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.bench.networks import network_document, network_table
from aimbot_lab.cli.bench.self_play import self_play_document, self_play_tables
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.train import TrainBench, TrainSpeed


@click.command(short_help="Measure trainings against another PPO.")
@click.option("--quick", is_flag=True, help="A tiny training, to see the form of the report.")
@click.option(
    "--network",
    type=click.Choice(("memory", "units", "all")),
    help="A network with a memory, with encoders of units and attention, or with everything, "
    "against plain layers and sb3-contrib's RecurrentPPO.",
)
@click.option(
    "--world",
    metavar="NAME",
    help="A world with self-play, such as duel: self-play against past selves, beside as many "
    "rows of the arena's hardest target.",
)
@options.as_json
def train(quick: bool, network: str | None, world: str | None, as_json: bool) -> None:
    """Measure whole trainings: hybrid_ppo against stable-baselines3's PPO, and what takes the time.

    The same arena, networks and hyper-parameters, with lessons and tracking; repeats take turns,
    and the best counts. Takes some five minutes; close other programs.

    \b
    Example:
      aimbot-lab bench train --json > bench.json
      aimbot-lab bench train --network memory
      aimbot-lab bench train --world duel
    """
    if network is not None and world is not None:
        raise click.UsageError("--network and --world are two benchmarks: give one of them")
    if network is not None:
        _network(network, quick=quick, as_json=as_json)
        return
    if world is not None:
        _self_play(world, quick=quick, as_json=as_json)
        return
    from aimbot_lab.bench.train import bench_train
    from aimbot_lab.bench.train_plan import FULL, QUICK

    found = bench_train(QUICK if quick else FULL, lambda line: click.echo(line, err=True))
    if as_json:
        print_json(_document(found))
    else:
        click.echo("\n\n".join((_speeds(found), _shares(found), _sums(found))))


def _network(network: str, *, quick: bool, as_json: bool) -> None:
    from aimbot_lab.bench.networks.measurement import bench_networks
    from aimbot_lab.bench.networks.plan import full
    from aimbot_lab.bench.networks.plan import quick as tiny

    plan = (tiny if quick else full)(network)
    found = bench_networks(plan, lambda line: click.echo(line, err=True))
    if as_json:
        print_json(network_document(found))
    else:
        click.echo(network_table(found))


def _self_play(world: str, *, quick: bool, as_json: bool) -> None:
    from aimbot_lab.bench.self_play.measurement import bench_self_play
    from aimbot_lab.bench.self_play.plan import full
    from aimbot_lab.bench.self_play.plan import quick as tiny

    plan = (tiny if quick else full)(world)
    found = bench_self_play(plan, lambda line: click.echo(line, err=True))
    if as_json:
        print_json(self_play_document(found))
    else:
        click.echo(self_play_tables(found))


def _document(found: "TrainBench") -> dict[str, Any]:
    plan = found.plan
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "machine": asdict(found.machine),
        "settings": {
            "num_envs": plan.num_envs,
            "n_steps": plan.n_steps,
            "batch_size": plan.batch_size,
            "n_epochs": plan.n_epochs,
        },
        "variants": [_entry(speed) for speed in found.speeds],
        "ratio_to_stable_baselines3": found.ratios,
        "two_trainings_at_once_steps_per_second": found.at_once,
    }


def _entry(speed: "TrainSpeed") -> dict[str, Any]:
    return {
        "name": speed.variant.name,
        "net": speed.variant.net,
        "threads": speed.variant.threads,
        "steps_per_second": speed.steps_per_second,
        "shares": dict(speed.shares),
        "update_steps_per_second": speed.update_steps_per_second,
        "matrix_products_steps_per_second": speed.product_steps_per_second,
    }


def _speeds(found: "TrainBench") -> str:
    body = [
        (
            *_who(speed),
            f"{speed.steps_per_second:,.0f}",
            f"{speed.update_steps_per_second:,.0f}",
            _limit(speed),
        )
        for speed in found.speeds
    ]
    machine, plan = found.machine, found.plan
    return (
        f"{machine.cpu}, {machine.cpu_count} usable cores, Python {machine.python}, "
        f"numba {machine.numba}, numpy {machine.numpy}\n"
        f"{plan.num_envs} environments, rollouts of {plan.n_steps} steps, {plan.n_epochs} epochs, "
        f"minibatches of {plan.batch_size}\n\n"
        "Environment steps per second: of the whole training, of its update by itself, and of its\n"
        "matrix products alone as numpy's BLAS does them (and how near the update comes to that)\n"
        + table(("algorithm", "net", "threads", "training", "update", "products"), body)
    )


def _shares(found: "TrainBench") -> str:
    parts = list(found.speeds[0].shares)
    body = [
        (*_who(speed), *(f"{speed.shares[part]:.1%}" for part in parts)) for speed in found.speeds
    ]
    return "Where the time goes\n" + table(("algorithm", "net", "threads", *parts), body)


def _sums(found: "TrainBench") -> str:
    lines = [
        f"{net}: {ratio:.2f} times stable-baselines3's best" for net, ratio in found.ratios.items()
    ]
    if found.at_once is not None:
        lines.append(
            f"Two trainings at once, 64x64, one thread each: {found.at_once:,.0f} steps per second "
            "together"
        )
    return "\n".join(lines)


def _who(speed: "TrainSpeed") -> tuple[str, str, str]:
    variant = speed.variant
    return variant.name, variant.net, str(variant.threads)


def _limit(speed: "TrainSpeed") -> str:
    """The speed of the products by a BLAS, and how much of that the update reaches."""
    limit = speed.product_steps_per_second
    return "-" if limit is None else f"{limit:,.0f} ({speed.update_steps_per_second / limit:.0%})"
