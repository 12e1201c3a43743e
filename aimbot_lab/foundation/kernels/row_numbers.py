"""By which numbers kernels draw and rank for the rows of a world."""

from typing import NamedTuple


class RowNumbers(NamedTuple):
    """Row r of a world is row `first` + r of `total`, which draws and ranks by that number."""

    first: int
    total: int
