"""A change of difficulty weights that a person makes while an agent trains."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from aimbot_lab.foundation.difficulty_weights import DifficultyWeights
from aimbot_lab.foundation.errors import ConfigurationError


class WeightChange(NamedTuple):
    """What shall be moved: locks are opened, then weights moved in turn, the locked ones staying.

    A weight may be moved and locked at once.
    """

    target: str
    moves: tuple[tuple[int, float], ...] = ()  # difficulty and its new weight
    lock: tuple[int, ...] = ()  # difficulties whose weights stay
    unlock: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "WeightChange":
        """The change that `as_json` gave. Raises ConfigurationError where it is none."""
        try:
            moves = tuple((int(level), float(weight)) for level, weight in document["moves"])
            lock, unlock = (tuple(map(int, document[key])) for key in ("lock", "unlock"))
            return cls(str(document["target"]), moves, lock, unlock)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"not a change of weights: {document!r:.80}") from error

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return self._asdict()

    def apply(self, weights: DifficultyWeights) -> DifficultyWeights:
        """`weights` after the change; those moved by it hold each other's place.

        Raises ConfigurationError where it is impossible.
        """
        for level in self.unlock:
            weights = weights.lock(level, locked=False)
        moved = tuple(level for level, _ in self.moves)
        for level in self.lock:
            weights = weights if level in moved else weights.lock(level)
        held = weights
        for level, weight in self.moves:
            held = held.move(level, weight).lock(level)
        weights = replace(held, locked=weights.locked)
        for level in self.lock:
            weights = weights.lock(level)
        return weights
