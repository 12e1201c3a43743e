"""Every pair of players in the same matches."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from aimbot_lab.evaluation.matches import Fixture, MatchPlayer, play_pair


def play_all(
    players: Sequence[MatchPlayer], fixture: Fixture, *, on_pair: Callable[[str], None]
) -> np.ndarray:
    """[P, P, 3] wins, draws and losses of each of `players` against each.

    Every pair plays the first episode of each row, which begins alike for all of them.
    """
    counts = np.zeros((len(players), len(players), 3), np.int64)
    for one, other in combinations(range(len(players)), 2):
        wins, draws, losses = play_pair(players[one], players[other], fixture)
        counts[one, other] = wins, draws, losses
        counts[other, one] = losses, draws, wins
        on_pair(f"{players[one].name} - {players[other].name}")
    return counts
