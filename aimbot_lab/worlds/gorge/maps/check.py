"""The ways that a map must have, so that every game on it can be won."""

from collections.abc import Iterator
from typing import NamedTuple

from aimbot_lab.worlds.gorge.maps.distances import distances
from aimbot_lab.worlds.gorge.maps.grid import GorgeMap

MIN_STEPS = 8  # from start to end


class BrokenRule(NamedTuple):
    """What is wrong with a map, and the cell to blame."""

    cell: tuple[int, int]  # (x, z)
    reason: str


def broken_rules(grid: GorgeMap) -> list[BrokenRule]:
    """Every rule that the map breaks; road that can't be reached is allowed."""
    return [*_sites_without_a_way(grid), *_end_too_near_or_far(grid)]


def shortest_way(grid: GorgeMap) -> int:
    """Steps from start to end; -1: no way."""
    return int(distances(grid, grid.end)[grid.start])


def _sites_without_a_way(grid: GorgeMap) -> Iterator[BrokenRule]:
    from_start = distances(grid, grid.start)
    for number, (x, z) in enumerate(grid.sites.tolist()):
        if from_start[x, z] < 0:
            what = f"site {number} at ({x}, {z}) can't be reached from the start without the end"
            yield BrokenRule((x, z), what)


def _end_too_near_or_far(grid: GorgeMap) -> Iterator[BrokenRule]:
    steps = shortest_way(grid)
    if steps < 0:
        yield BrokenRule(grid.end, "the end can't be reached")
    elif steps < MIN_STEPS:
        what = f"start and end must be {MIN_STEPS} steps apart (got {steps})"
        yield BrokenRule(grid.end, what)
