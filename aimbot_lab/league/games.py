"""Every pair of players in the same matches."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from aimbot_lab.evaluation.matches import Fixture, MatchPlayer
from aimbot_lab.evaluation.side_by_side import Pair, play_pairs
from aimbot_lab.foundation.world import BatchWorld
from aimbot_lab.training.self_play.kernel_crew import KernelCrew

MOST = 32_768  # matches at once, unless a single pair has more


def play_all(
    players: Sequence[MatchPlayer],
    new_world: Callable[[], BatchWorld],
    seed: int,
    *,
    on_pair: Callable[[str], None],
) -> np.ndarray:
    """[P, P, 3] wins, draws and losses of each of `players` against each.

    Every pair plays the first episode of each row of a world of its own, which begins by `seed`, so
    alike for all of them. As many pairs as have room play side by side.
    """
    pairs = list(combinations(range(len(players)), 2))
    counts = np.zeros((len(players), len(players), 3), np.int64)
    worlds = [new_world()]
    at_once = max(1, min(len(pairs), MOST // worlds[0].num_envs))
    worlds += [new_world() for _ in range(at_once - 1)]

    def told(pair: Pair) -> None:
        on_pair(f"{pair[0].name} - {pair[1].name}")

    for first in range(0, len(pairs), at_once):
        some = pairs[first : first + at_once]
        fixtures = [Fixture(world, seed) for world in worlds[: len(some)]]
        named = [(players[one], players[other]) for one, other in some]
        found = play_pairs(named, fixtures, crew=KernelCrew(), on_pair=told)
        for (one, other), (wins, draws, losses) in zip(some, found, strict=True):
            counts[one, other] = wins, draws, losses
            counts[other, one] = losses, draws, wins
    return counts
