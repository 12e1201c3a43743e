"""States by their numbers, actions by their values, and values by what actions brought."""

from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.rng import counted_uniform

Bools = npt.NDArray[np.bool_]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@kernel
def write_states(observations: Floats32, table: Any, states: Ints) -> None:
    """Write the number of the state that each of `observations` [N, D] shows to `states` [N].

    `table` is a `foundation.world.StateTable`. What shows none of its states is taken for
    the first one, so that a number is always a row of the table.
    """
    for row in range(observations.shape[0]):
        place, rest = 0, 0
        for k in range(table.columns.size):
            value = int(observations[row, table.columns[k]])
            place += table.place_weights[k] * value
            rest += table.rest_weights[k] * value
        state = -1
        if 0 <= place < table.first_states.size and table.first_states[place] >= 0:
            state = table.first_states[place] + rest
        states[row] = state if 0 <= state < table.size else 0


@inlined
def best_action(values: Floats32, state: int, first: int) -> int:
    """The action of the highest value in `values` [S, A], the one that comes first from `first`."""
    count = values.shape[1]
    best = first
    for away in range(1, count):
        action = first + away if first + away < count else first + away - count
        if values[state, action] > values[state, best]:
            best = action
    return best


@kernel
def choose_actions(
    values: Floats32, states: Ints, epsilon: float, draw: tuple[np.uint64, int], actions: Ints
) -> None:
    """Write an action for each of `states` [N] to `actions` [N].

    Any action with probability `epsilon`, else one of the highest value; each alike. `draw` is a
    key and how often was drawn with it before, on which and on the row alone the draws depend.
    """
    count = values.shape[1]
    for row in range(states.size):
        share = counted_uniform(draw[0], row, draw[1])
        random = share < epsilon
        share = share / epsilon if random else (share - epsilon) / (1.0 - epsilon)
        first = min(int(share * count), count - 1)
        actions[row] = first if random else best_action(values, states[row], first)


@kernel
def write_best(values: Floats32, states: Ints, actions: Ints) -> None:
    """Write the action of the highest value, the first of several, to `actions` [N]."""
    for row in range(states.size):
        actions[row] = best_action(values, states[row], 0)


@kernel
def learn_step(
    values: Floats32,
    transitions: tuple[Ints, Ints, Floats32, Ints, Bools],
    learning_rate: float,
    gamma: float,
) -> float:
    """Move each taken action's value to what it brought, row after row; the mean squared error.

    `transitions` are [N] states, actions, rewards, next states, and whether the task ended the
    episode, so that nothing comes after it. Source: Watkins and Dayan, "Q-learning", 1992.
    """
    states, actions, rewards, next_states, terminated = transitions
    total = 0.0
    for row in range(states.size):
        target = float(rewards[row])
        if not terminated[row]:
            after = next_states[row]
            target += gamma * values[after, best_action(values, after, 0)]
        error = target - values[states[row], actions[row]]
        values[states[row], actions[row]] += np.float32(learning_rate * error)
        total += error * error
    return total / max(states.size, 1)
