"""The mix in force: a lesson's own, as it was moved by hand, with shares for other cells."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

from aimbot_lab.curriculum.settings import Lesson, lesson_scenario, scenario_cells
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario

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
    """`weight` as a float, NaN where it is not a number."""
    if not isinstance(weight, Real):
        return math.nan
    try:
        return float(weight)
    except OverflowError:
        return math.nan


Shares = Mapping[Cell, float]


class LiveMix:
    """What a lesson's episodes are drawn from.

    Weights moved by hand belong to the lesson in which they were moved; the next one begins with
    those that it is written with.
    """

    def __init__(self, lesson: Lesson, difficulties: Mapping[str, int]) -> None:
        self._lesson = lesson
        self._difficulties = difficulties
        self._written = lesson_scenario(lesson, difficulties)
        self._moved: dict[str | None, MixWeights] = {}  # by target; None: of the targets
        self.known = scenario_cells(self._written)  # every cell that the lesson's mix has ever had

    @property
    def moved(self) -> bool:
        """Whether the mix is another than the lesson is written with."""
        return bool(self._moved)

    @property
    def scenario(self) -> Scenario:
        """The lesson's mix."""
        written, moved = self._written, {**self._moved}
        of_targets = moved.pop(None, None)
        targets = written.targets if of_targets is None else of_targets.drawn
        levels = dict(written.difficulty)
        levels.update((str(name), one.weights) for name, one in moved.items())
        drawn = {target: weights for target, weights in levels.items() if target in targets}
        return Scenario(targets, drawn, written.parameters)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that it draws."""
        return scenario_cells(self.scenario)

    def weights(self, target: str | None) -> MixWeights:
        """The weights of `target`'s difficulties; of None those of the lesson's targets.

        Raises ConfigurationError where the target has no difficulties.
        """
        if (moved := self._moved.get(target)) is not None:
            return moved
        if target is None:
            return MixWeights.normalised(self._written.targets)
        written = self._written.difficulty
        if target not in written:
            known = ", ".join(written) or "none"
            raise ConfigurationError(
                f"{target}: has no difficulties in lesson {self._lesson.name!r}; {known} has"
            )
        return MixWeights.of_difficulties(written[target])

    def changed(self, change: WeightChange) -> "LiveMix":
        """This mix after `change`. Raises ConfigurationError where it is impossible."""
        mix = copy(self)
        mix._moved = dict(self._moved)
        _, moves, lock, unlock = change
        mix.put(change.target, self.weights(change.target).changed(moves, lock, unlock))
        return mix

    def described(self, target: str | None) -> dict[str, Any]:
        """The weights of `target`, or of None, as they are now, and their kind; plain values."""
        kind = {"kind": "targets"} if target is None else {"kind": "weights", "target": target}
        return {**kind, **self.document(target)}

    def document(self, target: str | None) -> dict[str, Any]:
        """The weights of `target`'s difficulties, or of None with the targets' names."""
        weights = self.weights(target)
        names = {"targets": weights.keys} if target is None else {}
        return {**names, "weights": weights.weights, "locked": weights.locked}

    @property
    def with_difficulties(self) -> tuple[str, ...]:
        """The lesson's targets that have difficulties, drawn or not."""
        return tuple(self._written.difficulty)

    def put(self, target: str | None, weights: MixWeights) -> None:
        """Draw the difficulties of `target`, or the targets, by `weights`.

        Raises ConfigurationError where they are others than the lesson's.
        """
        known = self.weights(target).keys
        if set(weights.keys) != set(known):
            what = "the lesson's targets" if target is None else f"the difficulties of {target}"
            raise ConfigurationError(f"{what} are {', '.join(map(str, known))}")
        self._moved[target] = weights
        self.known = tuple(dict.fromkeys((*self.known, *self.cells)))

    def with_shares(self, extra: Shares) -> Scenario:
        """The mix in which each cell of `extra` has that share of all episodes besides its own."""
        scenario = self.scenario
        if not extra:
            return scenario
        left = 1.0 - sum(extra.values())
        shares = {cell: left * share for cell, share in cell_shares(scenario).items()}
        for cell, share in extra.items():
            shares[cell] = shares.get(cell, 0.0) + share
        return Scenario(*shares_weights(shares, self._difficulties), scenario.parameters)

    def counted_shares(self, extra: Shares) -> dict[Cell, float]:
        """The share of each cell's episodes to count, so that they count as the mix has them.

        Empty where all count.
        """
        own = cell_shares(self.scenario)
        if not any(cell in own for cell in extra):
            return {}
        drawn = cell_shares(self.with_shares(extra))
        ratios = {cell: share / drawn[cell] for cell, share in own.items()}
        most = max(ratios.values())
        return {cell: ratio / most for cell, ratio in ratios.items() if ratio < most}

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        known = [list(cell) for cell in self.known]
        kept = {
            key: [list(one.keys), list(one.weights), list(one.locked)]
            for key, one in self._moved.items()
        }
        targets = kept.pop(None, None)
        moved = {key: values[1:] for key, values in kept.items()}
        return {"moved": moved, "known": known, "targets": targets}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave for the same lesson."""
        for target, (weights, locked) in state["moved"].items():
            keys = tuple(range(1, len(weights) + 1))
            self._moved[target] = MixWeights(keys, tuple(weights), tuple(locked))
        if (targets := state.get("targets")) is not None:  # older checkpoints have none
            self._moved[None] = MixWeights(*map(tuple, targets))
        self.known = tuple(Cell(*cell) for cell in state["known"])


def cell_shares(scenario: Scenario) -> dict[Cell, float]:
    """The share of the episodes that each cell of `scenario` gets; they sum to 1."""
    total = sum(scenario.targets.values())
    shares: dict[Cell, float] = {}
    for target, weight in scenario.targets.items():
        levels = scenario.difficulty.get(target)
        if levels is None:
            shares[Cell(target, 0)] = weight / total
            continue
        for level, level_weight in enumerate(levels, start=1):
            if level_weight > 0:
                shares[Cell(target, level)] = weight / total * level_weight / sum(levels)
    return shares


def shares_weights(
    shares: Shares, difficulties: Mapping[str, int]
) -> tuple[dict[str, float], dict[str, tuple[float, ...]]]:
    """The weights of targets, and of their difficulties, that give each cell its share."""
    targets: dict[str, float] = {}
    for (target, _), share in shares.items():
        targets[target] = targets.get(target, 0.0) + share
    levels = {
        target: tuple(shares.get(Cell(target, k), 0.0) for k in range(1, difficulties[target] + 1))
        for target in targets
        if difficulties[target]
    }
    return targets, levels
