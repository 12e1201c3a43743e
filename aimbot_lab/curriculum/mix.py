"""The mix in force: a lesson's own, as it was moved by hand, with shares for other cells."""

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, astuple
from typing import Any

from aimbot_lab.curriculum.cells import lesson_scenario, scenario_cells
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.curriculum.target_weights import TargetChange, TargetWeights
from aimbot_lab.curriculum.weight_change import WeightChange
from aimbot_lab.foundation.difficulty_weights import DifficultyWeights
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario

Shares = Mapping[Cell, float]
Change = WeightChange | TargetChange


class LiveMix:
    """What a lesson's episodes are drawn from.

    Weights moved by hand belong to the lesson in which they were moved; the next one begins with
    those that it is written with.
    """

    def __init__(self, lesson: Lesson, difficulties: Mapping[str, int]) -> None:
        self._lesson = lesson
        self._difficulties = difficulties
        self._written = lesson_scenario(lesson, difficulties)
        self._moved: dict[str, DifficultyWeights] = {}
        self._targets: TargetWeights | None = None  # as they were moved
        self.known = scenario_cells(self._written)  # every cell that the lesson's mix has ever had

    @property
    def moved(self) -> bool:
        """Whether the mix is another than the lesson is written with."""
        return bool(self._moved) or self._targets is not None

    @property
    def scenario(self) -> Scenario:
        """The lesson's mix."""
        weights = {target: moved.weights for target, moved in self._moved.items()}
        written = self._written
        targets = written.targets if self._targets is None else self._targets.drawn
        levels = {**written.difficulty, **weights}
        drawn = {target: weights for target, weights in levels.items() if target in targets}
        return Scenario(targets, drawn, written.parameters)

    @property
    def target_weights(self) -> TargetWeights:
        """The weights of the targets that the lesson is written with."""
        return self._targets or TargetWeights.normalised(self._written.targets)

    @property
    def difficulty_weights(self) -> dict[str, DifficultyWeights]:
        """The weights of all targets that have difficulties, drawn or not."""
        return {target: self.weights(target) for target in self._written.difficulty}

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that it draws."""
        return scenario_cells(self.scenario)

    def weights(self, target: str) -> DifficultyWeights:
        """The weights of `target`'s difficulties. Raises ConfigurationError where it has none."""
        written = self._written.difficulty
        if target not in written:
            known = ", ".join(written) or "none"
            raise ConfigurationError(
                f"{target}: has no difficulties in lesson {self._lesson.name!r}; {known} has"
            )
        return self._moved.get(target) or DifficultyWeights.normalised(written[target])

    def changed(self, change: Change) -> "LiveMix":
        """This mix after `change`. Raises ConfigurationError where it is impossible."""
        mix = copy(self)
        mix._moved = dict(self._moved)
        if isinstance(change, TargetChange):
            mix.put_targets(change.apply(self.target_weights))
        else:
            mix.put(change.target, change.apply(self.weights(change.target)))
        return mix

    def described(self, change: Change) -> dict[str, Any]:
        """The weights that `change` is about, as they are now, and their kind; plain values."""
        if isinstance(change, TargetChange):
            return {"kind": "targets", **asdict(self.target_weights)}
        weights = asdict(self.weights(change.target))
        return {"kind": "weights", "target": change.target, **weights}

    def put(self, target: str, weights: DifficultyWeights) -> None:
        """Draw the difficulties of `target` by `weights`.

        Raises ConfigurationError where the lesson knows none of it.
        """
        self.weights(target)
        self._moved[target] = weights
        self.known = tuple(dict.fromkeys((*self.known, *self.cells)))

    def put_targets(self, weights: TargetWeights) -> None:
        """Draw targets by `weights`. Raises ConfigurationError where they are others."""
        if set(weights.targets) != set(self._written.targets):
            raise ConfigurationError(f"the lesson's targets are {', '.join(self._written.targets)}")
        self._targets = weights
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
        moved = {key: [list(w.weights), list(w.locked)] for key, w in self._moved.items()}
        targets = None if self._targets is None else [*map(list, astuple(self._targets))]
        return {"moved": moved, "known": known, "targets": targets}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave for the same lesson."""
        for target, (weights, locked) in state["moved"].items():
            self._moved[target] = DifficultyWeights(tuple(weights), tuple(locked))
        if (targets := state.get("targets")) is not None:  # older checkpoints have none
            self._targets = TargetWeights(*map(tuple, targets))
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


def read_change(document: Mapping[str, Any]) -> Change:
    """The change that `document` asks for: `as_json` of either kind.

    Raises ConfigurationError where it is none.
    """
    is_of_targets = isinstance(document, Mapping) and document.get("kind") == "targets"
    return (TargetChange if is_of_targets else WeightChange).from_json(document)
