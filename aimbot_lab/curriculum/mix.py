"""The mix in force: a lesson's own, as it was moved by hand, with shares for other cells."""

from collections.abc import Mapping
from copy import copy
from typing import Any

from aimbot_lab.curriculum.settings import Lesson, lesson_scenario, scenario_cells
from aimbot_lab.curriculum.weights import MixWeights, WeightChange
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario

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
