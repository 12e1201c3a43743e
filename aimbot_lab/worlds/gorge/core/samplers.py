"""Parameters of an episode: constants, or drawn by a sampler.

A draw depends on the sampler's seed, the row and the number of the episode in it, and on nothing
else, so that samplers never disturb what else is drawn, and each other as little.
"""

import math

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.portable_math import log, sin_cos
from aimbot_lab.foundation.kernels.rng import counted_uniform, mix64
from aimbot_lab.worlds.gorge.core.state import GorgeState, SamplerTables

CONSTANT, UNIFORM, GAUSSIAN, RANGES = range(4)  # kinds of samplers
SMALLEST = 2.0**-53  # keeps a logarithm finite


@inlined
def draw_parameters(state: GorgeState, samplers: SamplerTables, row: int) -> None:
    """Write the numbers in force for the episode that begins in `row`."""
    for k in range(state.parameters.shape[1]):
        if samplers.kind[k] == CONSTANT:
            state.parameters[row, k] = samplers.values[k, 0]
        else:
            state.parameters[row, k] = sampled(state, samplers, row, k)


@called
def sampled(state: GorgeState, samplers: SamplerTables, row: int, k: int) -> float:
    """What the sampler of parameter `k` draws for this episode of `row`, within its bounds."""
    key = mix64(state.sampler_key[0] + np.uint64(k))
    if samplers.seeded[k]:
        key = mix64(samplers.seed[k])
    first = counted_uniform(key, row, 2 * state.episode[row])
    value = samplers.values[k, 0]
    if samplers.kind[k] == UNIFORM:
        value = in_interval(value, samplers.values[k, 1], first, samplers.whole[k])
    elif samplers.kind[k] == GAUSSIAN:
        # Box and Muller, "A note on the generation of random normal deviates", 1958.
        second = counted_uniform(key, row, 2 * state.episode[row] + 1)
        _, cosine = sin_cos(2.0 * math.pi * second)
        value += samplers.values[k, 1] * math.sqrt(-2.0 * log(first + SMALLEST)) * cosine
    else:
        value = in_ranges(samplers, k, first)
    value = min(max(value, samplers.bounds[k, 0]), samplers.bounds[k, 1])
    return np.rint(value) if samplers.whole[k] else value


@inlined
def in_ranges(samplers: SamplerTables, k: int, share: float) -> float:
    """The value at `share` of the way through all intervals laid end to end.

    Intervals that are all without length are drawn alike.
    """
    count = samplers.range_count[k]
    total = 0.0
    for index in range(count):
        total += interval_length(
            samplers.ranges[k, index, 0], samplers.ranges[k, index, 1], samplers.whole[k]
        )
    if total == 0.0:
        return samplers.ranges[k, min(int(share * count), count - 1), 0]
    left = share * total
    for index in range(count):
        low, high = samplers.ranges[k, index, 0], samplers.ranges[k, index, 1]
        length = interval_length(low, high, samplers.whole[k])
        if left < length or index == count - 1:
            part = left / length if length > 0.0 else 0.0
            return in_interval(low, high, part, samplers.whole[k])
        left -= length
    return samplers.ranges[k, 0, 0]


@inlined
def interval_length(low: float, high: float, whole: bool) -> float:
    """Length of an interval; how many whole numbers it holds, where `whole`."""
    return np.floor(high) - np.ceil(low) + 1.0 if whole else high - low


@inlined
def in_interval(low: float, high: float, share: float, whole: bool) -> float:
    """The value at `share` of the way through an interval; a whole number, where `whole`."""
    length = share * interval_length(low, high, whole)
    if whole:
        return min(np.ceil(low) + np.floor(length), np.floor(high))
    return low + min(length, high - low)
