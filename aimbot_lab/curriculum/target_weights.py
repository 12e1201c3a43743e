"""Weights of a mix's targets as a panel moves them: by the laws of difficulty weights."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from aimbot_lab.curriculum.weight_change import changed
from aimbot_lab.foundation.difficulty_weights import check_weights, moved_weights
from aimbot_lab.foundation.errors import ConfigurationError


@dataclass(frozen=True)
class TargetWeights:
    """Weights of targets, which sum to 1, and which of them are locked."""

    targets: tuple[str, ...]
    weights: tuple[float, ...]
    locked: tuple[bool, ...]

    def __post_init__(self) -> None:
        count = len(self.targets)
        check_weights(self.weights, self.locked, count=count, name="weights of targets")

    @classmethod
    def normalised(cls, weights: Mapping[str, float]) -> "TargetWeights":
        """Weights in these proportions, which are above 0, none locked."""
        total = sum(weights.values())
        shares = tuple(weight / total for weight in weights.values())
        return cls(tuple(weights), shares, (False,) * len(shares))

    @property
    def drawn(self) -> dict[str, float]:
        """The weights of the targets that are drawn at all."""
        pairs = zip(self.targets, self.weights, strict=True)
        return {target: weight for target, weight in pairs if weight > 0}

    def lock(self, target: str, *, locked: bool = True) -> "TargetWeights":
        """These weights with that of `target` locked or unlocked."""
        index = self._index(target)
        return replace(self, locked=(*self.locked[:index], locked, *self.locked[index + 1 :]))

    def move(self, target: str, weight: float) -> "TargetWeights":
        """These weights with that of `target` set, the others rescaled.

        Raises ConfigurationError as `DifficultyWeights.move` does.
        """
        index = self._index(target)
        moved = moved_weights(self.weights, self.locked, index=index, weight=weight, name=target)
        return replace(self, weights=moved)

    def _index(self, target: str) -> int:
        if target not in self.targets:
            raise ConfigurationError(
                f"{target:.40}: is no target of this lesson; it has {', '.join(self.targets)}"
            )
        return self.targets.index(target)


class TargetChange(NamedTuple):
    """What shall be moved: locks are opened, then weights moved in turn, then locks closed."""

    moves: tuple[tuple[str, float], ...] = ()  # target and its new weight
    lock: tuple[str, ...] = ()  # targets whose weights stay
    unlock: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "TargetChange":
        """The change that `as_json` gave. Raises ConfigurationError where it is none."""
        try:
            moves = tuple((str(target), float(weight)) for target, weight in document["moves"])
            lock, unlock = (tuple(map(str, document[key])) for key in ("lock", "unlock"))
            return cls(moves, lock, unlock)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"not a change of weights: {document!r:.80}") from error

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, with the kind of request that they are."""
        return {"kind": "targets", **self._asdict()}

    def apply(self, weights: TargetWeights) -> TargetWeights:
        """`weights` after the change; those moved by it hold each other's place.

        Raises ConfigurationError where it is impossible.
        """
        return changed(weights, moves=self.moves, lock=self.lock, unlock=self.unlock)
