"""A small world that has what the others lack: masks, bounds of its own, snapshots and replays.

A tank leaks one unit each step. What is poured in (0 to 2) adds to it, tilting it (any number) does
nothing but be seen, and the valve, which is masked where there is nothing to let out, empties it by
two. At 6 it overflows and is lost; after 8 steps it is won between 1 and 3.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    FLOAT32,
    check_buffers,
    check_writable,
    checked_actions,
    whole_seed,
)
from aimbot_lab.foundation.display import RowArrays, WorldReplays
from aimbot_lab.foundation.episodes import LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.settings import STRICT, Ge, Int, dataclass
from aimbot_lab.foundation.world import BatchWorld, BoolArray, Scenario, StepBuffers, WorldSpec
from aimbot_lab.foundation.world_type import MakePlayer, RandomAgent, WorldType
from aimbot_lab.worlds.testing import Subject

FULL, STEPS, INF = 6.0, 8, float("inf")
SPEC = WorldSpec(
    observation_names=("level", "tilt", "steps"),
    observation_low=np.array([0, -INF, 0], np.float32),
    observation_high=np.array([FULL + 2, INF, STEPS], np.float32),
    branches=(2,),
    continuous=2,
    continuous_limit=1.0,
    continuous_bounds=((0.0, 2.0), (-INF, INF)),
    targets={"fill": 1},
    difficulties={"fill": 0},
    reward_terms=("level",),
    parameters=(),
    action_names=("valve", "pour", "tilt"),
    max_steps=STEPS,
    abilities=frozenset({"snapshot", "masks", "replay", "paired"}),
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TankSettings:
    """Tanks."""

    world: Literal["tank"] = "tank"
    num_envs: Annotated[Int, Ge(1)] = 4


class Tanks:
    """`num_envs` tanks."""

    spec = SPEC

    def __init__(self, settings: TankSettings) -> None:
        self.settings, self.num_envs = settings, settings.num_envs
        self.keep_endings = self.ready = False
        self.counters = np.zeros(3, np.int64)  # scenario, seed, episodes begun
        self.numbers = np.zeros((2, self.num_envs), np.float32)  # level, tilt
        self.counts = np.zeros((3, self.num_envs), np.int64)  # steps, rank, scenario

    @property
    def scenario_number(self) -> int:
        return int(self.counters[0])

    def set_scenario(self, scenario: Scenario) -> int:
        if scenario.targets.keys() != {"fill"} or scenario.parameters:
            raise ConfigurationError("scenario: there is the target fill, and no parameter")
        self.counters[0] += 1
        return self.scenario_number

    def reset(self, seed: int, observations: np.ndarray) -> None:
        self.counters[1:] = whole_seed(seed) % 97, 0
        check_writable(observations, "observations", shape=(self.num_envs, 3), dtype=FLOAT32)
        self.ready = True
        self.begin(np.arange(self.num_envs))
        observations[:] = self.seen()

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> EpisodeBatch:
        if not self.ready:
            raise LabError("reset it first")
        check_buffers(buffers, (self.num_envs, 3))
        valve, pour, tilt = self.read(actions)
        level = np.maximum(self.numbers[0] + pour - 1.0 - 2.0 * valve, 0.0)
        self.numbers[:] = np.minimum(level, FULL + 2.0), tilt
        self.counts[0] += 1
        lost, late = level >= FULL, self.counts[0] == STEPS
        ended = np.flatnonzero(lost | late)
        won = late & ~lost & (level >= 1.0) & (level <= 3.0)
        buffers.rewards[:] = won
        buffers.finished[:], buffers.truncated[:] = lost | late, False
        buffers.final_observations[ended] = self.seen()[ended]
        batch = EpisodeBatch(
            row=ended,
            agent=np.zeros_like(ended),
            order=self.counts[1, ended],
            scenario=self.counts[2, ended],
            cell=(Cell("fill", 0),) * len(ended),
            outcome=np.where(won, WIN, LOSS)[ended].astype(np.int8),
            length=self.counts[0, ended],
            terms=buffers.rewards[ended, None].astype(np.float64),
            running_order=self.counts[1],
            running_scenario=self.counts[2],
        )
        self.begin(ended)
        buffers.observations[:] = self.seen()
        return batch

    def read(self, actions: np.ndarray) -> np.ndarray:
        """[3, B] Each column of what is done."""
        return checked_actions(actions, self.num_envs, spec=self.spec).T

    def action_masks(self, masks: BoolArray) -> None:
        masks[:] = True
        masks[:, 1] = self.numbers[0] > 0.0

    def snapshot(self) -> dict[str, np.ndarray]:
        parts = {"counters": self.counters, "numbers": self.numbers, "counts": self.counts}
        return {name: array.copy() for name, array in parts.items()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        self.ready = True
        for name, array in snapshot.items():
            getattr(self, name)[:] = array

    def draw(self, row: int, *, ending: bool = False) -> np.ndarray:
        raise LabError("it has no picture")

    def begin(self, rows: np.ndarray) -> None:
        self.counts[1, rows] = ranks = self.counters[2] + np.arange(len(rows))
        self.counts[0, rows], self.counts[2, rows] = 0, self.counters[0]
        self.numbers[0, rows], self.numbers[1, rows] = (ranks * 7 + self.counters[1]) % 4, 0.0
        self.counters[2] += len(rows)

    def seen(self) -> np.ndarray:
        return np.stack([*self.numbers, self.counts[0]], axis=1).astype(np.float32)


class TankReplays(WorldReplays):
    def row_start(self, world: Tanks, row: int) -> RowArrays | None:
        if world.counts[0, row]:
            return None
        whole = {"numbers": world.numbers, "counts": world.counts}
        return {name: array[:, [row]].copy() for name, array in whole.items()}


class TankType(WorldType):
    name, settings, replays = "tank", TankSettings, TankReplays()

    def spec(self, settings: TankSettings) -> WorldSpec:
        return SPEC

    def make(self, settings: TankSettings) -> BatchWorld:
        return Tanks(settings)

    def targets(self, settings: TankSettings | None) -> Mapping[str, int]:
        return SPEC.difficulties

    def baselines(self, settings: TankSettings) -> Mapping[str, MakePlayer]:
        return {"random": lambda world, seed: RandomAgent(world.spec, seed)}


TANK = TankType()


def tanks(world: type[Tanks] = Tanks, kind: WorldType = TANK) -> Subject:
    """`world` as checks play it."""
    return Subject(
        lambda rows: world(TankSettings(num_envs=rows)), Scenario({"fill": 1.0}), kind=kind
    )
