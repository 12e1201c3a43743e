"""Samplers as arrays, from which kernels draw."""

from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import (
    Gaussian,
    MultiRangeUniform,
    ParameterValue,
    Uniform,
    as_parameter,
)

KINDS = CONSTANT, UNIFORM, GAUSSIAN, RANGES = (0, 1, 2, 3)


Floats = npt.NDArray[np.float64]


def sampler_arrays(values: Sequence[ParameterValue]) -> dict[str, np.ndarray]:
    """What draws each of P parameters, by the names that kernels know.

    `sampler` [P] kinds, `sampler_values` [P, 2] (constant; low and high; mean and standard
    deviation), `sampler_ranges` [P, I, 2] low and high of each interval, `sampler_range_count` [P],
    `sampler_seed` [P] seed of its own, `sampler_seeded` [P] whether it has one.
    """
    count = len(values)
    ranges = [
        value.sampler_parameters.intervals
        for value in values
        if isinstance(value, MultiRangeUniform)
    ]
    arrays = {
        "sampler": np.zeros(count, np.int64),
        "sampler_values": np.zeros((count, 2)),
        "sampler_ranges": np.zeros((count, max(map(len, ranges), default=1), 2)),
        "sampler_range_count": np.zeros(count, np.int64),
        "sampler_seed": np.zeros(count, np.uint64),
        "sampler_seeded": np.zeros(count, np.bool_),
    }
    for index, value in enumerate(values):
        _fill(arrays, index, value)
    return arrays


def _fill(arrays: dict[str, np.ndarray], index: int, value: ParameterValue) -> None:
    if isinstance(value, int | float):
        arrays["sampler_values"][index, 0] = value
        return
    if isinstance(value, Uniform):
        given = value.sampler_parameters
        arrays["sampler"][index] = UNIFORM
        arrays["sampler_values"][index] = given.min_value, given.max_value
    elif isinstance(value, Gaussian):
        normal = value.sampler_parameters
        arrays["sampler"][index] = GAUSSIAN
        arrays["sampler_values"][index] = normal.mean, normal.st_dev
    elif isinstance(value, MultiRangeUniform):
        intervals = value.sampler_parameters.intervals
        arrays["sampler"][index] = RANGES
        arrays["sampler_ranges"][index, : len(intervals)] = intervals
        arrays["sampler_range_count"][index] = len(intervals)
    else:
        assert_never(value)
    seed = value.sampler_parameters.seed
    arrays["sampler_seeded"][index] = seed is not None
    arrays["sampler_seed"][index] = seed or 0


def proportions(weights: Iterable[object], what: str) -> Floats:
    """`weights` scaled so that their sum is finite; by a power of two, which keeps every bit."""
    given = list(weights)
    try:
        found: Floats = np.array([as_parameter(weight) for weight in given], np.float64)
    except TypeError as error:
        raise ConfigurationError(
            f"scenario: {what}: weights must be numbers (got {given!r:.80})"
        ) from error
    if not np.isfinite(found).all() or (found < 0).any() or not (found > 0).any():
        raise ConfigurationError(
            f"scenario: {what}: weights must be finite, not negative and not all 0 "
            f"(got {given!r:.80})"
        )
    scaled: Floats = np.ldexp(found, -np.frexp(found.max())[1])
    return scaled
