"""How a training would be shared out among processes (`--dry-run`); nothing heavy is loaded."""

from typing import Any, NamedTuple

from aimbot_lab.experiment.runs.processes.expected_work import work_of
from aimbot_lab.training.processes.forecast import ON_PAPER, Costs, expected
from aimbot_lab.training.processes.sharing import Shareable
from aimbot_lab.training.processes.tree import share


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
