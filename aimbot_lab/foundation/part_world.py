"""A world that has some of the rows of a larger one."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from aimbot_lab.foundation.world import Int64Array

Snapshot = Mapping[str, np.ndarray]


class PartWorld(Protocol):
    """What a world with the ability `parts` has beside what all worlds have."""

    def place(self, first_row: int, total_rows: int) -> None:
        """Be the rows from `first_row` on of a world of `total_rows`; before the first reset."""
        ...

    @property
    def first_row(self) -> int:
        """Which row of all its first one is."""
        ...

    def running(self) -> tuple[Int64Array, Int64Array]:
        """Rank and scenario [N] of the episode that runs in each seat: the world's own arrays."""
        ...

    def joined(self, parts: Sequence[Snapshot]) -> Snapshot:
        """The snapshot of the whole from those of all parts, in the order of their rows."""
        ...

    def part_of(self, whole: Snapshot) -> Snapshot:
        """Of the snapshot of the whole that which this world can restore."""
        ...
