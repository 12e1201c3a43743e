"""Finished episodes as columns, in the form in which every layer above a world reads them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class EpisodeBatch(NamedTuple):
    """Episodes that ended in the same step of a batch of rows, one entry per episode.

    `lines` are the result lines as a game sends them; the outcome is read from them by
    `foundation.results`, so that a world outside this process is tracked by the same code.
    """

    lines: tuple[str, ...]  # [N]
    row: npt.NDArray[np.int64]  # [N] environment row
    order: npt.NDArray[np.int64]  # [N] rank by beginning: unique, rises with the start time
    scenario: npt.NDArray[np.int64]  # [N] number of the scenario it was drawn from
    length: npt.NDArray[np.int64]  # [N] decisions
    terms: npt.NDArray[np.float64]  # [N, T] sum of each reward term
    # The last two are the world's own arrays: read them before its next step.
    running_order: npt.NDArray[np.int64]  # [B] rank of the episode now running in each row
    running_scenario: npt.NDArray[np.int64]  # [B] scenario of the episode now running

    def __bool__(self) -> bool:
        """Whether any episode ended."""
        return len(self.lines) > 0
