"""A change of difficulty weights that a person makes while an agent trains."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sim.difficulty_weights import DifficultyWeights


class WeightChange(NamedTuple):
    """What shall be moved; first locks are opened, then set, then weights are moved in turn."""

    target: str
    moves: tuple[tuple[int, float], ...] = ()  # difficulty and its new weight
    lock: tuple[int, ...] = ()  # difficulties whose weights stay
    unlock: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "WeightChange":
        """The change that `_asdict` gave. Raises ConfigurationError where it is none."""
        try:
            moves = tuple((int(level), float(weight)) for level, weight in document["moves"])
            lock, unlock = (tuple(map(int, document[key])) for key in ("lock", "unlock"))
            return cls(str(document["target"]), moves, lock, unlock)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"not a change of weights: {document!r:.80}") from error

    def apply(self, weights: DifficultyWeights) -> DifficultyWeights:
        """`weights` after the change; those moved by it hold each other's place.

        Raises ConfigurationError where it is impossible.
        """
        for level in self.unlock:
            weights = weights.lock(level, locked=False)
        for level in self.lock:
            weights = weights.lock(level)
        moved = weights
        for level, weight in self.moves:
            moved = moved.move(level, weight).lock(level)
        return replace(moved, locked=weights.locked)
