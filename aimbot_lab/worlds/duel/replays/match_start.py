"""A match as it begins: its own values, from which a world of one match goes on."""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.worlds.duel.snapshots import OF_SCENARIO, OF_SEATS
from aimbot_lab.worlds.snapshot_checks import FITS

OF_ALL = ("sampler_key", "clock")  # arrays that no match has one of its own in


def match_start(arrays: Mapping[str, np.ndarray], row: int, matches: int) -> dict[str, np.ndarray]:
    """Copies of what match `row` of `matches` depends on, of the arrays of a snapshot of a duel."""
    both = [row, row + matches]
    found = {}
    for name, array in arrays.items():
        if name == FITS or name.startswith(OF_SCENARIO) or name.rpartition(".")[2] in OF_ALL:
            found[name] = array.copy()
        elif name.startswith(OF_SEATS) or len(array) == 2 * matches:
            found[name] = array[both]
        else:
            found[name] = array[row : row + 1].copy()
    return found
