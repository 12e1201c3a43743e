"""A change of difficulty weights that a person makes while an agent trains."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from aimbot_lab.foundation.difficulty_weights import DifficultyWeights
from aimbot_lab.foundation.errors import ConfigurationError

W = TypeVar("W", bound=Any)  # a dataclass with `locked`, `lock` and `move`, as DifficultyWeights


def changed(
    weights: W, *, moves: Iterable[tuple[Any, float]], lock: Iterable[Any], unlock: Iterable[Any]
) -> W:
    """`weights` with locks opened, then weights moved in turn, then locks closed.

    Weights that are moved hold each other's place, and a weight may be moved and locked at once.
    """
    moves, lock = tuple(moves), tuple(lock)
    for name in unlock:
        weights = weights.lock(name, locked=False)
    moved = {name for name, _ in moves}
    for name in lock:
        weights = weights if name in moved else weights.lock(name)
    held = weights
    for name, weight in moves:
        held = held.move(name, weight).lock(name)
    weights = replace(held, locked=weights.locked)
    for name in lock:
        weights = weights.lock(name)
    return weights


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
        return changed(weights, moves=self.moves, lock=self.lock, unlock=self.unlock)
