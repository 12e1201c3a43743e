"""Two sets of arrays that a world writes by turns, so that what it wrote can be given away."""

import weakref
from typing import Any

import numpy as np

from aimbot_lab.foundation.world import BatchWorld, Float32Array, StepBuffers, step_buffers


class AlternatingBuffers:
    """Buffers for the steps of `world`, whose observations are given to a trainer.

    What was given never changes: where a trainer still has observations when their arrays would
    be written again, they are left to it, and copies are given from then on. Writing two sets by
    turns is faster than copying, and a world is fastest where it always writes the same ones.
    """

    def __init__(self, world: BatchWorld) -> None:
        self._world = world
        self._pair = [step_buffers(world), step_buffers(world)]
        self._given: list[weakref.ref[Float32Array] | None] = [None, None]
        self._copies = False

    @property
    def now(self) -> StepBuffers:
        """What was written last."""
        return self._pair[0]

    def turn(self) -> StepBuffers:
        """What is to be written next; the trainer has none of it."""
        if self._copies:
            return self._pair[0]
        self._pair.reverse()
        self._given.reverse()
        kept = self._given[0]
        if kept is not None and kept() is not None:
            self._pair[0] = step_buffers(self._world)
            self._copies = True
        return self._pair[0]

    def give(self) -> Float32Array:
        """The observations [N, D] written last, for the trainer to keep."""
        observations = self._pair[0].observations
        if self._copies:
            return observations.copy()
        # Views of an array refer to it as their base only where that is not a view of an array.
        window: Any = memoryview
        given: Float32Array = np.asarray(window(observations))
        self._given[0] = weakref.ref(given)
        return given
