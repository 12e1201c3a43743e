"""Samplers, and the values that the arena draws by them."""

import numpy as np
from arena_stage import new_stage

from aimbot_lab.foundation.settings import (
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
    UniformParameters,
)
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core import state as core

ROWS = 2000


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
    column: np.ndarray = stage.arena.state.parameters[:, core.PARAMETERS.index(name)]
    return column.copy()
