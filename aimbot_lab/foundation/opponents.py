"""What a world asks of the players against the learner.

A world of two-sided matches seats a player where a match begins, has it act in every step of that
match, and says how it ended. Who the players are, and what they remember, is their own matter.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array


class Opponents(Protocol):
    """Players of the other side of B matches.

    A match is of a kind: either one that these play, such as a past self, or one that the world
    plays itself, which they also see begin and end, so that they can count its result.
    """

    @property
    def needs_masks(self) -> bool:
        """Whether `act` reads the masks."""
        ...

    def begin(self, matches: int) -> None:
        """There are `matches` matches, and no player sits in any yet."""
        ...

    def seat(self, matches: Int64Array, kinds: Sequence[str]) -> None:
        """Choose who plays each of `matches` [R], which begin now and are of `kinds` [R]."""
        ...

    def act(self, observations: Float32Array, masks: BoolArray, actions: Float32Array) -> None:
        """Write the `actions` [B, A] of the matches that these play, and of no other.

        They see `observations` [B, D] and the world's `masks` [B, choices] of these seats.
        """
        ...

    def ended(self, matches: Int64Array, scores: np.ndarray) -> None:
        """These `matches` [R] ended, with `scores` [R] of the learner: 1 won, 0.5 drawn, 0 lost."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that the future depends on."""
        ...

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        ...
