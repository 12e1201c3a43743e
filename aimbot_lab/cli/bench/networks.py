"""What `aimbot-lab bench train --network` prints."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import aimbot_lab
from aimbot_lab.cli.views.text import table

if TYPE_CHECKING:
    from aimbot_lab.bench.networks.measurement import NetworkBench, NetworkSpeed

HEAD = (
    *("network", "threads", "engine", "training", "update", "over recurrent_ppo"),
    *("over its shared form", "over plain", "over one thread"),
)


def network_document(found: "NetworkBench") -> dict[str, Any]:
    """The JSON document."""
    plan = found.plan
    settings = ("units", "sequence_length", "num_envs", "n_steps", "batch_size", "n_epochs")
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "machine": asdict(found.machine),
        "settings": {name: getattr(plan, name) for name in settings},
        "rows": [asdict(row) for row in found.rows],
    }


def network_table(found: "NetworkBench") -> str:
    """A table for a person."""
    machine, plan = found.machine, found.plan
    return (
        f"{machine.cpu}, {machine.cpu_count} usable cores, Python {machine.python}, "
        f"numba {machine.numba}, numpy {machine.numpy}\n"
        f"{plan.num_envs} environments, rollouts of {plan.n_steps} steps, {plan.n_epochs} epochs, "
        f"minibatches of {plan.batch_size}\n\n"
        "Environment steps per second of the whole training and of its update by itself, and how\n"
        "many times as fast as others with as many threads\n"
        + table(HEAD, [_line(row) for row in found.rows])
    )


def _line(row: "NetworkSpeed") -> tuple[str, ...]:
    ratios = (
        row.ratio_to_recurrent_ppo,
        row.ratio_to_recurrent_ppo_shared,
        row.ratio_to_plain,
        row.ratio_to_one_thread,
    )
    return (
        row.network,
        str(row.threads),
        row.engine,
        f"{row.steps_per_second:,.0f}",
        f"{row.update_steps_per_second:,.0f}",
        *(f"{ratio:.2f}" for ratio in ratios),
    )
