"""Lessons: their settings, and the mix of targets and difficulties that is drawn from."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import MaxLen, MinLen
from pydantic import AfterValidator, Discriminator, Tag

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import (
    STRICT,
    Float,
    Gaussian,
    Ge,
    Gt,
    Le,
    Lt,
    MultiRangeUniform,
    Sampler,
    Uniform,
    dataclass,
)
from aimbot_lab.foundation.world import Scenario

Key = str | int
"""A difficulty of a target, from 1 on, or a target of a lesson."""
Weight = Annotated[Float, Ge(0), Le(1e6)]


def _some_weight(weights: tuple[float, ...]) -> tuple[float, ...]:
    if not sum(weights) > 0:
        raise ValueError("weights must not sum to 0")
    return weights


def _some_target(targets: Mapping[str, float]) -> Mapping[str, float]:
    if targets:
        _some_weight(tuple(targets.values()))
    return targets


def kind_of_parameter(value: object) -> str | None:
    """Which member of `Parameter` a value wants to be."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    is_sampler = isinstance(value, Mapping | Uniform | Gaussian | MultiRangeUniform)
    return "sampler" if is_sampler else None


TargetWeights = Annotated[Mapping[str, Weight], AfterValidator(_some_target)]
DifficultyWeights = Annotated[tuple[Weight, ...], AfterValidator(_some_weight)]
Name = Annotated[str, MinLen(1), MaxLen(100)]
Parameter = Annotated[
    Annotated[Float, Tag("number")] | Annotated[Sampler, Tag("sampler")],
    Discriminator(
        kind_of_parameter,
        custom_error_type="parameter_type",
        custom_error_message="must be a number or a sampler",
    ),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ForgettingSettings:
    """How cells of passed lessons are monitored, and what happens when one is forgotten. Each cell
    (a target at a difficulty) of a lesson that was passed by its win rate is monitored in all later
    lessons with the same parameters."""

    on_forgetting: Literal["ignore", "rehearse", "demote"] = "ignore"
    """What a significant fall leads to besides the report: ignore: nothing; rehearse: more episodes
    of that cell until it recovers; demote: back to its lesson (once, then it is rehearsed)."""
    margin: Annotated[Float, Gt(0), Lt(1)] = 0.1
    """How far a win rate may fall below what was passed."""
    alpha: Annotated[Float, Gt(0), Le(0.5)] = 0.05
    """Upper bound on the probability of any false report in a whole run."""
    watch_share: Annotated[Float, Ge(0), Le(0.5)] = 0.02
    """Share of the episodes drawn from cells that are no longer in the lesson's mix."""
    rehearsal_share: Annotated[Float, Gt(0), Le(0.5)] = 0.25
    """Share of the episodes drawn from rehearsed cells."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Lesson:
    """One step of a curriculum: a mix of targets and difficulties, and how it ends."""

    name: Name
    """Name of the lesson in tables and charts."""
    targets: TargetWeights = field(default_factory=dict)
    """Mix of targets: a weight for each. A world with only one target needs none."""
    difficulty: Mapping[str, DifficultyWeights] = field(default_factory=dict)
    """Mix of difficulties for each target, easiest first; equal weights by default."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """Environment parameters that differ from `env` in this lesson: numbers, or samplers that draw
    a value for every episode."""
    completion_criteria: CompletionCriteria | None = None
    """What ends the lesson. The last one may leave it out, and then lasts until training ends."""


def chain_faults(lessons: Sequence[Lesson | None]) -> Iterator[tuple[tuple[Key, ...], str]]:
    """What is wrong with the lessons together: where (lesson, then key), and what.

    A lesson that is None is known to be wrong in itself and passed over.
    """
    if not lessons:
        yield (), "must hold at least one lesson"
    seen: dict[str, int] = {}
    for number, lesson in enumerate(lessons):
        if lesson is None:
            continue
        first = seen.setdefault(lesson.name, number)
        if first != number:
            yield (number, "name"), f"must differ from the name of lessons.{first}"
        if lesson.completion_criteria is None and number < len(lessons) - 1:
            yield (number, "completion_criteria"), "is missing; only the last lesson may do without"
        against = lesson.completion_criteria and lesson.completion_criteria.against
        if against and not lesson.targets.get(against):
            what = f"must be among the lesson's targets ({', '.join(lesson.targets)})"
            yield (number, "completion_criteria", "against"), what
        for target in lesson.difficulty:
            if target not in lesson.targets:
                known = ", ".join(lesson.targets)
                yield (
                    (number, "difficulty", target),
                    f"must be among the lesson's targets ({known})",
                )


def checked_chain(lessons: Sequence[Lesson], total_steps: int | None) -> tuple[Lesson, ...]:
    """`lessons`. Raises ConfigurationError where they make no chain.

    Nor do they where one is measured by progress and `total_steps` is missing.
    """
    faults = [
        ": ".join((".".join(map(str, ("lessons", *where))), what))
        for where, what in chain_faults(lessons)
    ]
    criteria = [one.completion_criteria for one in lessons if one.completion_criteria]
    if not all(one.measured.of_episodes for one in criteria) and not total_steps:
        faults.append("total_steps: must be given, because a lesson is measured by progress")
    if faults:
        raise ConfigurationError(*faults)
    return tuple(lessons)


def lesson_scenario(lesson: Lesson, difficulties: Mapping[str, int]) -> Scenario:
    """What the lesson's episodes are drawn from, every weight spelled out.

    `difficulties` is the world's number of difficulties of each target (0: has none). Targets that
    it lacks are left out, as a training alone has past selves; all of its own, where none is left.
    """
    given = {name: weight for name, weight in lesson.targets.items() if name in difficulties}
    targets = given if any(given.values()) else dict.fromkeys(difficulties, 1.0)
    drawn = [target for target, weight in targets.items() if weight > 0]
    return Scenario(
        targets={target: targets[target] for target in drawn},
        difficulty={
            target: lesson.difficulty.get(target, (1.0,) * difficulties[target])
            for target in drawn
            if difficulties[target]
        },
        parameters=dict(lesson.parameters),
    )


def lesson_cells(lesson: Lesson, difficulties: Mapping[str, int]) -> tuple[Cell, ...]:
    """The cells with a weight above 0, in the order of the lesson's mix."""
    return scenario_cells(lesson_scenario(lesson, difficulties))


def scenario_cells(scenario: Scenario) -> tuple[Cell, ...]:
    """The cells that `scenario` draws, in the order of its mix."""
    return tuple(cell_shares(scenario))


SLACK = 1e-9  # that rounding may leave between a sum and 1


@dataclasses.dataclass(frozen=True)
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
        name = _name_of(self.keys)
        for values in (self.weights, self.locked):
            if len(values) != len(self.keys):
                raise ConfigurationError(
                    f"{name}: there must be {len(self.keys)} (got {len(values)})"
                )
        _refuse_unfit(self.weights, name)
        if abs(sum(self.weights) - 1) > SLACK:
            raise ConfigurationError(f"{name}: must sum to 1 (got {sum(self.weights):g})")

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
                raise ConfigurationError(
                    f"{key:.40}: is not a target of this lesson; it has {known}"
                )
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
