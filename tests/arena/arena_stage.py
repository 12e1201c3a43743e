"""An arena with its buffers, random play for it, samplers, and rows that are edited."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.settings import (
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
    UniformParameters,
)
from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.core.state import PARAMETERS
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor
from aimbot_lab.worlds.arena.settings import ArenaSettings

ROWS = 2000  # of which values are drawn
ALL_TARGETS = Scenario({"free": 1.0, "goto": 1.0, "attack": 1.0, "stay": 0.2})


class Stage(NamedTuple):
    """An arena after its reset; `buffers.observations` holds the first observations."""

    arena: Arena
    buffers: StepBuffers

    def step(self, actions: np.ndarray):
        """Play one decision of every row; the episodes that ended."""
        return self.arena.step(np.ascontiguousarray(actions, np.float32), self.buffers)

    def repeat(self, *action: float):
        """Play one action in every row; the episodes that ended."""
        return self.step(np.tile(np.array(action, np.float32), (self.arena.num_envs, 1)))


def new_stage(scenario: Scenario, seed: int = 0, **settings) -> Stage:
    """An arena with these settings, reset with a seed."""
    arena = Arena(ArenaSettings(**settings))
    arena.set_scenario(scenario)
    buffers = step_buffers(arena)
    arena.reset(seed, buffers.observations)
    return Stage(arena, buffers)


def random_play(steps: int, rows: int, *, seed: int = 0) -> np.ndarray:
    """Actions [steps, rows, 4] that are held for a while; those of a row depend on it alone."""
    play = np.zeros((steps, rows, 4), np.float32)
    for row in range(rows):
        random = np.random.default_rng((seed, row))
        for start in range(0, steps, 8):
            held = play[start : start + 8, row]
            held[:, :3] = random.integers(0, (3, 3, 2))
            held[:, 3] = random.normal(0.0, 2.0)
            held[:, 3] += random.normal(0.0, 0.3, len(held))
    return play


def row_digests(stage: Stage, play: np.ndarray) -> list[str]:
    """A digest for each row of all that it observes and earns during a play [steps, rows, 4]."""
    digests = [hashlib.sha256() for _ in range(stage.arena.num_envs)]
    for actions in play:
        stage.step(actions)
        for digest, *numbers in zip(digests, *_told(stage.buffers), strict=True):
            for number in numbers:
                digest.update(number.tobytes())
    return [digest.hexdigest() for digest in digests]


def _told(buffers: StepBuffers) -> Iterator[np.ndarray]:
    yield from (buffers.observations, buffers.rewards, buffers.finished)
    last = np.zeros_like(buffers.final_observations)
    last[buffers.finished] = buffers.final_observations[buffers.finished]
    yield last


def uniform(low: float, high: float, seed: int | None = None) -> Uniform:
    parameters = UniformParameters(min_value=low, max_value=high, seed=seed)
    return Uniform(sampler_parameters=parameters)


def gaussian(mean: float, st_dev: float) -> Gaussian:
    return Gaussian(sampler_parameters=GaussianParameters(mean=mean, st_dev=st_dev))


def ranges(*intervals: tuple[float, float]) -> MultiRangeUniform:
    parameters = MultiRangeUniformParameters(intervals=intervals)
    return MultiRangeUniform(sampler_parameters=parameters)


def drawn(name: str, value: ParameterValue, seed: int = 0, rows: int = ROWS) -> np.ndarray:
    stage = new_stage(Scenario({"stay": 1.0}, parameters={name: value}), seed, num_envs=rows)
    column: np.ndarray = stage.arena.state.parameters[:, PARAMETERS.index(name)]
    return column.copy()


STAYING = Scenario({"stay": 1.0})
ATTACK_BLOCK, GOTO_BLOCK = ("attack", "pair"), ("goto", "lone crate")
MIDDLE = 9  # ray


def edited(scenario: Scenario = STAYING, **settings) -> tuple[Stage, RowEditor]:
    """An arena of Stay with the agent of row 0 at (2, 2), looking north."""
    stage = new_stage(scenario, 1, **{"num_envs": 1, **settings})
    stage.arena.keep_endings = True
    return stage, RowEditor(stage.arena)


def columns(stage: Stage) -> dict[str, float]:
    names = stage.arena.spec.observation_names
    return dict(zip(names, stage.buffers.observations[0].tolist(), strict=True))


def same_arrays(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def block(editor: RowEditor, at: tuple[float, float], **turns) -> int:
    return editor.place_block(0, at, preset=GOTO_BLOCK, **turns)


if __name__ == "__main__":
    print(*row_digests(new_stage(ALL_TARGETS, 5, num_envs=7), random_play(60, 7)))  # noqa: T201
