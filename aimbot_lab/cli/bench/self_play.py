"""What `aimbot-lab bench train --world` prints."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import aimbot_lab
from aimbot_lab.cli.views.text import table

if TYPE_CHECKING:
    from aimbot_lab.bench.self_play.acting import ActingSpeed
    from aimbot_lab.bench.self_play.measurement import SelfPlayBench, SelfPlaySpeed

HEAD = "training", "net", "threads", "engine", "training", "update", "ratio"
SETTINGS = (
    *("matches", "rows", "ratio", "window", "at_once"),
    *("n_steps", "batch_size", "n_epochs"),
)


def self_play_document(found: "SelfPlayBench") -> dict[str, Any]:
    """The JSON document."""
    plan = found.plan
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "machine": asdict(found.machine),
        "world": plan.world.name,
        "settings": {name: getattr(plan, name) for name in SETTINGS},
        "rows": [asdict(row) for row in found.rows],
        "acting": [asdict(one) for one in found.acting],
    }


def self_play_tables(found: "SelfPlayBench") -> str:
    """Tables for a person."""
    machine, plan = found.machine, found.plan
    parts = list(found.rows[0].shares)
    shares = [(*_who(row), *(f"{row.shares[part]:.1%}" for part in parts)) for row in found.rows]
    return (
        f"{machine.cpu}, {machine.cpu_count} usable cores, Python {machine.python}, "
        f"numba {machine.numba}, numpy {machine.numpy}\n"
        f"{plan.rows} rows of the learner, rollouts of {plan.n_steps} steps, {plan.n_epochs} "
        f"epochs, minibatches of {plan.batch_size}; self-play in {plan.matches} matches, "
        f"{plan.mirrored} of them mirrored,\n{plan.at_once} snapshots at once of the newest "
        f"{plan.window}\n\n"
        "Learner steps per second of the whole training and of its update by itself, and how many\n"
        "times as fast as the other training with as many threads\n"
        + table(HEAD, [_line(row) for row in found.rows])
        + "\n\nWhere the time goes\n"
        + table(("training", "net", "threads", *parts), shares)
        + "\n\nActing of past selves\n"
        + table(("rows", "networks", "threads", "microseconds", "ratio"), _acting(found.acting))
    )


def _who(row: "SelfPlaySpeed") -> tuple[str, str, str]:
    return row.name, row.net, str(row.threads)


def _line(row: "SelfPlaySpeed") -> tuple[str, ...]:
    return (
        *_who(row),
        row.engine,
        f"{row.steps_per_second:,.0f}",
        f"{row.update_steps_per_second:,.0f}",
        f"{row.ratio_to_hardest_target:.2f}",
    )


def _acting(speeds: tuple["ActingSpeed", ...]) -> list[tuple[str, ...]]:
    return [
        (
            *(str(number) for number in (one.rows, one.networks, one.threads)),
            f"{1e6 * one.seconds_per_step:,.0f}",
            f"{one.ratio_to_one_network:.2f}",
        )
        for one in speeds
    ]
