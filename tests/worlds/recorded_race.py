"""A race whose episodes can be recorded: a world that plays its replays through the protocol."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import RowArrays, WorldReplays
from aimbot_lab.foundation.settings import STRICT, Ge, Int, dataclass
from aimbot_lab.foundation.world import BatchWorld, StepBuffers, WorldSpec
from tests.worlds.race import GOAL, Race, race_spec
from tests.worlds.stranger import WalkType


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RaceSettings:
    """Runners on a line."""

    world: Literal["race"] = "race"
    """The world."""
    num_envs: Annotated[Int, Ge(1)] = 8
    """Races."""
    runners: Annotated[Int, Ge(1)] = 1
    """Runners of a race."""


class RecordedRace(Race):
    """Races that can be drawn, and played again."""

    def __init__(self, settings: RaceSettings) -> None:
        super().__init__(settings.num_envs, settings.runners)
        self.settings = settings
        self.spec = RACE.spec(settings)
        self.last = self.place.copy()

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> Any:
        self.running = self.place.copy()
        ended = super().step(actions, buffers)
        if ended:
            moves = actions[:, 0].reshape(self.place.shape).astype(np.int64) - 1
            self.last = np.clip(self.running + moves, -GOAL, GOAL)
        return ended

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"place": self.place.copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Begin in these places."""
        if snapshot.keys() != {"place"} or snapshot["place"].shape != self.place.shape:
            raise MisuseError("place: must be a place for each runner")
        self.place[:] = snapshot["place"]
        self.ready = True

    def draw(self, row: int, *, ending: bool = False) -> np.ndarray:
        """A pixel for each place; a runner's is white."""
        picture = np.zeros((2 * GOAL + 1, 2 * GOAL + 1, 3), np.uint8)
        places = (self.last if ending else self.place)[:, row]
        picture[np.arange(len(places)), places + GOAL] = 255
        return picture


class RaceReplays(WorldReplays):
    """All that a world has to say: what a row is that begins."""

    def row_start(self, world: RecordedRace, row: int) -> RowArrays | None:
        begins = world.steps[row] == 0
        return {"place": world.place[:, [row]].copy()} if begins else None


class RaceType(WalkType):
    name = "race"
    settings = RaceSettings
    replays = RaceReplays()

    def spec(self, settings: RaceSettings) -> WorldSpec:
        able = frozenset({"paired", "replay", "draw"})
        return replace(race_spec(settings.runners), abilities=able)

    def make(self, settings: RaceSettings) -> BatchWorld:
        return RecordedRace(settings)


RACE = RaceType()
