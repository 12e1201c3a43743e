"""A map: where the obstacles, the start, the end and the treasure sites of a game are."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

SIZE = 64  # cells each way
MAX_SITES = 10


@dataclass(frozen=True, eq=False)
class GorgeMap:
    """A map on which games are played; nobody writes to its arrays.

    A cell is (x, z), x to the right, z up, (0, 0) the bottom left corner. Two maps are equal where
    their names and contents are.
    """

    name: str
    walls: npt.NDArray[np.bool_]  # [64, 64] by [x, z]: True where there is an obstacle
    start: tuple[int, int]  # (x, z)
    end: tuple[int, int]  # (x, z)
    sites: npt.NDArray[np.int64]  # [S, 2] x, z of the treasure sites by config_id, 1 <= S <= 10
    points: npt.NDArray[np.float64]  # [S] what a treasure on each site is worth

    def __post_init__(self) -> None:
        for array in (self.walls, self.sites, self.points):
            array.setflags(write=False)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content, not of the name: 64 hex digits."""
        digest = hashlib.sha256(np.packbits(self.walls).tobytes())
        for numbers in ([*self.start, *self.end], self.sites, self.points):
            digest.update(np.asarray(numbers, "<f8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether `other` is a map of the same name and content."""
        if not isinstance(other, GorgeMap):
            return NotImplemented
        return (self.name, self.content_hash) == (other.name, other.content_hash)

    def __hash__(self) -> int:
        """Equal for equal maps."""
        return hash((self.name, self.content_hash))
