"""How a training would be shared out among processes (`--dry-run`); nothing heavy is loaded."""

from typing import Any, NamedTuple

from aimbot_lab.training.algorithms.rollout_algorithms import shard_count
from aimbot_lab.training.networks.parts.network_summary import network_summary
from aimbot_lab.training.processes.forecast import ON_PAPER, Costs, Work, expected
from aimbot_lab.training.processes.sharing import Shareable
from aimbot_lab.training.processes.tree import share
from aimbot_lab.worlds.registry import seats_in, spec_of, type_of


class SharingPlan(NamedTuple):
    """Who would hold what, and what the exchange would take."""

    processes: int
    shards: tuple[int, ...]  # of each process
    exchange_share: float  # of the time, as the model expects it

    def __str__(self) -> str:
        fewest, most = min(self.shards), max(self.shards)
        each = f"{most}" if fewest == most else f"{fewest} to {most}"
        return (
            f"processes: {self.processes}, {each} of {sum(self.shards)} shards each; expected "
            f"share of the exchange {self.exchange_share:.0%} (a model of one thread and one core "
            "to each process)"
        )

    def as_json(self) -> dict[str, Any]:
        """The same as a document."""
        return {**self._asdict(), "shards": list(self.shards)}


def sharing_plan(plan: Shareable, processes: int, costs: Costs = ON_PAPER) -> SharingPlan | None:
    """How so many processes, which can, would share the training; None for one alone."""
    if processes == 1:
        return None
    work = work_of(plan)
    shards = tuple(len(share(rank, processes, work.shards)) for rank in range(processes))
    return SharingPlan(processes, shards, expected(work, processes, costs).exchange_share)


def work_of(plan: Shareable) -> Work:
    """What a rollout and its update consist of."""
    train, rows = plan.train, seats_in(plan.env)
    parts = network_summary(train, spec_of(plan.env))
    samples = rows * train.n_steps * train.samples.keep
    return Work(
        rows=rows,
        shards=shard_count(train, type_of(plan.env).rows(plan.env)),
        steps=train.n_steps,
        epochs=train.n_epochs,
        minibatches=-(-samples // train.batch_size),
        weights=sum(part.weights for part in parts),
    )
