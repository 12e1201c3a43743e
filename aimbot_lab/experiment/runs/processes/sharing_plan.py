"""How a training would be shared out among processes (`--dry-run`); nothing heavy is loaded."""

from typing import Any, NamedTuple

from aimbot_lab.experiment.runs.processes.expected_work import work_of
from aimbot_lab.training.processes.forecast import ON_PAPER, TEN_GIGABIT, expected
from aimbot_lab.training.processes.sharing import Shareable, check_sharing, shards_in
from aimbot_lab.training.processes.tree import share


class SharingPlan(NamedTuple):
    """Who would hold what, and what the exchange would take."""

    shards: int
    processes: tuple[int, int]  # fewest and most
    machines: tuple[int, int]  # the same
    exchange_share: float  # of the time, among the most, as the model expects it

    def __str__(self) -> str:
        network = "" if self.machines[1] == 1 else ", 10 GbE between the machines"
        each = " or ".join(dict.fromkeys(map(self._each, self.processes)))
        return (
            f"processes: {_range(*self.processes)}{self._on}, each with {each} of {self.shards} "
            f"shards; expected share of the exchange {self.exchange_share:.0%} (a model: one "
            f"thread and one core to each process{network})"
        )

    @property
    def _on(self) -> str:
        return "" if self.machines[1] == 1 else f" on {_range(*self.machines)} machines"

    def _each(self, processes: int) -> str:
        sizes = [len(share(rank, processes, self.shards)) for rank in range(processes)]
        return _range(min(sizes), max(sizes))

    def as_json(self) -> dict[str, Any]:
        """The same as a document."""
        pairs = {"processes": list(self.processes), "machines": list(self.machines)}
        return {**self._asdict(), **pairs}


def sharing_plan(
    plan: Shareable, processes: tuple[int, int], *, machines: tuple[int, int], asked: str
) -> SharingPlan:
    """The sharing among the fewest and the most `processes` of each, and `machines`.

    Raises ConfigurationError where the training of `plan` can't be shared out so, which the
    options `asked` for.
    """
    fewest, most = (each * count for each, count in zip(processes, machines, strict=True))
    check_sharing(plan, most, asked=asked)
    costs = ON_PAPER if machines[1] == 1 else TEN_GIGABIT
    exchange = expected(work_of(plan), most, costs).exchange_share
    return SharingPlan(shards_in(plan), (fewest, most), machines, exchange)


def _range(fewest: int, most: int) -> str:
    return f"{most}" if fewest == most else f"{fewest} to {most}"
