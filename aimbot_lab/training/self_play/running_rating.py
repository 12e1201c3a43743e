"""The rating that ML-Agents keeps while its agents meet themselves.

Read in its Python package, version 1.1.0: trainers/ghost/trainer.py and controller.py. After each
game the learner's rating moves by the result less its expectation, the opponent's by as much the
other way (Elo with K = 1). A snapshot begins with the rating that the learner then has. Games
against the present self change nothing.
"""

from collections.abc import Mapping
from typing import Any

from aimbot_lab.foundation.statistics.ratings import expected_score

POINTS = 400.0  # in which the odds grow tenfold
FAR = 100_000.0  # from 0, beyond which powers of ten leave the range of floats


class RunningRating:
    """The learner's rating, and those of whom it has met, by their names.

    Scripted players, whom ML-Agents does not have, begin as the first snapshot does.
    """

    def __init__(self, initial: float) -> None:
        self._initial = initial
        self.learner = initial
        self._opponents: dict[str, float] = {}

    def take(self, snapshot: str) -> None:
        """The learner as it is now is `snapshot` from now on."""
        self._opponents[snapshot] = self.learner

    def add(self, opponent: str, score: float) -> None:
        """Take a game with `opponent` in which the learner had 1, 0.5 or 0 points."""
        other = self._opponents.get(opponent, self._initial)
        change = score - expected(self.learner, other)
        self._opponents[opponent] = other - change
        self.learner += change

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"learner": self.learner, "opponents": dict(self._opponents)}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.learner, self._opponents = state["learner"], dict(state["opponents"])


def expected(own: float, other: float) -> float:
    """Expected score of a rating against another, rounded as in ML-Agents where that is finite."""
    if max(abs(own), abs(other)) > FAR:
        return expected_score(max(min(own - other, FAR), -FAR))
    mine, theirs = 10.0 ** (own / POINTS), 10.0 ** (other / POINTS)
    return float(mine / (mine + theirs))
