"""How a training would be shared out to processes, as `--dry-run` tells it beforehand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.training.processes.sharing import check_sharing, shards_in
from aimbot_lab.training.processes.tree import share

LARGE_MINIBATCH = 16_384  # samples, above which more of them bring hardly any progress


@dataclass(frozen=True)
class PlannedSharing:
    """Shards, and over how many processes these are spread."""

    shards: int
    processes: tuple[int, int]  # fewest and most
    machines: tuple[int, int]  # the same
    minibatch: int  # samples

    @property
    def text(self) -> str:
        """Processes, and the shards of each, for a person."""
        fewest, most = self.processes
        count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        on = _on(self.machines)
        each = " or ".join(dict.fromkeys(map(self._each, self.processes)))
        return f"processes: {count}{on}, each with {each} of {self.shards} shards"

    def _each(self, processes: int) -> str:
        sizes = sorted({len(share(rank, processes, self.shards)) for rank in range(processes)})
        return " to ".join(map(str, sizes))

    @property
    def warnings(self) -> Iterator[str]:
        """What speaks against it."""
        if self.minibatch > LARGE_MINIBATCH:
            yield (
                f"train.batch_size {self.minibatch:,}: minibatches above {LARGE_MINIBATCH:,} "
                "samples take more steps to the same win rate, so more processes may bring "
                "nothing; more rows with smaller minibatches, or a larger network, use them"
            )

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "shards": self.shards,
            "processes": list(self.processes),
            "machines": list(self.machines),
        }


def planned_sharing(
    config: CurriculumFile, processes: int, *, machines: tuple[int, int], asked: str
) -> PlannedSharing:
    """The sharing among so many processes on each of the fewest and the most machines.

    Raises ConfigurationError where the training of `config` can't be shared out so, which the
    options `asked` for.
    """
    fewest, most = machines
    check_sharing(config, most * processes, asked=asked)
    both = fewest * processes, most * processes
    return PlannedSharing(shards_in(config), both, machines, config.train.batch_size)


def _on(machines: tuple[int, int]) -> str:
    fewest, most = machines
    if most == 1:
        return ""
    return f" on {fewest} machines" if fewest == most else f" on {fewest} to {most} machines"
