"""The learner's scores against each snapshot, in which old games weigh less and less."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

HALF_LIFE = 256  # games of the learner with the same snapshot
DECAY = 0.5 ** (1.0 / HALF_LIFE)


class RecentScores:
    """Discounted scores and games with each snapshot, by its number; a draw is half a score.

    A snapshot that was not met counts as one that was drawn with once.
    """

    def __init__(self) -> None:
        self._scores: list[float] = []
        self._games: list[float] = []

    def add(self, snapshot: int, score: float) -> None:
        """Take a game with `snapshot`."""
        missing = snapshot + 1 - len(self._games)
        self._scores += [0.0] * missing
        self._games += [0.0] * missing
        self._scores[snapshot] = DECAY * self._scores[snapshot] + score
        self._games[snapshot] = DECAY * self._games[snapshot] + 1.0

    def expected(self, count: int) -> npt.NDArray[np.float64]:
        """The expected score [count] against each of the first snapshots."""
        games, scores = np.zeros(count), np.zeros(count)
        known = min(count, len(self._games))
        games[:known], scores[:known] = self._games[:known], self._scores[:known]
        return np.asarray((scores + 0.5) / (games + 1.0))

    def state(self) -> list[list[float]]:
        """Plain JSON values."""
        return [list(self._scores), list(self._games)]

    def resume(self, state: Sequence[Sequence[float]]) -> None:
        """Go on from what `state()` gave."""
        self._scores, self._games = (list(part) for part in state)
