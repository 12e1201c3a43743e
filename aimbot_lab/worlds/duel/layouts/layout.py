"""A hall as data."""

from dataclasses import dataclass
from functools import cached_property

FLOOR_SIZE = 30.0  # m, side of the floor that layouts are made for
GRAIN = 64.0  # coordinates are whole multiples of 1 / GRAIN m, so that S - x is exact
WHOLE = 2.0**53  # floats beyond have no fraction
Box = tuple[float, float, float, float]  # m: min x, min z, max x, max z


@dataclass(frozen=True)
class Layout:
    """What stands in a hall, in metres; of boxes the turned twin stands as well."""

    name: str
    difficulty: int  # 1 (open) to 5 (hardest)
    boxes: tuple[Box, ...]  # as written
    start: tuple[float, float]  # x and z where no drawn start fits; both look along +z there

    @cached_property
    def all_boxes(self) -> tuple[Box, ...]:
        """All boxes, twins among them; turned, the hall is the same list in the same order."""
        given = [rounded(box) for box in self.boxes]
        return tuple(sorted({*given, *(twin(box) for box in given)}))


def rounded(box: Box) -> Box:
    """`box` on the grain."""
    a, b, c, d = (side if abs(side) > WHOLE else round(side * GRAIN) / GRAIN for side in box)
    return a, b, c, d


def twin(box: Box) -> Box:
    """`box` turned by half a turn about the floor's middle."""
    low_x, low_z, high_x, high_z = box
    return FLOOR_SIZE - high_x, FLOOR_SIZE - high_z, FLOOR_SIZE - low_x, FLOOR_SIZE - low_z
