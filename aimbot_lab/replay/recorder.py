"""Episodes recorded while they are played in a batch."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import ReplayWorld, RowArrays
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.world import BatchWorld, Float32Array
from aimbot_lab.replay.episode import RecordedEpisode, ReplayError, replays_of


class RowRecorder:
    """Records the episodes of one row of `world`, from one that begins on.

    Copies a row's actions each step, and the row where an episode begins. Raises ReplayError where
    the world has no replays.
    """

    def __init__(self, world: BatchWorld, row: int) -> None:
        if not world.spec.can("replay"):
            raise ReplayError("this world has no replays: its episodes can't be kept")
        self._world = cast(ReplayWorld, world)
        self._replays = replays_of(self._world.settings)
        self._row = row
        self._settings = self._replays.row_settings(self._world.settings)
        self._start: RowArrays | None = None
        self._actions: list[Float32Array] = []
        self.begin()

    def begin(self) -> None:
        """Record the episode that is about to begin; one under way is left out."""
        self._actions = []
        self._start = self._replays.row_start(self._world, self._row)

    def add(self, actions: Float32Array, ended: EpisodeBatch) -> RecordedEpisode | None:
        """The row's episode, where the last step ended it.

        `actions` [N, A] are those of the last step, `ended` is what it gave.
        """
        self._actions.append(self._replays.row_actions(self._world, self._row, actions).ravel())
        if not ended or self._row not in ended.row:
            return None
        place = int(np.flatnonzero((ended.row == self._row) & (ended.agent == 0))[0])
        episode = None
        if self._start is not None:
            line = result_line(ended, place, self._world.spec.result_columns)
            actions_made = np.stack(self._actions)
            episode = RecordedEpisode(self._settings, self._start, actions_made, line)
        self.begin()
        return episode


def recorders(world: BatchWorld) -> Sequence[RowRecorder]:
    """A recorder for each row of `world`, which was just reset."""
    return [RowRecorder(world, row) for row in range(world.num_envs)]
