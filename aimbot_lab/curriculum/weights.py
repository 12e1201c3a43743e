"""Weights of a mix as a person moves them while an agent trains: they always sum to 1."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError

SLACK = 1e-9  # that rounding may leave between a sum and 1
Key = int | str
"""A difficulty of a target, from 1 on, or a target of a lesson."""


@dataclass(frozen=True)
class MixWeights:
    """Weights by key, which sum to 1, and which of them are locked.

    The keys are all difficulties of one target, from 1 on, or the targets of a lesson. Every
    change gives new weights and leaves these as they are. Raises ConfigurationError for weights
    that are no such mix.
    """

    keys: tuple[Key, ...]
    weights: tuple[float, ...]
    locked: tuple[bool, ...]

    def __post_init__(self) -> None:
        for values in (self.weights, self.locked):
            if len(values) != len(self.keys):
                raise ConfigurationError(
                    f"{self._name}: there must be {len(self.keys)} (got {len(values)})"
                )
        _refuse_unfit(self.weights, self._name)
        if abs(sum(self.weights) - 1) > SLACK:
            raise ConfigurationError(f"{self._name}: must sum to 1 (got {sum(self.weights):g})")

    @classmethod
    def normalised(cls, weights: Mapping[Any, float]) -> "MixWeights":
        """Weights in these proportions, none locked. Raises ConfigurationError for a sum of 0."""
        name = _name_of(weights)
        _refuse_unfit(weights.values(), name)
        largest = max(weights.values(), default=0)
        if largest == 0:
            raise ConfigurationError(f"{name}: must not all be 0")
        shares = [float(weight) / float(largest) for weight in weights.values()]
        total = math.fsum(shares)
        scaled = tuple(share / total for share in shares)
        return cls(tuple(weights), scaled, (False,) * len(scaled))

    @classmethod
    def of_difficulties(cls, weights: Sequence[float]) -> "MixWeights":
        """`normalised` weights of difficulties 1, 2, and so on."""
        return cls.normalised(dict(enumerate(weights, start=1)))

    @property
    def drawn(self) -> dict[Any, float]:
        """The weights of the keys that are drawn at all."""
        pairs = zip(self.keys, self.weights, strict=True)
        return {key: weight for key, weight in pairs if weight > 0}

    def lock(self, key: Key, *, locked: bool = True) -> "MixWeights":
        """These weights with that of `key` locked or unlocked."""
        index = self._index(key)
        return replace(self, locked=(*self.locked[:index], locked, *self.locked[index + 1 :]))

    def move(self, key: Key, weight: float) -> "MixWeights":
        """These weights with that of `key` set, the others rescaled.

        The unlocked others keep their proportions (share alike where all are 0), locked ones
        stay. Raises ConfigurationError for a locked weight, a value outside 0 to 1, and a move
        that the locks make impossible.
        """
        index = self._index(key)
        name = f"difficulty {key}" if isinstance(key, int | float) else key
        if self.locked[index]:
            raise ConfigurationError(f"{name}: its weight is locked")
        if not 0 <= _as_number(weight) <= 1:
            raise ConfigurationError(
                f"{name}: the weight must lie between 0 and 1 (got {weight!r})"
            )
        weight, free = float(weight), self._free(index)
        kept = self._kept()
        left = 1 - kept - weight
        if left < -SLACK or (not free and left > SLACK):
            raise ConfigurationError(
                f"{name}: a weight of {weight:g} is impossible, because the locked weights sum to "
                f"{kept:g}"
            )
        before, left = sum(self.weights[k] for k in free), max(left, 0.0)
        moved = list(self.weights)
        moved[index] = weight
        for k in free:
            moved[k] = left * (self.weights[k] / before) if before > 0 else left / len(free)
        return replace(self, weights=tuple(moved))

    def drag(self, key: Key, weight: float) -> "MixWeights":
        """`move`, with `weight` cut to what the locks leave it, as a slider is stopped by them.

        Raises ConfigurationError for a locked weight and a value outside 0 to 1.
        """
        room = max(0.0, 1 - self._kept())
        return self.move(key, min(weight, room) if self._free(self._index(key)) else room)

    def changed(
        self, moves: Iterable[tuple[Key, float]], lock: Iterable[Key], unlock: Iterable[Key]
    ) -> "MixWeights":
        """These weights with locks opened, then weights moved in turn, then locks closed.

        Weights that are moved hold each other's place, and a weight may be moved and locked at
        once. Raises ConfigurationError as `move` does.
        """
        weights, moves, lock = self, tuple(moves), tuple(lock)
        for key in unlock:
            weights = weights.lock(key, locked=False)
        moved = {key for key, _ in moves}
        for key in lock:
            weights = weights if key in moved else weights.lock(key)
        held = weights
        for key, weight in moves:
            held = held.move(key, weight).lock(key)
        weights = replace(held, locked=weights.locked)
        for key in lock:
            weights = weights.lock(key)
        return weights

    @property
    def _name(self) -> str:
        return _name_of(self.keys)

    def _kept(self) -> float:
        """The sum of the locked weights."""
        return sum(one for one, locked in zip(self.weights, self.locked, strict=True) if locked)

    def _free(self, index: int) -> list[int]:
        """The places of the weights that give way where the one at `index` moves."""
        return [k for k in range(len(self.weights)) if k != index and not self.locked[k]]

    def _index(self, key: Any) -> int:
        if self.keys and isinstance(self.keys[0], str):
            if key not in self.keys:
                known = ", ".join(map(str, self.keys))
                raise ConfigurationError(f"{key:.40}: is no target of this lesson; it has {known}")
            return self.keys.index(key)
        number, count = _as_number(key), len(self.keys)
        if not (1 <= number <= count and number.is_integer()):
            raise ConfigurationError(
                f"difficulty must lie between 1 and {count}, as a whole number (got {key!r})"
            )
        return int(number) - 1


class WeightChange(NamedTuple):
    """What shall be moved: locks are opened, then weights moved in turn, the locked ones staying.

    A weight may be moved and locked at once.
    """

    target: str | None  # whose difficulties are meant; None: the lesson's targets themselves
    moves: tuple[tuple[Key, float], ...] = ()  # key and its new weight
    lock: tuple[Key, ...] = ()  # keys whose weights stay
    unlock: tuple[Key, ...] = ()

    @classmethod
    def from_json(cls, document: Any) -> "WeightChange":
        """The change that `as_json` gave. Raises ConfigurationError where it is none."""
        try:
            of_targets = document.get("kind") == "targets"
            key: Callable[[Any], Key] = str if of_targets else int
            target = None if of_targets else str(document["target"])
            moves = tuple((key(name), float(weight)) for name, weight in document["moves"])
            lock, unlock = (tuple(map(key, document[which])) for which in ("lock", "unlock"))
            return cls(target, moves, lock, unlock)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ConfigurationError(f"not a change of weights: {document!r:.80}") from error

    def as_json(self) -> dict[str, Any]:
        """Plain values; of targets with the kind of request that they are."""
        document = self._asdict()
        if self.target is None:
            document = {"kind": "targets", **document}
            del document["target"]
        return document


def _name_of(keys: Iterable[Key]) -> str:
    return "weights of targets" if isinstance(next(iter(keys), 1), str) else "difficulty weights"


def _refuse_unfit(weights: Iterable[object], name: str) -> None:
    for weight in weights:
        if not 0 <= _as_number(weight) < math.inf:
            raise ConfigurationError(
                f"{name}: must be finite numbers and not negative (got {weight!r})"
            )


def _as_number(weight: object) -> float:
    """`weight` as a float, NaN where it is no number."""
    if not isinstance(weight, Real):
        return math.nan
    try:
        return float(weight)
    except OverflowError:
        return math.nan
