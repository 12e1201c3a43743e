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
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.worlds.row_parts import joined

ELSEWHERE = "is played by actors"


class ActorsWorld:
    """Numbers scenarios, and keeps those that actors do not know yet."""

    def __init__(self, spec: WorldSpec, rows: int) -> None:
        self.spec, self.num_envs, self.keep_endings = spec, rows, False
        self.scenario_number = 0
        self._scenarios: list[tuple[int, Scenario]] = []  # that are new, by number
        self.counts = ActorCounts()

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
        taken, self.counts.notices = self.counts.notices, []
        return taken

    @property
    def dropped_episodes(self) -> int:
        """Episodes that were lost with actors, or with programs that play them."""
        return self.counts.episodes_dropped

    @property
    def logged_errors(self) -> int:
        """Errors that programs have logged which play the actors' worlds."""
        return self.counts.so_far("logged_errors")

    @property
    def save_commands(self) -> int:
        """How often these programs have asked for the agent to be saved."""
        return self.counts.so_far("save_commands")

    def take_metrics(self) -> dict[str, float]:
        """What is tracked of the actors, since this was last asked."""
        return self.counts.take_metrics()

    def remember(self, scenario: Scenario) -> None:
        """The one in force, of which actors that begin know nothing, is `scenario`."""
        self._scenarios.append((self.scenario_number, scenario))

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Nothing: actors reset their own worlds."""
        del seed
        observations[:] = 0.0

    def begin_anew(self, observations: Float32Array) -> None:
        """Nothing: actors begin anew."""
        observations[:] = 0.0

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Raises MisuseError."""
        del actions, buffers
        raise MisuseError(f"step: the world {ELSEWHERE}")

    def action_masks(self, masks: BoolArray) -> None:
        """Nothing is masked here."""
        masks[:] = True

    def snapshot(self) -> dict[str, np.ndarray]:
        """The number of the scenario in force, and what is counted."""
        kept = {"scenario_number": self.scenario_number, **self.counts.state()}
        return {name: np.array(value) for name, value in kept.items()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on numbering and counting."""
        self.scenario_number = int(snapshot["scenario_number"])
        self.counts.resume(snapshot)

    def joined(self, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
        """The snapshot of the whole from those of the actors' worlds, in the order of rows."""
        return joined(parts)

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Raises MisuseError."""
        del row, ending
        raise MisuseError(f"draw: the world {ELSEWHERE}")
