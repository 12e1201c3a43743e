"""Which rows of a larger batch a world has."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers


class Counted(Protocol):
    """A world's state."""

    @property
    def episode(self) -> npt.NDArray[np.int64]:
        """[B] episodes begun in each row."""
        ...


def row_numbers(first_row: int, total_rows: int, *, state: Counted) -> RowNumbers:
    """Those of a world of `state`.

    Raises MisuseError where its rows do not lie within all, and once episodes have begun.
    """
    rows = len(state.episode)
    if state.episode.any():
        raise MisuseError("the world has begun its episodes: place its rows before the first reset")
    if not 0 <= first_row <= total_rows - rows:
        raise MisuseError(
            f"first_row: must lie between 0 and {total_rows - rows}, as {rows} of {total_rows} "
            f"rows begin there (got {first_row})"
        )
    return RowNumbers(int(first_row), int(total_rows))
