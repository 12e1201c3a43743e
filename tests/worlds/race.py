"""A small world that has what the arena lacks: truncation, draws, several agents, few abilities.

Runners on a line begin at 0 and the first at +3 wins; who runs alone loses at -3. After 12 steps a
row is cut off, and where all are there at once, or nobody, it is a draw.
"""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    FLOAT32,
    check_buffers,
    check_writable,
    checked_actions,
    whole_seed,
)
from aimbot_lab.foundation.episodes import LOSS, Cell, EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import BoolArray, Scenario, StepBuffers, WorldSpec

GOAL, LIMIT = 3, 12


def race_spec(agents: int) -> WorldSpec:
    """What a race of so many looks like."""
    return WorldSpec(
        observation_names=("place", *(f"other_{n}" for n in range(1, agents)), "steps"),
        observation_low=np.array([-GOAL] * agents + [0], np.float32),
        observation_high=np.array([GOAL] * agents + [LIMIT], np.float32),
        branches=(3,),
        continuous=0,
        continuous_limit=1.0,
        targets={"right": 1},
        difficulties={"right": 0},
        reward_terms=("end",),
        parameters=(),
        action_names=("move",),
        max_steps=LIMIT,
        abilities=frozenset({"paired"}),
        agents=agents,
        episode_columns=("farthest",),
        has_draws=True,
    )


class Race:
    """`num_envs` races of `agents` runners; with one, a walk to the right."""

    def __init__(self, num_envs: int, agents: int = 1) -> None:
        self.num_envs, self.agents, self.spec = num_envs, agents, race_spec(agents)
        self.keep_endings = False
        self.scenario_number = self.begun = 0
        self.ready = False
        self.place = np.zeros((agents, num_envs), np.int64)
        self.steps, self.rank, self.scenario = np.zeros((3, num_envs), np.int64)

    def set_scenario(self, scenario: Scenario) -> int:
        if scenario.targets.keys() != {"right"} or scenario.parameters:
            raise ConfigurationError("scenario: there is the target right, and no parameter")
        self.scenario_number += 1
        return self.scenario_number

    def reset(self, seed: int, observations: np.ndarray) -> None:
        whole_seed(seed)
        seats = self.agents * self.num_envs, self.agents + 1
        check_writable(observations, "observations", shape=seats, dtype=FLOAT32)
        self.begun, self.ready = 0, True
        self._begin(np.arange(self.num_envs))
        observations[:] = self._seen()

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> EpisodeBatch:
        if not self.ready:
            raise LabError("reset it first")
        seats = self.agents * self.num_envs
        check_buffers(buffers, (seats, self.agents + 1))
        actions = checked_actions(actions, seats, spec=self.spec)
        moves = actions[:, 0].reshape(self.agents, self.num_envs).astype(np.int64) - 1
        self.place = np.clip(self.place + moves, -GOAL, GOAL)
        self.steps += 1
        there = self.place == GOAL
        over = there.any(axis=0) | ((self.agents == 1) & (self.place[0] == -GOAL))
        outcome = np.where(there, 1, LOSS) * (over & ~(there.all(axis=0) & (self.agents > 1)))
        finished = np.tile(over | (self.steps == LIMIT), self.agents)
        buffers.rewards[:] = outcome.ravel()
        buffers.finished[:] = finished
        buffers.truncated[:] = finished & ~np.tile(over, self.agents)
        buffers.final_observations[finished] = self._seen()[finished]
        ended = np.flatnonzero(finished)
        rows, agent = ended % self.num_envs, ended // self.num_envs
        batch = EpisodeBatch(
            row=rows,
            agent=agent,
            order=self._order()[ended],
            scenario=self.scenario[rows],
            cell=(Cell("right", 0),) * len(ended),
            outcome=outcome.ravel()[ended].astype(np.int8),
            length=self.steps[rows],
            terms=buffers.rewards[ended, None].astype(np.float64),
            running_order=np.zeros(0, np.int64),
            running_scenario=np.zeros(0, np.int64),
            columns={"farthest": self.place.ravel()[ended].astype(np.float64)},
        )
        self._begin(np.unique(rows))
        buffers.observations[:] = self._seen()
        running = np.tile(self.scenario, self.agents)
        return batch._replace(running_order=self._order(), running_scenario=running)

    def action_masks(self, masks: BoolArray) -> None:
        masks[:] = True

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"counters": np.array([self.begun, self.scenario_number])}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        self.begun, self.scenario_number = map(int, snapshot["counters"])
        self.ready = True

    def resume_episodes(self, observations: np.ndarray) -> BoolArray:
        self._begin(np.arange(self.num_envs))
        observations[:] = self._seen()
        return np.ones(len(observations), np.bool_)

    def draw(self, row: int, *, ending: bool = False) -> np.ndarray:
        raise LabError("it has no picture")

    def _begin(self, rows: np.ndarray) -> None:
        self.place[:, rows] = self.steps[rows] = 0
        self.rank[rows] = self.begun + np.arange(len(rows))
        self.scenario[rows] = self.scenario_number
        self.begun += len(rows)

    def _order(self) -> np.ndarray:
        """[N] One rank for each agent of each race."""
        return (self.rank * self.agents + np.arange(self.agents)[:, None]).ravel()

    def _seen(self) -> np.ndarray:
        """[N, agents + 1] Its own place, those of the others, and the steps."""
        views = [np.roll(self.place, -agent, axis=0) for agent in range(self.agents)]
        steps = np.broadcast_to(self.steps, (1, self.num_envs))
        return np.concatenate([np.concatenate([view, steps]).T for view in views]).astype(
            np.float32
        )


RIGHT = Scenario({"right": 1.0})
