"""Win rates from episodes, with a world whose outcomes are known beforehand."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from aimbot_lab.evaluation.evaluate import cell_scenario, evaluate
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.intervals import wilson
from aimbot_lab.foundation.results import EpisodeResult, UnparsedLineError, format_result_line
from aimbot_lab.foundation.world import BatchWorld, Cell, Scenario, StepBuffers, WorldSpec

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
    )

    def __init__(self, plays: Sequence[Sequence[Episode]]) -> None:
        self.num_envs = len(plays)
        self.plays = plays
        self.seeds: list[int] = []
        self.scenarios: list[Scenario] = []
        self.actions: list[list[float]] = []

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
        numbers = np.zeros(len(ended), np.int64)
        running = np.zeros(self.num_envs, np.int64)
        return EpisodeBatch(
            lines=tuple(self._next_line(row) for row in ended),
            row=np.array(ended, np.int64),
            order=numbers,
            scenario=numbers,
            length=numbers,
            terms=np.zeros((len(ended), 0)),
            running_order=running,
            running_scenario=running,
        )

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
    return format_result_line(EpisodeResult(won=won, seconds=seconds, episode_return=value))


def idle(observations: np.ndarray) -> np.ndarray:
    return np.zeros((len(observations), 1), np.float32)


def score(world: BatchWorld, act: Callable[[np.ndarray], np.ndarray] = idle):
    return evaluate(world, act, [Cell("goto", 2)], seed=11)[0]


def test_every_row_counts_once_however_soon_it_ends() -> None:
    """The quick rows win hundreds of episodes while the last row loses its one."""
    quick = [Episode(1, WIN)]
    found = score(KnownWorld([quick, quick, [Episode(500, LOSE)]]))
    assert (found.episodes, found.wins) == (3, 2)
    assert found.win_rate == pytest.approx(2 / 3)
    assert (found.lower, found.upper) == wilson(2, 3)[1:]


def test_only_the_first_episode_of_a_row_counts() -> None:
    plays = [
        [Episode(2, LOSE), Episode(1, WIN)],
        [Episode(3, LOSE), Episode(1, WIN)],
        [Episode(4, WIN), Episode(1, LOSE)],
        [Episode(9, LOSE)],
    ]
    assert score(KnownWorld(plays)).wins == 1


def test_rows_that_end_in_the_same_step_all_count() -> None:
    assert score(KnownWorld([[Episode(4, WIN)]] * 5)).wins == 5


def test_seconds_are_those_of_won_episodes_and_returns_of_all() -> None:
    plays = [
        [Episode(1, result(won=True, seconds=2.0, value=10.0))],
        [Episode(2, result(won=True, seconds=4.0, value=20.0))],
        [Episode(3, result(won=False, seconds=30.0, value=-60.0))],
    ]
    found = score(KnownWorld(plays))
    assert found.seconds_to_win == pytest.approx(3.0)
    assert found.mean_return == pytest.approx(-10.0)


def test_without_a_win_there_is_no_time_to_win() -> None:
    found = score(KnownWorld([[Episode(1, LOSE)]]))
    assert (found.wins, found.win_rate, found.seconds_to_win) == (0, 0.0, None)


def test_all_cells_meet_the_same_seed_and_their_own_scenario() -> None:
    world = KnownWorld([[Episode(1, WIN)]])
    cells = [Cell("goto", 1), Cell("goto", 3), Cell("free", 0)]
    scores = evaluate(world, idle, cells, seed=11)
    assert world.seeds == [11, 11, 11]
    assert [(found.target, found.difficulty) for found in scores] == [tuple(c) for c in cells]
    assert world.scenarios == [
        Scenario({"goto": 1.0}, {"goto": (1.0, 0.0, 0.0)}),
        Scenario({"goto": 1.0}, {"goto": (0.0, 0.0, 1.0)}),
        Scenario({"free": 1.0}),
    ]
    assert cell_scenario(Cell("goto", 2), 3).difficulty == {"goto": (0.0, 1.0, 0.0)}


def test_the_agent_acts_on_the_newest_observation() -> None:
    world = KnownWorld([[Episode(4, WIN)], [Episode(2, LOSE)]])
    score(world, lambda observations: observations.copy())
    assert world.actions == [[step, step] for step in (0.0, 1.0, 2.0, 3.0)]


@pytest.mark.parametrize(
    "line", ["Warning|Result|Draw", "Warning|Result|Lose|seconds=long", "", "Warning|Command"]
)
def test_a_line_that_is_no_result_is_an_error_and_not_a_loss(line: str) -> None:
    with pytest.raises(UnparsedLineError):
        score(KnownWorld([[Episode(1, WIN)], [Episode(2, line)]]))
