"""Absolute positions of cells, as Kaiwu's Gorge Walk gives them beside the cells themselves."""

from math import floor

UNIT = 1000  # along each side of a cell


def absolute_position(x: int, z: int) -> tuple[float, float]:
    """The middle of cell (x, z); the origin is the grid's top left corner."""
    return UNIT * (x + 0.5), UNIT * (z - 63.5)


def cell_at(along_x: float, along_z: float) -> tuple[int, int]:
    """The cell (x, z) that holds an absolute position."""
    return floor(along_x / UNIT), floor(along_z / UNIT) + 64
