"""Weights of a target's difficulties as a panel moves them: they always sum to 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.samplers import as_parameter

DIFFICULTY_COUNT = 5  # of every target that has any
SLACK = 1e-9  # that rounding may leave between a sum and 1
_NAME = "difficulty weights"


@dataclass(frozen=True)
class DifficultyWeights:
    """Five weights that sum to 1, and which of them are locked.

    Every change gives new weights and leaves these as they are.
    """

    weights: tuple[float, ...] = (1 / DIFFICULTY_COUNT,) * DIFFICULTY_COUNT
    locked: tuple[bool, ...] = (False,) * DIFFICULTY_COUNT

    def __post_init__(self) -> None:
        check_weights(self.weights, self.locked, count=DIFFICULTY_COUNT, name=_NAME)

    @classmethod
    def normalised(cls, weights: Sequence[float]) -> "DifficultyWeights":
        """Weights in these proportions, none locked. Raises ConfigurationError for a sum of 0."""
        _refuse_unfit(weights, _NAME)
        largest = max(weights, default=0)
        if largest == 0:
            raise ConfigurationError(f"{_NAME}: must not all be 0")
        shares = [float(weight) / float(largest) for weight in weights]
        total = math.fsum(shares)
        return cls(tuple(share / total for share in shares))

    def lock(self, difficulty: int, *, locked: bool = True) -> "DifficultyWeights":
        """These weights with that of `difficulty` (1 to 5) locked or unlocked."""
        index = _index(difficulty)
        marks = (*self.locked[:index], locked, *self.locked[index + 1 :])
        return replace(self, locked=marks)

    def move(self, difficulty: int, weight: float) -> "DifficultyWeights":
        """These weights with that of `difficulty` (1 to 5) set, the others rescaled.

        The unlocked others keep their proportions (share alike where all are 0), locked ones
        stay. Raises ConfigurationError for a locked weight, a value outside 0 to 1, and a move
        that the locks make impossible.
        """
        index = _index(difficulty)
        moved = moved_weights(
            self.weights, self.locked, index=index, weight=weight, name=f"difficulty {difficulty}"
        )
        return replace(self, weights=moved)


def moved_weights(
    weights: Sequence[float], locked: Sequence[bool], *, index: int, weight: float, name: str
) -> tuple[float, ...]:
    """`weights`, which sum to 1, with that at `index` set and the others rescaled.

    By the laws of `DifficultyWeights.move`, for any number of weights; `name` is what a refusal
    calls the one that moves. Raises ConfigurationError.
    """
    if locked[index]:
        raise ConfigurationError(f"{name}: its weight is locked")
    if not 0 <= _as_number(weight) <= 1:
        raise ConfigurationError(f"{name}: the weight must lie between 0 and 1 (got {weight!r})")
    weight = float(weight)
    free = [k for k in range(len(weights)) if k != index and not locked[k]]
    kept = sum(one for one, is_locked in zip(weights, locked, strict=True) if is_locked)
    left = 1 - kept - weight
    if left < -SLACK or (not free and left > SLACK):
        raise ConfigurationError(
            f"{name}: a weight of {weight:g} is impossible, because the locked weights sum to "
            f"{kept:g}"
        )
    return _shared(weights, max(left, 0.0), free, (index, weight))


def _shared(
    weights: Sequence[float], left: float, free: Sequence[int], set_to: tuple[int, float]
) -> tuple[float, ...]:
    before = sum(weights[k] for k in free)
    moved = list(weights)
    moved[set_to[0]] = set_to[1]
    for k in free:
        moved[k] = left * (weights[k] / before) if before > 0 else left / len(free)
    return tuple(moved)


def check_weights(
    weights: Sequence[float], locked: Sequence[bool], *, count: int, name: str
) -> None:
    """Raise ConfigurationError unless both are `count` long and the weights sum to 1."""
    for values in (weights, locked):
        if len(values) != count:
            raise ConfigurationError(f"{name}: there must be {count} (got {len(values)})")
    _refuse_unfit(weights, name)
    if abs(sum(weights) - 1) > SLACK:
        raise ConfigurationError(f"{name}: must sum to 1 (got {sum(weights):g})")


def _refuse_unfit(weights: Sequence[object], name: str) -> None:
    for weight in weights:
        if not 0 <= _as_number(weight) < math.inf:
            raise ConfigurationError(
                f"{name}: must be finite numbers and not negative (got {weight!r})"
            )


def _as_number(weight: object) -> float:
    """`weight` as a float, NaN where it is no number."""
    try:
        number = as_parameter(weight)
    except TypeError:
        return math.nan
    return number if isinstance(number, float) else math.nan


def _index(difficulty: float) -> int:
    number = _as_number(difficulty)
    if not (1 <= number <= DIFFICULTY_COUNT and number.is_integer()):
        raise ConfigurationError(
            f"difficulty must lie between 1 and {DIFFICULTY_COUNT}, as a whole number "
            f"(got {difficulty!r})"
        )
    return int(number) - 1
