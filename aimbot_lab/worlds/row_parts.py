"""Worlds that share out the rows of one among them: their rows, their snapshots joined and cut."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.world import Int64Array
from aimbot_lab.worlds.snapshot_checks import FITS, Arrays

OF_ALL = ("clock", "sampler_key", FITS)  # arrays that are not by row
TABLES = ("scenario_tables.", "sampler_tables.")  # what the names of further ones begin with
ROWS = "episode"  # an array [B] that every such world has


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

    def joined(self, parts: Sequence[Arrays]) -> Arrays:
        """The snapshot of the whole from those of all parts, in the order of their rows."""
        ...

    def part_of(self, whole: Arrays) -> Arrays:
        """Of the snapshot of the whole that which this world can restore."""
        ...


def joined(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """The snapshot of the whole from those of its `parts`, in the order of their rows.

    It is what one world with all rows would give, to the bit. Raises MisuseError where they are not
    parts of one world.
    """
    return {name: _whole(name, parts) for name in parts[0]}


def part_of(whole: Arrays, first_row: int, rows: int) -> dict[str, np.ndarray]:
    """The snapshot of `rows` rows of `whole`, from `first_row` on."""
    total = len(whole[ROWS])
    return {
        name: array if _is_of_all(name) else _cut(array, total, slice(first_row, first_row + rows))
        for name, array in whole.items()
    }


def _is_of_all(name: str) -> bool:
    return name.rpartition(".")[2] in OF_ALL or name.startswith(TABLES)


def _whole(name: str, parts: Sequence[Arrays]) -> np.ndarray:
    arrays = [part.get(name) for part in parts]
    known = [array for array in arrays if array is not None]
    if len(known) < len(parts):
        raise MisuseError(f"snapshot: {name} is missing in one of the parts")
    if not _is_of_all(name):
        agents = [
            _by_agent(array, len(part[ROWS])) for array, part in zip(known, parts, strict=True)
        ]
        together = np.concatenate(agents, axis=1)
        return together.reshape(together.shape[0] * together.shape[1], *together.shape[2:])
    if not all(np.array_equal(array, known[0]) for array in known):
        raise MisuseError(f"snapshot: {name} differs between the parts")
    return known[0]


def _cut(array: np.ndarray, total: int, rows: slice) -> np.ndarray:
    own = _by_agent(array, total)[:, rows]
    return own.reshape(own.shape[0] * own.shape[1], *own.shape[2:])


def _by_agent(array: np.ndarray, rows: int) -> np.ndarray:
    """`array` [agents, rows, ...] by seats: those of the first agent come first."""
    return array.reshape(len(array) // rows, rows, *array.shape[1:])
