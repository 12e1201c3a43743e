"""Parameters of an episode: constants, or drawn by a sampler.

A draw depends on the sampler's seed, the row and the number of the episode in it, and on nothing
else, so that samplers never disturb what else is drawn, and each other as little.
"""

import math

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.portable_math import log, sin_cos
from aimbot_lab.foundation.kernels.rng import counted_uniform, mix64
from aimbot_lab.worlds.arena.core.state import (
    CONSTANT,
    GAUSSIAN,
    UNIFORM,
    ArenaState,
    ScenarioTables,
)

LEAST = 2.0**-53  # keeps a logarithm finite


@inlined
def draw_parameters(state: ArenaState, scenario: ScenarioTables, row: int) -> None:
    """Write the numbers in force for the episode that begins in `row`."""
    for k in range(state.parameters.shape[1]):
        if scenario.sampler[k] == CONSTANT:
            state.parameters[row, k] = scenario.sampler_values[k, 0]
        else:
            value = sampled(state, scenario, row, k)
            value = min(max(value, scenario.bounds[k, 0]), scenario.bounds[k, 1])
            state.parameters[row, k] = np.rint(value) if scenario.whole[k] else value


@inlined
def sampled(state: ArenaState, scenario: ScenarioTables, row: int, k: int) -> float:
    """What the sampler of parameter `k` draws for this episode of `row`."""
    key = mix64(state.sampler_key[0] + np.uint64(k))
    if scenario.sampler_seeded[k]:
        key = mix64(scenario.sampler_seed[k])
    first = counted_uniform(key, row, 2 * state.episode[row])
    second = counted_uniform(key, row, 2 * state.episode[row] + 1)
    if scenario.sampler[k] == UNIFORM:
        low, high = scenario.sampler_values[k, 0], scenario.sampler_values[k, 1]
        length = interval_length(low, high, scenario.whole[k])
        return at_length(low, high, first * length, scenario.whole[k])
    if scenario.sampler[k] == GAUSSIAN:
        # Box and Muller, "A note on the generation of random normal deviates", 1958.
        _, cosine = sin_cos(2.0 * math.pi * second)
        normal = math.sqrt(-2.0 * log(first + LEAST)) * cosine
        return scenario.sampler_values[k, 0] + scenario.sampler_values[k, 1] * normal
    return in_ranges(scenario, k, first)


@inlined
def in_ranges(scenario: ScenarioTables, k: int, share: float) -> float:
    """The value at `share` of the way through all intervals laid end to end.

    Intervals that are all without length are drawn alike.
    """
    count = scenario.sampler_range_count[k]
    total = 0.0
    for index in range(count):
        low, high = scenario.sampler_ranges[k, index, 0], scenario.sampler_ranges[k, index, 1]
        total += interval_length(low, high, scenario.whole[k])
    if total == 0.0:
        return scenario.sampler_ranges[k, min(int(share * count), count - 1), 0]
    left = share * total
    for index in range(count):
        low, high = scenario.sampler_ranges[k, index, 0], scenario.sampler_ranges[k, index, 1]
        length = interval_length(low, high, scenario.whole[k])
        if left < length or index == count - 1:
            return at_length(low, high, left, scenario.whole[k])
        left -= length
    return scenario.sampler_ranges[k, 0, 0]


@inlined
def interval_length(low: float, high: float, whole: bool) -> float:
    """Length of an interval; how many whole numbers it holds, where `whole`."""
    return np.floor(high) - np.ceil(low) + 1.0 if whole else high - low


@inlined
def at_length(low: float, high: float, length: float, whole: bool) -> float:
    """The value `length` into an interval; the whole number there, where `whole`."""
    if whole:
        return min(np.ceil(low) + np.floor(length), np.floor(high))
    return low + min(length, high - low)
