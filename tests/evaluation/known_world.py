"""A world whose outcomes are known beforehand."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.episodes import LOSS, EpisodeBatch, EpisodeResult, format_result_line
from aimbot_lab.foundation.episodes import WIN as WIN_OUTCOME
from aimbot_lab.foundation.world import Scenario, StepBuffers, WorldSpec
from tests.episode_batches import ended_batch

WIN, LOSE = "Warning|Result|Win", "Warning|Result|Lose"


class Episode(NamedTuple):
    """An episode that takes `length` steps and then sends `line`."""

    length: int
    line: str


class KnownWorld:
    """Row r plays the episodes of `plays[r]` in turn, the last one again and again.

    Its only observation is the number of steps since the reset.
    """

    spec = WorldSpec(
        observation_names=("steps",),
        observation_low=np.zeros(1, np.float32),
        observation_high=np.full(1, 1000, np.float32),
        branches=(2,),
        continuous=0,
        continuous_limit=0.0,
        targets={"goto": 1, "free": 0},
        difficulties={"goto": 3, "free": 0},
        reward_terms=(),
        parameters=(),
        episode_columns=("seconds",),
        time_column="seconds",
    )

    def __init__(self, plays: Sequence[Sequence[Episode]]) -> None:
        self.num_envs = len(plays)
        self.plays = plays
        self.seeds: list[int] = []
        self.scenarios: list[Scenario] = []
        self.actions: list[list[float]] = []

    @property
    def scenario_number(self) -> int:
        return len(self.scenarios)

    def set_scenario(self, scenario: Scenario) -> int:
        self.scenarios.append(scenario)
        return len(self.scenarios)

    def reset(self, seed: int, observations: np.ndarray) -> None:
        self.seeds.append(seed)
        self._played = [0] * self.num_envs
        self._left = [episodes[0].length for episodes in self.plays]
        self._steps = 0
        observations[:] = 0.0

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> EpisodeBatch:
        self.actions.append(actions[:, 0].tolist())
        self._steps += 1
        buffers.observations[:] = self._steps
        ended = [row for row in range(self.num_envs) if self._ends(row)]
        lines = [self._next_line(row) for row in ended]
        return ended_batch(lines, order=ended, running=np.zeros(self.num_envs, np.int64), row=ended)

    def _ends(self, row: int) -> bool:
        self._left[row] -= 1
        return self._left[row] == 0

    def _next_line(self, row: int) -> str:
        episodes = self.plays[row]
        line = episodes[min(self._played[row], len(episodes) - 1)].line
        self._played[row] += 1
        self._left[row] = episodes[min(self._played[row], len(episodes) - 1)].length
        return line


def result(*, won: bool, seconds: float, value: float) -> str:
    return format_result_line(
        EpisodeResult(WIN_OUTCOME if won else LOSS, seconds=seconds, episode_return=value)
    )


def idle(observations: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.zeros((len(observations), 1), np.float32)
