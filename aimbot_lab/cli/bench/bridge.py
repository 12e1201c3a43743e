"""`aimbot-lab bench bridge`: what the bridge to ML-Agents costs."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.bridge.bridge import BridgeBench


@click.command(short_help="Measure the bridge to ML-Agents.")
@click.option("--quick", is_flag=True, help="A few seconds only: rough figures.")
@options.as_json
def bridge(quick: bool, as_json: bool) -> None:
    """Measure agents' steps a second by ML-Agents' calls, through the wire and in process.

    Through the wire, a player and a trainer of this package talk by gRPC, each in a process of its
    own; an echo of messages as long shows what gRPC itself takes. In process, LabEnvironment runs
    beside the world that it plays. All by turns, under random play. Takes about a minute; close
    other programs. Needs gRPC: pip install 'aimbot-lab[unity]'.

    \b
    Example:
      aimbot-lab bench bridge --json > bridge.json
    """
    from aimbot_lab.bench.bridge.bridge import FULL, QUICK, bench_bridge

    found = bench_bridge(QUICK if quick else FULL, lambda line: click.echo(line, err=True))
    if as_json:
        print_json(_document(found))
    else:
        click.echo(_text(found))


def _document(found: "BridgeBench") -> dict[str, Any]:
    inside = found.in_process
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "machine": asdict(found.machine),
        "wire": [{**asdict(one), "steps_per_second": one.steps_per_second} for one in found.wire],
        "in_process": {**asdict(inside), "share": inside.share},
    }


def _text(found: "BridgeBench") -> str:
    body = [
        (
            str(one.agents),
            f"{one.steps_per_second:,.0f}",
            f"{one.messages_per_second:,.0f}",
            f"{one.echo_per_second:,.0f}",
            f"{one.message_bytes:,}",
            f"{one.answer_bytes:,}",
        )
        for one in found.wire
    ]
    head = ("agents", "agent-steps/s", "messages/s", "echoes/s", "bytes", "bytes of actions")
    inside = found.in_process
    return (
        f"{found.machine.cpu}, {found.machine.cpu_count} usable cores\n\n"
        "Through the wire, by agents a message\n" + table(head, body) + "\n\n"
        f"In process, {inside.agents} agents: {inside.environment:,.0f} agent-steps a second by "
        f"ML-Agents' calls, {inside.share:.2f} of the world's own {inside.world:,.0f} "
        f"({inside.world_and_masks:,.0f} where masks are asked for as well)."
    )
