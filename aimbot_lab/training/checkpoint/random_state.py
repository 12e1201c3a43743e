"""The generators that a training draws from, beside the simulator's own."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces

Space = spaces.Space[Any]


def random_state(drawn_from: Sequence[Space]) -> dict[str, Any]:
    """Where Python's, NumPy's and torch's generators stand, and those of the spaces."""
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": th.get_rng_state(),
        "spaces": [space.np_random.bit_generator.state for space in drawn_from],
    }
    if th.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = th.cuda.get_rng_state_all()
    return state


def restore_random(state: Mapping[str, Any], drawn_from: Sequence[Space]) -> None:
    """Set all generators to what `random_state` gave."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    th.set_rng_state(state["torch"])
    for space, kept in zip(drawn_from, state["spaces"], strict=True):
        space.np_random.bit_generator.state = kept
    if "cuda" in state and th.cuda.is_available():
        th.cuda.set_rng_state_all(state["cuda"])
