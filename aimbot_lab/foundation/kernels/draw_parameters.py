"""Parameters of an episode: constants, or drawn by a sampler.

A draw depends on the sampler's seed, the row's number and that of the episode in it, and on nothing
else, so that samplers never disturb what else is drawn, and each other as little.

A world's own NamedTuples are given. Its state has `parameters` [B, P], `sampler_key` [1], the seed
of samplers that have none of their own, and `episode` [B]; its tables have the arrays of
`foundation.kernels.sampler_arrays`, `bounds` [P, 2] and `whole` [P], what each parameter takes.
"""

import math
from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.portable_math import log, sin_cos
from aimbot_lab.foundation.kernels.rng import counted_uniform, mix64
from aimbot_lab.foundation.kernels.sampler_kinds import CONSTANT, GAUSSIAN, UNIFORM

LEAST = 2.0**-53  # keeps a logarithm finite


@inlined
def draw_parameters(state: Any, tables: Any, row: int, number: int) -> None:
    """Write the numbers in force for the episode that begins in `row`, which draws as `number`."""
    for k in range(state.parameters.shape[1]):
        if tables.sampler[k] == CONSTANT:
            state.parameters[row, k] = tables.sampler_values[k, 0]
        else:
            value = sampled(state, tables, row, k, number)
            value = min(max(value, tables.bounds[k, 0]), tables.bounds[k, 1])
            state.parameters[row, k] = np.rint(value) if tables.whole[k] else value


@inlined
def sampled(state: Any, tables: Any, row: int, k: int, number: int) -> float:
    """What the sampler of parameter `k` draws for this episode of `row`."""
    key = mix64(state.sampler_key[0] + np.uint64(k))
    if tables.sampler_seeded[k]:
        key = mix64(tables.sampler_seed[k])
    first = counted_uniform(key, number, 2 * state.episode[row])
    second = counted_uniform(key, number, 2 * state.episode[row] + 1)
    if tables.sampler[k] == UNIFORM:
        low, high = tables.sampler_values[k, 0], tables.sampler_values[k, 1]
        length = interval_length(low, high, tables.whole[k])
        return at_length(low, high, first * length, tables.whole[k])
    if tables.sampler[k] == GAUSSIAN:
        # Box and Muller, "A note on the generation of random normal deviates", 1958.
        _, cosine = sin_cos(2.0 * math.pi * second)
        normal = math.sqrt(-2.0 * log(first + LEAST)) * cosine
        return float(tables.sampler_values[k, 0] + tables.sampler_values[k, 1] * normal)
    return in_ranges(tables, k, first)


@inlined
def in_ranges(tables: Any, k: int, share: float) -> float:
    """The value at `share` of the way through all intervals laid end to end.

    Intervals that are all without length are drawn alike.
    """
    count = tables.sampler_range_count[k]
    total = 0.0
    for index in range(count):
        low, high = tables.sampler_ranges[k, index, 0], tables.sampler_ranges[k, index, 1]
        total += interval_length(low, high, tables.whole[k])
    if total == 0.0:
        return float(tables.sampler_ranges[k, min(int(share * count), count - 1), 0])
    left = share * total
    for index in range(count):
        low, high = tables.sampler_ranges[k, index, 0], tables.sampler_ranges[k, index, 1]
        length = interval_length(low, high, tables.whole[k])
        if left < length or index == count - 1:
            return at_length(low, high, left, tables.whole[k])
        left -= length
    return float(tables.sampler_ranges[k, 0, 0])


@inlined
def interval_length(low: float, high: float, whole: bool) -> float:
    """Length of an interval; how many whole numbers it holds, where `whole`."""
    return np.floor(high) - np.ceil(low) + 1.0 if whole else high - low


@inlined
def at_length(low: float, high: float, length: float, whole: bool) -> float:
    """The value `length` into an interval; the whole number there, where `whole`."""
    if whole:
        return float(min(np.ceil(low) + np.floor(length), np.floor(high)))
    return low + min(length, high - low)
