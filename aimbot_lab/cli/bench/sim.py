"""`aimbot-lab bench sim`: steps per second of the simulators, and where a step's time goes."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.shares import Shares
    from aimbot_lab.bench.sim import SimBench


@click.command(short_help="Measure the simulator's steps per second.")
@click.option("--quick", is_flag=True, help="A few seconds only: rough figures, no cold start.")
@options.as_json
def sim(quick: bool, as_json: bool) -> None:
    """Measure the simulator: steps per second, what takes the time, how long a start takes.

    A step is one decision of one agent, under random play; where an environment has
    several, the columns count agents. Takes about a minute; close
    other programs, and compare only figures of the same run.

    \b
    Example:
      aimbot-lab bench sim --json > bench.json
    """
    from aimbot_lab.bench.sim import bench_sim
    from aimbot_lab.bench.sim_plan import FULL, QUICK

    found = bench_sim(QUICK if quick else FULL, lambda line: click.echo(line, err=True))
    if as_json:
        print_json(_document(found))
    else:
        click.echo("\n\n".join(_texts(found)))


def _texts(found: "SimBench") -> Iterator[str]:
    yield _speeds(found)
    yield _shares(found.mixed, "all targets mixed")
    yield from (_shares(one, f"world {one.world}") for one in found.others)
    yield _plain(found)
    yield _starts(found)


def _document(found: "SimBench") -> dict[str, Any]:
    mixed = found.mixed
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "machine": asdict(found.machine),
        "rows": [asdict(speed) for speed in found.rows],
        "shares": dict(mixed.shares),
        "mixed_step": _step(mixed),
        "other_worlds": {
            one.world: {"shares": dict(one.shares), "step": _step(one)} for one in found.others
        },
        "plain_python_step": {
            "num_envs": found.plain_num_envs,
            "threads": 1,
            "steps_per_second": found.plain_steps_per_second,
        },
        "ratio_to_plain_python": found.ratio_to_plain_python,
        "compile_seconds": asdict(found.starts),
    }


def _step(found: "Shares") -> dict[str, Any]:
    return {
        "num_envs": found.num_envs,
        "threads": 1,
        "steps_per_second": found.steps_per_second,
        "resets_per_step": found.resets_per_step,
    }


def _speeds(found: "SimBench") -> str:
    """Steps per second, one line for each target and number of threads."""
    sizes = sorted({speed.num_envs for speed in found.rows})
    lines: dict[tuple[str, str, int], dict[int, float]] = {}
    for speed in found.rows:
        line = speed.world, speed.target, speed.threads
        lines.setdefault(line, {})[speed.num_envs] = speed.steps_per_second
    body = [(*line, *(f"{speeds[size]:,.0f}" for size in sizes)) for line, speeds in lines.items()]
    machine = found.machine
    return (
        f"{machine.cpu}, {machine.cpu_count} usable cores, Python {machine.python}, "
        f"numba {machine.numba}, numpy {machine.numpy}\n\n"
        "Steps per second by number of environments\n"
        + table(("world", "target", "threads", *map(str, sizes)), body)
    )


def _shares(mixed: "Shares", targets: str) -> str:
    nanoseconds = 1e9 / mixed.steps_per_second
    body = [
        (part, f"{share:.1%}", f"{share * nanoseconds:.0f} ns")
        for part, share in mixed.shares.items()
    ]
    return (
        f"Where a step's time goes: {targets}, {mixed.num_envs} environments, 1 thread.\n"
        "Each part timed alone on the same rows; the rest is what is left of the whole step.\n"
        + table(("part", "share", "of a step"), body)
    )


def _plain(found: "SimBench") -> str:
    return (
        f"{found.ratio_to_plain_python:,.0f} times as fast as plain Python: "
        f"{found.mixed.steps_per_second:,.0f} against {found.plain_steps_per_second:,.0f} steps "
        "per second.\n"
        "Plain Python is the kernels' own source with the compiler off, "
        f"with {found.plain_num_envs} environments."
    )


def _starts(found: "SimBench") -> str:
    cold, cached = found.starts.cold, found.starts.cached
    if cold is None or cached is None:
        return "From import to first step: not measured."
    return (
        f"From import to first step: {cold:.1f} s cold (the kernels are compiled), "
        f"{cached:.2f} s cached."
    )
