"""A replay buffer of stable-baselines3 that keeps each observation once; its samples stay the same.

The library keeps the observations before all steps, and once more those after them. Nearly each of
the second is the first of the next step.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer

LIBRARY = "stable_baselines3", "sb3_contrib"  # whose buffers write steps in their order


class FollowingObservations:
    """What followed each step of a replay buffer, [T, N, ...], read and written as an array.

    `observations` [T, N, ...] hold it where the next step began with it; only the others, such as
    an episode's last and what followed the newest step, are kept here. A step is written after its
    observation, in the order of the places, round and round.
    """

    def __init__(self, observations: np.ndarray) -> None:
        self._observations = observations
        self._newest = -1  # the place that was written last
        self._last = np.zeros_like(observations[0])  # [N, ...] what followed it
        self._apart: dict[tuple[int, int], np.ndarray] = {}  # by place and row
        self._is_apart = np.zeros(observations.shape[:2], np.bool_)

    def __setitem__(self, place: int, following: np.ndarray) -> None:
        self.extend([place], following)

    def extend(
        self,
        places: Sequence[int] | np.ndarray,
        last: np.ndarray,
        apart: Mapping[tuple[int, int], np.ndarray] | None = None,
    ) -> None:
        """Write the steps at `places`, after the newest one; `last` [N, ...] followed them.

        `apart` is, by place and row, what no next one of them began with.
        """
        begun = self._observations[places[0]]
        if self._newest >= 0 and self._last.tobytes() != begun.tobytes():
            for row in range(len(begun)):
                if self._last[row].tobytes() != begun[row].tobytes():
                    self._keep((self._newest, row), self._last[row])
        if (written_over := self._is_apart[places]).any():
            for step, row in np.argwhere(written_over):
                del self._apart[int(places[step]), int(row)]
            self._is_apart[places] = False
        for place, following in (apart or {}).items():
            self._keep(place, following)
        self._newest = int(places[-1])
        self._last[...] = last

    def _keep(self, place: tuple[int, int], following: np.ndarray) -> None:
        self._apart[place], self._is_apart[place] = following.copy(), True

    def __getitem__(self, places: tuple[Any, ...]) -> np.ndarray:
        """What followed the steps at `places`, arrays of places and of rows."""
        steps, rows = places[:2]
        if np.shape(steps) != np.shape(rows):
            steps, rows = np.broadcast_arrays(steps, rows)
        found: np.ndarray = self._observations[(steps + 1) % len(self._observations), rows]
        if (newest := steps == self._newest).any():
            found[newest] = self._last[rows[newest]]
        if (apart := self._is_apart[steps, rows]).any():
            for one in zip(*np.nonzero(apart), strict=True):
                found[one] = self._apart[int(steps[one]), int(rows[one])]
        return found

    def part(self, places: np.ndarray) -> dict[str, Any]:
        """What `fill` makes the steps at `places` of."""
        apart = np.argwhere(self._is_apart[places])  # steps of the part, and rows
        kept = [self._apart[int(places[step]), int(row)] for step, row in apart]
        last = self[places[-1], np.arange(self._observations.shape[1])]
        values = np.array(kept, last.dtype).reshape(-1, *last.shape[1:])
        return {"last": last, "apart": apart, "values": values}

    def fill(self, places: np.ndarray, part: Mapping[str, Any]) -> None:
        """Write the steps at `places` as `part` had them, once `observations` are there."""
        steps = ((int(places[step]), int(row)) for step, row in part["apart"])
        self.extend(places, part["last"], dict(zip(steps, part["values"], strict=True)))


def keep_once(model: BaseAlgorithm) -> None:
    """Have the replay buffer of `model`, where it is the library's, keep each observation once."""
    buffer: Any = getattr(model, "replay_buffer", None)
    library = type(buffer).__module__.startswith(LIBRARY)
    if library and hasattr(buffer, "next_observations"):
        kept = buffer.observations
        if isinstance(kept, dict):
            followed = {name: FollowingObservations(one) for name, one in kept.items()}
            buffer.next_observations = followed
        else:
            buffer.next_observations = FollowingObservations(kept)


def followings(buffer: ReplayBuffer) -> dict[str, FollowingObservations]:
    """Those of `buffer`, by the names of its observations' entries; "" where it has one."""
    kept: Any = getattr(buffer, "next_observations", None)
    parts = kept.items() if isinstance(kept, Mapping) else [("", kept)]
    return {name: one for name, one in parts if isinstance(one, FollowingObservations)}
