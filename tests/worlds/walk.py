"""A small world that has what the arena lacks: truncation, one branch alone, and no abilities.

A walker on a line begins at 0 and wins at +3, loses at -3, and is cut off after 12 steps.
"""

from collections.abc import Callable, Mapping

import numpy as np

from aimbot_lab.foundation.argument_checks import BOOL, FLOAT32, check_writable, whole_seed
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError
from aimbot_lab.foundation.result_lines import EpisodeResult, format_result_line
from aimbot_lab.foundation.world import BoolArray, Scenario, StepBuffers, WorldSpec
from aimbot_lab.worlds.testing import Subject

GOAL, LIMIT = 3, 12
SPEC = WorldSpec(
    observation_names=("place", "steps"),
    observation_low=np.array([-GOAL, 0], np.float32),
    observation_high=np.array([GOAL, LIMIT], np.float32),
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
)


class Walk:
    """`num_envs` walkers."""

    spec = SPEC

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.before_reset: Callable[[BoolArray], None] | None = None
        self.scenario_number = self.begun = 0
        self.ready = False
        self.place, self.steps, self.order, self.scenario = np.zeros((4, num_envs), np.int64)

    def set_scenario(self, scenario: Scenario) -> int:
        if scenario.targets.keys() != {"right"} or scenario.parameters:
            raise ConfigurationError("scenario: there is the target right, and no parameter")
        self.scenario_number += 1
        return self.scenario_number

    def reset(self, seed: int, observations: np.ndarray) -> None:
        whole_seed(seed)
        check_writable(observations, "observations", shape=(self.num_envs, 2), dtype=FLOAT32)
        self.begun, self.ready = 0, True
        self._begin(np.arange(self.num_envs))
        observations[:] = self._seen()

    def step(self, actions: np.ndarray, buffers: StepBuffers) -> EpisodeBatch:
        if not self.ready:
            raise LabError("reset it first")
        for name, array in buffers._asdict().items():
            kind = BOOL if name in ("finished", "truncated") else FLOAT32
            shape = (self.num_envs, 2) if "observations" in name else (self.num_envs,)
            check_writable(array, name, shape=shape, dtype=kind)
        if actions.shape != (self.num_envs, 1) or not np.isin(actions, (0, 1, 2)).all():
            raise ActionError("environment: move is one of 0 to 2")
        self.place += actions[:, 0].astype(np.int64) - 1
        self.steps += 1
        over = abs(self.place) == GOAL
        buffers.rewards[:] = np.sign(self.place) * over
        buffers.finished[:] = over | (self.steps == LIMIT)
        buffers.truncated[:] = buffers.finished & ~over
        buffers.final_observations[buffers.finished] = self._seen()[buffers.finished]
        rows = np.flatnonzero(buffers.finished)
        if rows.size and self.before_reset is not None:
            self.before_reset(buffers.finished)
        batch = EpisodeBatch(
            lines=tuple(map(self._line, rows)),
            row=rows,
            order=self.order[rows],
            scenario=self.scenario[rows],
            length=self.steps[rows],
            terms=buffers.rewards[rows, None].astype(np.float64),
            running_order=self.order,
            running_scenario=self.scenario,
        )
        self._begin(rows)
        buffers.observations[:] = self._seen()
        return batch

    def action_masks(self, masks: BoolArray) -> None:
        masks[:] = True

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"counters": np.array([self.begun, self.scenario_number])}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        self.begun, self.scenario_number = map(int, snapshot["counters"])
        self.ready = True

    def begin_anew(self, observations: np.ndarray) -> None:
        self._begin(np.arange(self.num_envs))
        observations[:] = self._seen()

    def draw(self, row: int) -> np.ndarray:
        raise LabError("it has no picture")

    def _begin(self, rows: np.ndarray) -> None:
        self.place[rows] = self.steps[rows] = 0
        self.order[rows] = self.begun + np.arange(len(rows))
        self.scenario[rows] = self.scenario_number
        self.begun += len(rows)

    def _seen(self) -> np.ndarray:
        return np.column_stack([self.place, self.steps]).astype(np.float32)

    def _line(self, row: int) -> str:
        won = bool(self.place[row] == GOAL)
        return format_result_line(EpisodeResult(won, "right", 0, float(self.steps[row])))


WALK = Subject(Walk, Scenario({"right": 1.0}))
