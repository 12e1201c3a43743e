"""Episodes recorded while they are played in a batch."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.world import BatchWorld, Float32Array
from aimbot_lab.replay.episode import RecordedEpisode, ReplayError
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.single_row import RowArrays, row_of, solo_settings


class RowRecorder:
    """Records the episodes of one row of `arena`, from one that begins on.

    Copies four numbers a step, and the row where an episode begins.
    """

    def __init__(self, arena: BatchWorld, row: int) -> None:
        if not isinstance(arena, Arena):
            raise ReplayError("episodes of this world can't be recorded")
        self._arena, self._row = arena, row
        self._settings = solo_settings(arena.settings)
        self._start: RowArrays | None = None
        self._actions: list[Float32Array] = []
        self.begin()

    def begin(self) -> None:
        """Record the episode that is about to begin; one under way is left out."""
        self._actions = []
        begins = self._arena.state.decisions[self._row] == 0
        self._start = row_of(self._arena.state, self._row) if begins else None

    def add(self, actions: Float32Array, ended: EpisodeBatch) -> RecordedEpisode | None:
        """The row's episode, where the last step ended it.

        `actions` [B, 4] are those of the last step, `ended` is what it gave.
        """
        self._actions.append(actions[self._row].copy())
        if not ended or self._row not in ended.row:
            return None
        place = int(np.flatnonzero(ended.row == self._row)[0])
        episode = None
        if self._start is not None:
            episode = RecordedEpisode(
                self._settings, self._start, np.stack(self._actions), result_line(ended, place)
            )
        self.begin()
        return episode


def recorders(arena: BatchWorld) -> Sequence[RowRecorder]:
    """A recorder for each row of `arena`, which was just reset."""
    return [RowRecorder(arena, row) for row in range(arena.num_envs)]
