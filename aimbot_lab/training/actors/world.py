"""The world of all actors as their learner sees it: it is played elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
)
from aimbot_lab.training.actors.block import Scenarios
from aimbot_lab.worlds.row_parts import Arrays, joined

ELSEWHERE = "is played by actors"


class ActorsWorld:
    """Numbers scenarios, keeps those that actors do not know yet, and counts what was lost."""

    def __init__(self, spec: WorldSpec, rows: int) -> None:
        self.spec, self.num_envs, self.keep_endings = spec, rows, False
        self.scenario_number = 0
        self._scenarios: list[tuple[int, Scenario]] = []  # that are new, by number
        self.notices: list[str] = []
        self.dropped_episodes: int | None = None
        """Episodes that were lost; None: this world loses none."""
        self.counters: dict[str, float] = {}
        """What is tracked of the actors, by metric."""

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that actors draw from where their next block begins."""
        self.scenario_number += 1
        self._scenarios.append((self.scenario_number, scenario))
        return self.scenario_number

    def take_scenarios(self) -> Scenarios:
        """The new ones, which are forgotten."""
        taken, self._scenarios = tuple(self._scenarios), []
        return taken

    def take_notices(self) -> Sequence[str]:
        """What a person should know since this was last asked."""
        taken, self.notices = self.notices, []
        return taken

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Nothing: actors reset their own worlds."""
        del seed
        observations[:] = 0.0

    def begin_anew(self, observations: Float32Array) -> None:
        """Nothing: actors begin anew."""
        observations[:] = 0.0

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Raises MisuseError."""
        raise MisuseError(f"step: the world {ELSEWHERE}")

    def action_masks(self, masks: BoolArray) -> None:
        """Nothing is masked here."""
        masks[:] = True

    def snapshot(self) -> dict[str, np.ndarray]:
        """The number of the scenario in force."""
        return {"scenario_number": np.array(self.scenario_number)}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on numbering."""
        self.scenario_number = int(snapshot["scenario_number"])

    def joined(self, parts: Sequence[Arrays]) -> dict[str, Any]:
        """The snapshot of the whole from those of the actors' worlds, in the order of their rows."""
        return joined(parts)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Raises MisuseError."""
        raise MisuseError(f"draw: the world {ELSEWHERE}")
