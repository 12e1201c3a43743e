"""Which agent of a build sits in which row: agents come and go, rows stay."""

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Int64Array
from aimbot_lab.mlagents.base_env import Int32Array

NOBODY = -1
Agent = tuple[str, int]  # behavior and id


class Seating:
    """Rows 0 to `rows` - 1 of one build.

    A new agent takes a free row, else that of an agent whose episode ended and that has not come
    back. Agents beyond the rows are surplus.
    """

    def __init__(self, rows: int) -> None:
        self._row: dict[Agent, int] = {}
        self._agent: list[Agent | None] = [None] * rows
        self._surplus: set[Agent] = set()
        self._known: dict[str, tuple[Int32Array, Int64Array]] = {}

    @property
    def is_full(self) -> bool:
        """Whether there is an agent in every row."""
        return None not in self._agent

    def rows(self, behavior: str, ids: Int32Array) -> Int64Array:
        """[n] row of each of these agents, NOBODY of those who have none."""
        kept = self._known.get(behavior)
        if kept is not None and np.array_equal(kept[0], ids):
            return kept[1]
        found = np.array([self._row.get((behavior, one), NOBODY) for one in ids.tolist()], np.int64)
        self._known[behavior] = (ids.copy(), found)
        return found

    def seat(self, behavior: str, ids: Int32Array, over: BoolArray) -> Int64Array:
        """The same for agents that decide; those that are new are seated where there is room.

        `over` [rows]: the episode in that row ended, and its agent has not come back.
        """
        found = self.rows(behavior, ids)
        if not (found == NOBODY).any():
            return found
        agents = [(behavior, one) for one in ids.tolist()]
        new = [one for one in agents if one not in self._row and one not in self._surplus]
        if not new:
            return found
        here = set(found.tolist())
        room = [row for row, agent in enumerate(self._agent) if agent is None]
        room += [
            row
            for row in np.flatnonzero(over).tolist()
            if self._agent[row] is not None and row not in here
        ]
        for agent in new:
            if room:
                self._take(agent, room.pop(0))
            else:
                self._surplus.add(agent)
        return self.rows(behavior, ids)

    def _take(self, agent: Agent, row: int) -> None:
        before = self._agent[row]
        if before is not None:
            del self._row[before]
        self._row[agent], self._agent[row] = row, agent
        self._known.clear()
